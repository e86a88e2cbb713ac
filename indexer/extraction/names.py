"""Names in a text: runs of capitalised tokens, quoted titles, dates and code identifiers, each with its entity type.

Which names a text yields depends on the text alone, never on which documents exist. So a long run also yields parts of
itself: whether `New York Governor Nelson Rockefeller` is one thing or two depends on the other documents, and a mention
and the title it means must match whichever arrives first.
"""

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from indexer.extraction.lexicon import (
    ABBREVIATIONS,
    CLOSING_NOUNS,
    CONNECTORS,
    DAYS,
    GIVEN_NAMES,
    HONORIFICS,
    MONTHS,
    ORGANISATION_WORDS,
    PARTICLES,
    PLACE_WORDS,
    SENTENCE_STARTERS,
    STOP_WORDS,
    STRONG_CONNECTORS,
    WEAK_CONNECTORS,
    WORK_WORDS,
)
from schemas.ids import bare_name

MAX_NAME_CHARACTERS = 120
MAX_RUN_TOKENS = 12
CACHED_RUNS = 32_768

# A part of some document; it names nothing without the document.
PART = re.compile(
    r"(?:section|sec|chapter|figure|fig|table|step|page|appendix|footnote|line|item|note|issue|art|article|para|paragraph"
    r"|annex|clause|equation|listing|ext)s?\.? (?:\d[\d.]*|[A-Z])(?: para\.? \d+)?(?!\w)",
    re.IGNORECASE,
)
_ARTICLES = frozenset(("the", "a", "an"))
_LEADING = HONORIFICS | _ARTICLES
_DATE_WORDS = MONTHS | DAYS
_PARTING = CONNECTORS - PARTICLES
_NOTHING: frozenset[str] = frozenset()
_POSSESSIVES = ("'s", "’s", "s'", "s’")
_CODE_LIKE = re.compile(r"[a-z0-9][A-Z]|[a-z]\.[a-z]|_|\d")
_KIND_BY_FIRST_WORD = {
    **dict.fromkeys(("university", "institute", "ministry", "department", "bank", "church", "college"), "organisation"),
    **dict.fromkeys(("lake", "mount", "mt", "river", "fort", "cape", "port", "isle", "gulf"), "place"),
}
_PERSON_OPENINGS = GIVEN_NAMES | HONORIFICS


class Name(NamedTuple):
    """A name at `text[start:end]`, normalised in `name`; the surface is shorter where middle names were left out.

    `sure` is False for a common word that may be capitalised only by its position.
    """

    start: int
    end: int
    name: str
    surface: str
    kind: str
    sure: bool = True


def _upper_case_class() -> str:
    """A regular expression class of all capital letters in Unicode's basic plane."""
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
_QUOTED = re.compile(r"[\"“«]([^\"“”«»\n]{2,100})[\"”»]")
_IDENTIFIER = re.compile(
    r"(?<![\w./@:\\-])"
    r"(?:[a-z]++[A-Z]\w*|_{0,2}[a-z]\w++(?:\.[a-z_]\w+)+|_{0,2}[a-z][^\W_]*+_\w+)"  # no word is looked at backwards
    r"(?![\w@/]|\.\w)"
)
_MONTH = rf"(?:{'|'.join(sorted((month.capitalize() for month in MONTHS), key=lambda word: (-len(word), word)))})\.?"
_DATE = re.compile(rf"\b(?:\d{{1,2}} {_MONTH} |{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? )\d{{4}}\b")
_YEAR = re.compile(r"\d{4}\b")
_LONGEST_BEFORE_YEAR = len("September. 30th, ")
_CLOSING = re.compile(rf" ({'|'.join(sorted(CLOSING_NOUNS, key=lambda word: (-len(word), word)))})\b")
_LEAD = re.compile(r"(?:[-*•>\s]|\d{1,4}[.)]\s)*")
_JOINTS = (": ", " – ")


