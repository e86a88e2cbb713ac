"""Letters as searches and names compare them: other forms of a letter become one, other letters stay apart.

Compatibility forms (half and full width, ligatures) are composed as Unicode's NFKC does. Marks that a writer may leave
out go: accents of Latin, Greek and Cyrillic letters, vowel signs of Arabic and Hebrew. Those that make another letter
stay: й, ї, ў, and all of other scripts, as the sound marks of kana (ガ is not カ) and the vowels of Hindi.
"""

import re
import unicodedata

INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
"""Signs without a form of their own, for a class of a regular expression: soft hyphens, joiners, directions."""


_IS_MARK = "".join("M" if unicodedata.category(chr(point))[0] == "M" else "-" for point in range(0x1E950))
MARKS = "".join(f"{chr(run.start())}-{chr(run.end() - 1)}" for run in re.finditer("M+", _IS_MARK))
"""Marks that belong to the letter before them, which `\\w` lacks, for a class of a regular expression."""

_HIDDEN = re.compile(f"[{INVISIBLE}\u05f3\u05f4\u0640\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_LEFT_OUT = re.compile(
    "[\u0300-\u0305\u0307\u0309-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]|(?<![иуИУ])\u0306|(?<![іІ])\u0308|(?<=ا)[\u0653-\u0655]"
)
_OTHERS = str.maketrans(
    "øØłŁđĐðÐħĦŧŦıŋŊɓɗɖƙƴٱىیېکڪہھەʼ’‘",
    "oOlLdDdDhHtTinNbddkyايييككههه'''",
) | str.maketrans({"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "TH"})
"""Letters that do not decompose, those of Persian and Urdu that stand for an Arabic one, apostrophes."""

_DIGITS = {point: str(unicodedata.digit(chr(point))) for point in range(0x660, 0x1820) if chr(point).isdecimal()}


def plain_letters(text: str) -> str:
    """The same for all spellings of a text that differ in such forms alone; upper and lower case stay."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKD", _HIDDEN.sub("", text))
    return unicodedata.normalize("NFC", _LEFT_OUT.sub("", text).translate(_OTHERS).translate(_DIGITS))
