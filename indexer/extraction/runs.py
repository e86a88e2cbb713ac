"""Runs of capitalised tokens, and the names that stand in a run.

A long run yields parts of itself too, because whether `New York Governor Nelson Rockefeller` names one thing or two
depends on which documents exist, and that must not matter here: a mention and the title it means find each other
whichever arrives first.
"""

import re
import sys
from functools import lru_cache
from typing import NamedTuple

from indexer.extraction.entity_types import kind_of
from indexer.extraction.lexicon import (
    ABBREVIATIONS,
    CONNECTORS,
    DAYS,
    GIVEN_NAMES,
    HONORIFICS,
    MONTHS,
    PARTICLES,
    SENTENCE_STARTERS,
    STOP_WORDS,
    STRONG_CONNECTORS,
    WEAK_CONNECTORS,
)
from schemas.ids import normalise_name

MAX_RUN_TOKENS = 12
CACHED_RUNS = 32_768

_ARTICLES = frozenset(("the", "a", "an"))
_LEADING = HONORIFICS | _ARTICLES
_DATE_WORDS = MONTHS | DAYS
_PARTING = CONNECTORS - PARTICLES
_NOTHING: frozenset[str] = frozenset()
_POSSESSIVES = ("'s", "’s", "s'", "s’")


class Part(NamedTuple):
    """A name at `run[start:end]`; its surface is shorter than that where middle names were left out."""

    start: int
    end: int
    name: str
    surface: str
    kind: str


def _upper_case_class() -> str:
    """A regular expression class of the capital letters of all scripts in Unicode's basic plane."""
    ranges: list[list[int]] = []
    for code in range(min(sys.maxunicode, 0xFFFF)):
        if chr(code).isupper() or chr(code).istitle():
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "[" + "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in ranges) + "]"


_UPPER = _upper_case_class()
_GAP = r"[ \u00a0]{1,2}"
_INITIALS = rf"(?:{_UPPER}\.)+(?:{_UPPER}(?![\w.]))?"
_WORD = rf"{_UPPER}\w*(?:['’&/+-]\w+|\.[a-z0-9_]\w*)*(?:\+\+|\#|['’](?={_GAP}{_UPPER}))?!?"
_NUMBER = r"\d\w*(?:[.,:/-]\d\w*)*"
_TOKEN = rf"(?:(?:{'|'.join(sorted(ABBREVIATIONS))})\.|{_INITIALS}|{_WORD})"
_CONNECTOR = rf"(?:{'|'.join(sorted(CONNECTORS, key=lambda word: (-len(word), word)))})"
_FURTHER = rf"{_GAP}(?:{_CONNECTOR}{_GAP}){{0,3}}(?:{_TOKEN}|{_NUMBER})"
RUN = re.compile(rf"(?<![\w@#])(?:{_NUMBER}{_GAP})?{_TOKEN}(?:{_FURTHER}){{0,{MAX_RUN_TOKENS - 1}}}")
_COMMON_ENDING = re.compile(r"[a-z](?:ing|ly|ed|ions?|ness|ments?|able|ive|ful|less|ous|ity)$")
_NOT_BLANK = re.compile(r"[^ \u00a0]+")
_PLAIN = re.compile(r"[A-Za-z0-9.&/+#-]+(?: [A-Za-z0-9.&/+#-]+)*")


@lru_cache(maxsize=CACHED_RUNS)
def parts_at_start(run: str) -> tuple[Part, ...]:
    """The names of a run at the start of a sentence, where a first capital says nothing if the word is a common one."""
    first, _, rest = run.partition(" ")
    if first.lower() not in SENTENCE_STARTERS and (rest or not _COMMON_ENDING.search(first)):
        return parts_of(run)
    while rest:
        word, _, further = rest.partition(" ")
        if word not in CONNECTORS:
            break
        rest = further
    if not rest:
        return ()
    behind = len(run) - len(rest)
    shifted = [Part(start + behind, end + behind, *named) for start, end, *named in parts_of(rest)]
    name = name_of(run)
    whole = [Part(0, len(run), name, run, kind_of(name, run))] if first.lower() in _ARTICLES else []
    return (*whole, *shifted)


@lru_cache(maxsize=CACHED_RUNS)
def parts_of(run: str) -> tuple[Part, ...]:
    """The names in a run: itself, and what is left without titles, articles, numbers and connected parts."""
    if " " not in run and "\u00a0" not in run:
        name = name_of(run)
        return (Part(0, len(run), name, run, kind_of(name, run)),) if _names_something(name, run) else ()
    tokens = [match.span() for match in _NOT_BLANK.finditer(run)]
    words = [run[low:high] for low, high in tokens]
    parts = []
    for low, high in sorted(_spans(words)):
        start, end = tokens[low][0], tokens[high - 1][1]
        surface = run[start:end]
        name = name_of(surface)
        if _names_something(name, surface):
            parts.append(Part(start, end, name, surface, kind_of(name, surface)))
        if high - low in (3, 4) and _is_full_name(words[low:high], name, surface):
            surface = f"{words[low]} {words[high - 1]}"
            parts.append(Part(start, end, name_of(surface), surface, "person"))
    return tuple(parts)


