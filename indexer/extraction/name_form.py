"""Which tagged spans can be names, by their form and by what stands around them.

The tagger learnt from edited prose. In technical texts it also marks code, table cells, numbers and pieces of
identifiers; these rules know them by their form, in any language's letters. None speaks of a single site or format.
"""

import re
import threading
from collections.abc import Iterable
from functools import lru_cache

import Stemmer

from indexer.extraction.lexicon import (
    ABBREVIATIONS,
    CONCEPT_WORDS,
    EVENT_WORDS,
    MONTHS,
    SENTENCE_STARTERS,
    STOP_WORDS,
    WORK_WORDS,
    word_set,
)

_stemmer = Stemmer.Stemmer("english")
_stemming = threading.Lock()  # a stemmer serves one thread at a time

MAX_LINE = 400  # longer ones are prose
CACHED_LINES = 1024

_EDGE = " \t-–—|*·•:;,/←→│─"
_SIGNS = re.compile(  # of code and tables
    r"[|<>{}\[\]=*;\\^~`@$│─←→▶◀§≤≥…Σ·\n\r\t]|--|::|(?<!\S)-\w|\.\.| [+] |:\S|/[a-z.]|/$|^/|_$|^[#+%]"
)
_GLUE_BEFORE = tuple("/\\@#$=~_.%&+<")
_GLUE_BEHIND = tuple("/\\@#$=~_(%&+>{[")
_HASH = re.compile(r"\b(?:(?=[a-f]*\d)[0-9a-f]{6,}|\w*_?(?=[a-f]*\d)[0-9a-f]{12,})\b")
_LITERALS = word_set("true false none null nil nan n/a na yes no ok todo tbd undefined")
_COMMON_ENDING = re.compile(r"[a-z](?:ing|ly|ed|ions?|ness|ments?|able|ive|ful|less|ous|ity)$")
_YEAR = re.compile(r"(?<![\w.,:/-])(?:1\d{3}|20\d{2})(?:s|\s*[-–/]\s*\d{2,4})?(?!\w|[.:/-]\d)")
_MONTH_WORD = rf"(?:{'|'.join(sorted(MONTHS))})"
_MONTH = re.compile(rf"\b{_MONTH_WORD}\b", re.IGNORECASE)
_MEASURED = re.compile(r"^0\d+ |(?:^| )[-+]?(?:0?\.\d|0\.|\d{2,}\.\d|\d+\.\d* )")  # not a version at the end
_PLACEHOLDER = re.compile(r"\b(?:X\.Y|N{3,}|X{3,})")
_CODE_NAME = re.compile(r"\w*_\w*|[a-z]\w*\.[a-z][\w.]*|[a-z]+[A-Z]\w*")
_BRAND = re.compile(r"[A-Z]\w*[a-z]\w*[A-Z]\w*|[A-Z][a-z]+-?\d+")
_ITEM = re.compile(r"\s*(?:[-*•>]|\d{1,3}[.)])?\s*(?P<label>[A-Z][\w -]{0,30}: )?")
_CENTURY = re.compile(r"\bcentur(?:y|ies)\b|\b\d0s\b|\b(?:BC|AD|BCE|CE)\b")
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}-{_MONTH_WORD}-\d{{4}}|\d{{4}}-\d{{4}}", re.IGNORECASE)
_CODE = re.compile(
    r"[{};]\s*$|^\s*(?:>>>|\.\.\.|\$ |#!|#\s?(?:define|include)|//|/\*|\*/|def |class \w+[(:]|import \w)"
    r"|^\s*from [\w.]+ import|\w\([^()]*\)\s*(?:[:;{]|->)|[!=<>+*]=|\b\w+ = \S|\s--?[A-Za-z][\w-]*|\bhttps?://"
    r"|\w::\w|\bcurl\b|\$\{?\w"
)
_NUMBERED = re.compile(r"[A-Z]{2,6}[ -]?\d+(?:[-.]\d+)*")
_VERSION = re.compile(r"[^\W\d]\w* \d+(?:\.\d+)+\+?$")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_INITIALS = 4  # with their last full stop: `Jr.`, `U.S.`
_COMPOUND_BEFORE = re.compile(r"(?<![\w-])(?:[A-Z][\w]*-)+$")
_COMPOUND_BEHIND = re.compile(r"(?:-[A-Z]\w*)+(?!\w)")


