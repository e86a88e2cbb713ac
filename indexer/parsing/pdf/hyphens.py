"""Words that a line's end divides: the hyphen goes where it only divides, and stays where it belongs to the word.

What a document writes elsewhere decides first: `manage`, or `well-known`. A hyphen beside a digit or a capital, or in
what is no word (an address, an identifier, a chain of hyphens), stays.
"""

import re
from collections.abc import Container, Sequence
from itertools import zip_longest

HYPHEN = ("-", "‐")

_LETTERS = re.compile(r"[^\W\d_]+")
_OPENING = "([{<\"'“„‘‚«»›‹’"
_ADDRESS = re.compile(r"[/@_=\\#-]|\w[.:]\w")
_LEAST_LETTERS = 4  # of a part that is a word of the document, not a syllable that happens to be one
_FREE = re.compile("self|well|ill|non|ex|half|all|cross|semi|quasi|anti|pseudo")  # mostly before a hyphen
# `pre- and post-war`, `Ein- und Ausgang`: the second word shares its end with the first
_CONJUNCTION = re.compile("and|or|to|und|oder|bis|et|ou|y|o|e|en|of|och|og|eller|i|oraz|lub", re.IGNORECASE)


def joined_lines(lines: Sequence[str], words: Container[str] = ()) -> str:
    """The lines as one; `words` are those of the document, casefolded."""
    if not any(line.endswith(HYPHEN) for line in lines):
        return " ".join(lines)
    pairs = zip_longest(lines, lines[1:], fillvalue="")
    return "".join(_with_joint(line, following, words) for line, following in pairs).rstrip(" ")


def _with_joint(line: str, following: str, words: Container[str]) -> str:
    if not line.endswith(HYPHEN):
        return f"{line} "
    before, after = line.rpartition(" ")[2][:-1], following.partition(" ")[0]
    if not before:  # a sign or a dash
        return line if after[:1].isdigit() else f"{line} "
    if before.endswith(HYPHEN) or _CONJUNCTION.fullmatch(after):
        return f"{line} "
    return line if not after or _is_part_of_word(before, after, words) else line[:-1]


def _is_part_of_word(before: str, after: str, words: Container[str]) -> bool:
    start = re.split("['’]", before.lstrip(_OPENING))[-1]
    letters = _LETTERS.match(after)
    if not start.isalpha() or letters is None or _ADDRESS.search(after):
        return True
    first, second = start.casefold(), letters[0].casefold()
    if f"{first}-{second}" in words:
        return True
    if first + second in words:
        return False
    if len(first) == 1 or start[-1].isupper() or after[0].isupper() or _FREE.fullmatch(first):
        return True
    return min(len(first), len(second)) >= _LEAST_LETTERS and first in words and second in words