def name_of(surface: str) -> str:
    """`normalise_name`, by a shorter way where nothing but case and edges is to be done."""
    if _PLAIN.fullmatch(surface):
        return surface.lower().strip(" .-/&_")
    return normalise_name(surface)


def _is_full_name(words: list[str], name: str, surface: str) -> bool:
    if words[0].lower() not in GIVEN_NAMES or any(word in CONNECTORS or word.endswith(_POSSESSIVES) for word in words):
        return False
    return kind_of(name, surface) == "person"


def _names_something(name: str, surface: str) -> bool:
    if " " in name:
        words = name.split(" ")
        return any(len(word) > 1 and word not in _DATE_WORDS and not word.isdigit() for word in words)
    if name in STOP_WORDS or name.rstrip(".") in _DATE_WORDS or name.isdigit():
        return False
    return len(name) > 2 or (len(name) == 2 and surface[:2].isupper())


def _spans(words: list[str]) -> set[tuple[int, int]]:
    """The token ranges [low, high) of a run that may be names."""
    if len(words) == 2 and not words[0].endswith(_POSSESSIVES):
        return _spans_of_two(*words)
    spans: set[tuple[int, int]] = set()
    for low, high in _connected(words):
        bounds = _trimmed(words, low, high)
        if bounds:
            spans.add(bounds)
            _add_parts(spans, words, *bounds)
    return spans


def _connected(words: list[str]) -> list[tuple[int, int]]:
    """The whole run, and what its connectors, possessives and titles of persons part it into."""
    whole = [(0, len(words))]
    if CONNECTORS.isdisjoint(words):
        return whole + _pieces(words, _NOTHING)
    spans = _pieces(words, WEAK_CONNECTORS)
    for low, high in _pieces(words, _PARTING):
        # one word before `of` says what a thing is, not which: `University of`, `Duke of`
        if high - low > 1 or high == len(words) or words[high] not in STRONG_CONNECTORS:
            spans.append((low, high))
    return spans if _is_enumeration(words) else whole + spans


def _add_parts(spans: set[tuple[int, int]], words: list[str], low: int, high: int) -> None:
    """Add what is left of a name without a title, an article, initials or a number, and the ends of a long one."""
    while high - low > 1 and words[low].rstrip(".").lower() in _LEADING:
        low += 1
    if high - low > 1 and words[low][0].isdigit():
        low += 1
    bounds = _trimmed(words, low, high)
    if bounds is None:
        return
    low, high = bounds
    spans.add(bounds)
    if not CONNECTORS.isdisjoint(words[low:high]):
        return
    if high - low > 1 and _is_counted(*words[high - 2 : high]):
        spans.add((low, high - 1))
    if _is_initial(words[low]):
        while high - low > 2 and _is_initial(words[low]):
            low += 1
        if not _is_initial(words[low]):
            spans.add((low, high))
    elif 3 <= high - low <= 6 and words[low].lower() not in GIVEN_NAMES:
        spans.update(((low, high - 1), (low + 1, high), (low, low + 2), (high - 2, high)))


def _is_initial(word: str) -> bool:
    return len(word) == 2 and word[1] == "."


def _is_counted(word: str, number: str) -> bool:
    """Whether the word means something without the number behind it: `Python 3` does, `PEP 8` does not."""
    return number[0].isdigit() and not (word.isupper() and len(word) > 1)


def _spans_of_two(first: str, last: str) -> set[tuple[int, int]]:
    if first[0].isdigit() or first.rstrip(".").lower() in _LEADING:
        return {(0, 2), (1, 2)}
    return {(0, 2), (0, 1)} if _is_counted(first, last) else {(0, 2)}


def _trimmed(words: list[str], low: int, high: int) -> tuple[int, int] | None:
    """The range without connectors at its ends and without a number behind one (`in 1948`); None if none is left."""
    while low < high and words[low] in CONNECTORS:
        low += 1
    while high - low > 1:
        number_behind = words[high - 1].isdigit() and words[high - 2] in CONNECTORS
        if not number_behind and words[high - 1] not in CONNECTORS:
            break
        high -= 1
    return (low, high) if low < high else None


def _pieces(words: list[str], breakers: frozenset[str]) -> list[tuple[int, int]]:
    """The ranges between connectors, behind possessives, and before and behind titles of persons."""
    pieces = []
    low = 0
    last = len(words)
    for at, word in enumerate(words):
        if word in breakers:
            cut, onward = at, at + 1
        elif word.endswith(_POSSESSIVES):
            cut = onward = at + 1
        elif low < at < last - 1 and word.rstrip(".").lower() in HONORIFICS:
            cut, onward = at, at + 1
        else:
            continue
        if cut > low:
            pieces.append((low, cut))
        low = onward
    if last > low:
        pieces.append((low, last))
    return pieces


def _is_enumeration(words: list[str]) -> bool:
    """Several names that a sentence joins: `Alan Menken and Howard Ashman`, `Ghana and to Mali`."""
    if "and" not in words:
        return False
    at = words.index("and")
    if words[at + 1] in WEAK_CONNECTORS:
        return True
    return at >= 2 and len(words) - at > 2 and STRONG_CONNECTORS.isdisjoint(words)