def whole_name(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The bounds of a name without punctuation around it, and with the rest of a compound (`Last-Event-ID`).

    None where its form, or what it is a piece of, is no name's: what is glued to more (`python` of `python.org`), holds
    signs of code or of tables, is mostly digits, a hash, a literal or common words, has neither a capital nor a digit
    among its letters, or stands in a line of code.
    """
    start, end = _trimmed(text, start, end)
    if start >= end:
        return None
    if text.startswith("-", start - 1) and (before := _COMPOUND_BEFORE.search(text[max(0, start - 60) : start])):
        start -= len(before[0])
    if text.startswith("-", end) and (behind := _COMPOUND_BEHIND.match(text, end)):
        end = behind.end()
    is_piece = _is_glued(text, start, end)
    return None if is_piece or not _is_name(text[start:end]) or _is_code(text, start, end) else (start, end)


def whole_amount(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The bounds of a number or a time, with the rest of a date (`05-Sep-2017`). None where it is glued to more, as
    `2.2` in `2.2.0` and `12` in `12-02`."""
    start, end = _trimmed(text, start, end)
    low, high = start, end
    while low > 0 and (text[low - 1].isalnum() or text[low - 1] == "-"):
        low -= 1
    while high < len(text) and (text[high].isalnum() or text[high] == "-"):
        high += 1
    if start >= end or "\n" in text[start:end] or _is_glued(text, low, high):
        return None
    if _DATE.fullmatch(text, low, high):
        return low, high
    return (start, end) if (low, high) == (start, end) or text[start:end].isalpha() else None


def is_calendar_time(surface: str) -> bool:
    """Whether a time is a place in the calendar: a year, a month, a century; not `ten minutes` or `Tuesday`."""
    return any(form.search(surface) for form in (_YEAR, _MONTH, _CENTURY, _DATE))


def is_heading(text: str, start: int, end: int) -> bool:
    """Whether several words are all that stands on their line, as a heading or an item of contents does; or a label is
    there, with a colon behind it, or all that stands behind a label."""
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    item = _ITEM.match(text, line_start, start)
    rest = text[end : len(text) if line_end < 0 else line_end]
    if item is None or item.end() != start:
        return False
    fills = not rest.strip(" .:") and (" " in text[start:end] or item["label"] is not None)
    return fills or (rest.startswith(": ") and item["label"] is None)


def kind_of_code(surface: str, entity_type: str) -> str:
    """`identifier` for names of code (`snake_case`), and of series where no place or work is tagged (`PEP 8`,
    `ISO 8601`); empty for others."""
    is_series = entity_type in ("person", "organisation", "thing") and _NUMBERED.fullmatch(surface)
    return "identifier" if is_series or _CODE_NAME.fullmatch(surface) else ""


def kind_of_thing(text: str, start: int, end: int) -> str:
    """What a thing is, by its last word, a version number, or quotation marks around it; empty where none tells."""
    words = text[start:end].split()
    if _VERSION.search(text[start:end]) or _BRAND.fullmatch(text, start, end):
        return "product"
    if len(words) > 1:
        kinds = (("work", WORK_WORDS), ("event", EVENT_WORDS), ("concept", CONCEPT_WORDS))
        for kind, last_words in kinds:
            if words[-1].lower() in last_words and (kind != "event" or not words[-1].islower()):
                return kind
    opening, closing = text[:start].rstrip(" ")[-1:], text[end:].lstrip(" ,.")[:1]
    return "work" if opening and closing and opening in '"“«„' and closing in '"”»“' else ""


def common_words(texts: Iterable[str]) -> frozenset[str]:
    """The stems of the words that stand in lower case."""
    return frozenset(_stems({word for text in texts for word in _WORD.findall(text) if word.islower()}))


def _stems(words: Iterable[str]) -> list[str]:
    with _stemming:
        stems: list[str] = _stemmer.stemWords([word.lower() for word in words])
    return stems


def is_common(surface: str, lower_case: frozenset[str]) -> bool:
    """Whether what is named only where a line or a sentence begins is nothing but common words, which have a capital
    for their place: each also stands in lower case, in some form, or the only one has the ending of a common word."""
    words = [word for word in _WORD.findall(surface) if word.lower() not in SENTENCE_STARTERS]
    if not words or not all(word[1:].islower() for word in words):
        return False
    if len(words) == 1 and _COMMON_ENDING.search(words[0]):
        return True
    return lower_case.issuperset(_stems(words))


def begins_sentence(text: str, start: int) -> bool:
    """Whether a line, a sentence, an item of a list or a cell of a table begins there."""
    before = text[max(0, start - 8) : start].rstrip(" \"'“‘(*_")
    return not before or before[-1] in ".!?:\n|-•·>"


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without punctuation at the ends, common words in lower case at the end, and a sentence's full stop."""
    while True:
        while start < end and (text[start] in _EDGE or text[start] == "."):
            start += 1
        while start < end and text[end - 1] in _EDGE:
            end -= 1
        first, _, last = text[start:end].rpartition(" ")
        if last in STOP_WORDS and first:
            end = start + len(first)
        elif (
            len(last) > _LONGEST_INITIALS and last[-1] == "." and last[:-1] not in ABBREVIATIONS and last[:-1].isalnum()
        ):
            end -= 1
        else:
            return start, end


def _is_name(surface: str) -> bool:
    letters = [sign for sign in surface if sign.isalpha()]
    digits = sum(sign.isdigit() for sign in surface)
    has_signs = any(form.search(surface) for form in (_SIGNS, _HASH, _MEASURED, _PLACEHOLDER))
    if len(letters) < 2 or has_signs or surface.lower() in _LITERALS:
        return False
    if surface.count("(") != surface.count(")") or surface.count('"') % 2:
        return False
    if digits > len(letters) and not surface[0].isupper():
        return False
    has_capital = any(letter != letter.lower() for letter in letters)
    has_case = any(letter.upper() != letter.lower() for letter in letters)
    if has_case and not has_capital and (not digits or " " in surface):
        return False
    words = _WORD.findall(surface)
    is_shouted = (len(words) == 1 or surface.isupper()) and len(surface) > 2  # not `US`, `IT`
    return not (is_shouted and all(word.lower() in SENTENCE_STARTERS for word in words))


def _is_glued(text: str, start: int, end: int) -> bool:
    """Whether it is a piece of something longer without blanks: a path, an address, a call, a version."""
    before, behind = text[:start][-2:], text[end : end + 2]
    further = behind[1:].isalnum() or behind[1:] == "_"
    return (
        before.endswith(_GLUE_BEFORE)
        or (before.endswith(":") and len(before) > 1 and not before[0].isspace())
        or (before.endswith("-") and not before[0].isalnum())  # an option of a command
        or behind.startswith(_GLUE_BEHIND)
        or (behind[:1] == "." and further)
        or (text[end - 1] == "." and behind[:1].isalnum())
        or (behind[:1] == ":" and bool(behind[1:].strip()))
        or (behind[:1] == "-" and further and not text[start:end].rsplit(maxsplit=1)[-1][:1].isupper())
    )


def _is_code(text: str, start: int, end: int) -> bool:
    """Whether its line is one of code, by its signs or by its indentation."""
    low = text.rfind("\n", 0, start) + 1
    high = text.find("\n", end)
    return _is_line_of_code(text[low : len(text) if high < 0 else high])


@lru_cache(CACHED_LINES)
def _is_line_of_code(line: str) -> bool:
    return len(line) <= MAX_LINE and bool(_CODE.search(line) or _INDENTED.match(line))
