"""Names in a sentence: runs of capitals, quoted titles, dates, and identifiers as code writes them.

Which names a text yields depends on the text alone, never on which documents exist.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from indexer.extraction.entity_types import kind_of
from indexer.extraction.lexicon import CLOSING_NOUNS, MONTHS, STOP_WORDS
from indexer.extraction.runs import RUN, name_of, parts_at_start, parts_of

MAX_NAME_CHARACTERS = 120

_QUOTED = re.compile(r"[\"“«]([^\"“”«»\n]{2,100})[\"”»]")
_CODE = re.compile(
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


class Name(NamedTuple):
    """A name at `text[start:end]`. `sure` is False for a common word that may be capitalised only by its place."""

    start: int
    end: int
    name: str
    surface: str
    kind: str
    sure: bool = True


def names_in(text: str, start: int, end: int) -> Iterator[Name]:
    """The runs of capitals in the sentence `text[start:end]`, each with its parts."""
    first = _LEAD.match(text, start, end)
    opening = first.end() if first else start
    joint_start = joint_end = -1
    for match in RUN.finditer(text, start, end):
        run_start, run_end = match.span()
        if run_end - run_start > MAX_NAME_CHARACTERS:
            continue
        run = match.group()
        if run_start == opening or text.startswith("| ", run_start - 2):
            parts = parts_at_start(run)
            if " " not in run and text.startswith(":", run_end):
                continue  # a label: `Note:`, `Author:`
            if not parts:
                name = name_of(run)
                if name not in STOP_WORDS:
                    yield Name(run_start, run_end, name, run, "thing", sure=False)
        else:
            parts = parts_of(run)
        for part in parts:
            yield Name(run_start + part.start, run_start + part.end, part.name, part.surface, part.kind)
        if joint_end >= 0 and text[joint_end:run_start] in _JOINTS and run_end - joint_start <= MAX_NAME_CHARACTERS:
            surface = text[joint_start:run_end]
            yield Name(joint_start, run_end, name_of(surface), surface, "work")
        closing = _CLOSING.match(text, run_end, end)
        if closing and parts:
            surface = f"{parts[0].surface}{closing.group()}"
            yield Name(run_start, closing.end(), name_of(surface), surface, "thing")
        joint_start, joint_end = run_start, run_end if run_start > opening else -1


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
    for match in _CODE.finditer(text, start, end):
        surface = match.group()
        name = name_of(surface)
        if 2 < len(name) <= MAX_NAME_CHARACTERS:
            yield Name(match.start(), match.end(), name, surface, kind_of(name, surface))