def names_in(text: str, start: int, end: int) -> Iterator[Name]:
    """The names in runs of capitalised tokens in the sentence `text[start:end]`."""
    first = _LEAD.match(text, start, end)
    opening = first.end() if first else start
    joint_start = joint_end = end  # of the run before, which another may be joined to
    for run, run_start, is_at_start in _runs(text, opening, start, end):
        run_end = run_start + len(run)
        parts = parts_at_start(run) if is_at_start else parts_of(run)
        for part in parts or _doubtful(run, is_at_start=is_at_start):
            yield part._replace(start=run_start + part.start, end=run_start + part.end)
        if text[joint_end:run_start] in _JOINTS and run_end - joint_start <= MAX_NAME_CHARACTERS:
            yield _whole(joint_start, run_end, text[joint_start:run_end], "work")
        if parts and (closing := _CLOSING.match(text, run_end, end)):
            yield _whole(run_start, closing.end(), f"{parts[0].surface}{closing.group()}", "thing")
        joint_start, joint_end = run_start, run_end if run_start > opening else end


def _runs(text: str, opening: int, start: int, end: int) -> Iterator[tuple[str, int, bool]]:
    """Each run, where it begins, and whether it begins the sentence or a cell; no labels: `Note:`, `Author:`."""
    for match in RUN.finditer(text, start, end):
        run = match.group()
        is_at_start = match.start() == opening or text.startswith("| ", match.start() - 2)
        is_label = is_at_start and " " not in run and text.startswith(":", match.end())
        if len(run) <= MAX_NAME_CHARACTERS and not is_label:
            yield run, match.start(), is_at_start


def _whole(start: int, end: int, surface: str, kind: str) -> Name:
    return Name(start, end, name_of(surface), surface, kind)


def _doubtful(run: str, *, is_at_start: bool) -> tuple[Name, ...]:
    """A common word that begins a sentence, where it may be a name."""
    name = name_of(run)
    return (Name(0, len(run), name, run, "thing", sure=False),) if is_at_start and name not in STOP_WORDS else ()


def quoted_in(text: str, start: int, end: int) -> Iterator[Name]:
    """Capitalised phrases between double quotation marks."""
    for match in _QUOTED.finditer(text, start, end):
        surface = match.group(1).strip(" ,.;")
        if surface[:1].isupper() or surface[:1].isdigit():
            name = name_of(surface)
            if len(name) > 3 or (name and name not in STOP_WORDS):
                yield Name(match.start(1), match.end(1), name, surface, "work")


def dates_in(text: str, start: int, end: int) -> Iterator[Name]:
    """Whole dates: day, month and year."""
    for year in _YEAR.finditer(text, start, end):
        match = _DATE.search(text, max(start, year.start() - _LONGEST_BEFORE_YEAR), year.end())
        if match:
            yield Name(match.start(), match.end(), name_of(match.group()), match.group(), "time")


def code_in(text: str, start: int, end: int) -> Iterator[Name]:
    """Identifiers that begin in lower case: `camelCase`, `dotted.name`, `snake_case`."""
    for match in _IDENTIFIER.finditer(text, start, end):
        surface = match.group()
        name = name_of(surface)
        if 2 < len(name) <= MAX_NAME_CHARACTERS:
            yield Name(match.start(), match.end(), name, surface, kind_of(name, surface))


def kind_of(name: str, surface: str) -> str:
    """The entity type, by the words of a name: person, organisation, place, time, work, identifier, else thing."""
    if " " not in name:
        return "identifier" if _CODE_LIKE.search(surface) and not surface[0].isdigit() else "thing"
    words = name.split(" ")
    first, last = words[0].rstrip("."), words[-1].rstrip(".")
    kind = _kind_by_last_word(last) or _KIND_BY_FIRST_WORD.get(first)
    if kind is None and last[:1].isdigit():
        kind = "identifier" if len(words) == 2 else "thing"
        kind = kind if _DATE_WORDS.isdisjoint(words) else "time"
    if kind is None and first in _PERSON_OPENINGS and len(words) <= 5:
        kind = "person"
    return kind or "thing"


def _kind_by_last_word(word: str) -> str | None:
    if word in ORGANISATION_WORDS:
        return "organisation"
    if word in PLACE_WORDS:
        return "place"
    return "work" if word in WORK_WORDS else None


@lru_cache(maxsize=CACHED_RUNS)
def parts_at_start(run: str) -> tuple[Name, ...]:
    """The names of a run at the start of a sentence, where a common word is capitalised anyway."""
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
    skipped = len(run) - len(rest)
    shifted = [part._replace(start=part.start + skipped, end=part.end + skipped) for part in parts_of(rest)]
    name = name_of(run)
    whole = [Name(0, len(run), name, run, kind_of(name, run))] if first.lower() in _ARTICLES else []
    return (*whole, *shifted)


@lru_cache(maxsize=CACHED_RUNS)
def parts_of(run: str) -> tuple[Name, ...]:
    """The names in a run, by positions in it: itself, and parts without titles, articles, numbers and connectors."""
    if " " not in run and "\u00a0" not in run:
        name = name_of(run)
        return (Name(0, len(run), name, run, kind_of(name, run)),) if _names_something(name, run) else ()
    tokens = [match.span() for match in _NOT_BLANK.finditer(run)]
    words = [run[low:high] for low, high in tokens]
    parts = []
    for low, high in sorted(_spans(words)):
        start, end = tokens[low][0], tokens[high - 1][1]
        surface = run[start:end]
        name = name_of(surface)
        if _names_something(name, surface):
            parts.append(Name(start, end, name, surface, kind_of(name, surface)))
        if high - low in (3, 4) and _is_full_name(words[low:high], name, surface):
            surface = f"{words[low]} {words[high - 1]}"
            parts.append(Name(start, end, name_of(surface), surface, "person"))
    return tuple(parts)


def name_of(surface: str) -> str:
    """`bare_name`, with a fast path where only case and edges change."""
    if _PLAIN.fullmatch(surface):
        return surface.lower().strip(" .-/&_")
    return bare_name(surface)


def _is_full_name(words: list[str], name: str, surface: str) -> bool:
    if words[0].lower() not in GIVEN_NAMES or any(word in CONNECTORS or word.endswith(_POSSESSIVES) for word in words):
        return False
    return kind_of(name, surface) == "person"


def _names_something(name: str, surface: str) -> bool:
    if PART.fullmatch(surface):
        return False
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
    """The whole run, and the ranges between its connectors, possessives and personal titles."""
    whole = [(0, len(words))]
    if CONNECTORS.isdisjoint(words):
        return whole + _pieces(words, _NOTHING)
    spans = _pieces(words, WEAK_CONNECTORS)
    for low, high in _pieces(words, _PARTING):
        # a single word before `of` is a common noun: `University of`, `Duke of`
        if high - low > 1 or high == len(words) or words[high] not in STRONG_CONNECTORS:
            spans.append((low, high))
    return spans if _is_enumeration(words) else whole + spans


def _add_parts(spans: set[tuple[int, int]], words: list[str], low: int, high: int) -> None:
    """Add the name without title, article, initials or number, and the ends of a long one."""
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
    """Whether the word is a name without its number: true of `Python 3`, not of `PEP 8`."""
    return number[0].isdigit() and not (word.isupper() and len(word) > 1)


def _spans_of_two(first: str, last: str) -> set[tuple[int, int]]:
    if first[0].isdigit() or first.rstrip(".").lower() in _LEADING:
        return {(0, 2), (1, 2)}
    return {(0, 2), (0, 1)} if _is_counted(first, last) else {(0, 2)}


def _trimmed(words: list[str], low: int, high: int) -> tuple[int, int] | None:
    """The range without connectors at its ends and without a number after one (`in 1948`); None if nothing is left."""
    while low < high and words[low] in CONNECTORS:
        low += 1
    while high - low > 1:
        is_trailing_number = words[high - 1].isdigit() and words[high - 2] in CONNECTORS
        if not is_trailing_number and words[high - 1] not in CONNECTORS:
            break
        high -= 1
    return (low, high) if low < high else None


def _pieces(words: list[str], breakers: frozenset[str]) -> list[tuple[int, int]]:
    """The ranges between connectors, after possessives, and around personal titles."""
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
    """Whether a sentence joins several names: `Alan Menken and Howard Ashman`, `Ghana and to Mali`."""
    if "and" not in words:
        return False
    at = words.index("and")
    if words[at + 1] in WEAK_CONNECTORS:
        return True
    return at >= 2 and len(words) - at > 2 and STRONG_CONNECTORS.isdisjoint(words)
