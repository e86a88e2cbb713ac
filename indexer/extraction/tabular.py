"""What tables and records state: each row relates its subject to its other cells, by the names of their columns.

Parsers write a table as lines of cells with ` | ` between them, the names of its columns first, and a record of CSV or
JSON as `field: value.` one after the other, under a heading that is its name. The subject of a row is its first cell
that is text; of a record its name, or that of the object that a nested field belongs to.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from indexer.documents import ParsedDocument, Section
from indexer.extraction.metadata import objects_of, predicate_of
from indexer.extraction.names import MAX_NAME_CHARACTERS, name_of
from indexer.extraction.relating_fields import is_relation

MAX_COLUMNS = 24
MAX_HEADER_WORDS = 4
MAX_SUBJECT_WORDS = 8
MAX_PREDICATE_CHARACTERS = 40
MIN_FIELDS = 2  # of a record
_CELLS = " | "
_FIELD = re.compile(r"(?:(?<=\. )|^)([^\W\d][\w .\[\]-]{0,60}): ", re.MULTILINE)
_NAMES = ("name", "title", "label")
_INDEX = re.compile(r"\[\d+\]|^\d+$")
_ENDS = " .;,"


class Cell(NamedTuple):
    """What one cell or field states: `start` is its offset, `object` as written."""

    subject: str
    predicate: str
    object: str
    confidence: float
    start: int


def cells_of(parsed: ParsedDocument, section: Section, title: str) -> Iterator[Cell]:
    """What the tables and the record of a section state, in the order of the text."""
    for rows in _tables(parsed.text, section):
        yield from _of_table(rows, title)
    yield from _of_record(parsed.text, section, title)


_Row = list[tuple[int, str]]  # the offset of each cell, and the cell


def _tables(text: str, section: Section) -> Iterator[list[_Row]]:
    """Runs of lines with equally many cells, two lines or more."""
    rows: list[_Row] = []
    at = section.start
    for line in text[section.start : section.end].split("\n"):
        cells = list(_cells(line, at)) if _CELLS in line else []
        if rows and len(cells) != len(rows[0]):
            if len(rows) > 1:
                yield rows
            rows = []
        if 1 < len(cells) <= MAX_COLUMNS:
            rows.append(cells)
        at += len(line) + 1
    if len(rows) > 1:
        yield rows


def _cells(line: str, at: int) -> Iterator[tuple[int, str]]:
    for cell in line.split(_CELLS):
        yield at, cell.strip()
        at += len(cell) + len(_CELLS)


def _of_table(rows: Sequence[_Row], title: str) -> Iterator[Cell]:
    header = [name for _, name in rows[0]]
    columns = zip(*([cell for _, cell in row] for row in rows[1:]), strict=True)
    first = next((at for at, column in enumerate(columns) if _names_things(column)), None)
    if first is None or not all(map(_is_column_name, header[first:])):
        return
    if not any(is_relation(predicate_of(name)) for name in header[first + 1 :]):
        return
    for row in rows[1:]:
        subject = row[first][1].strip(_ENDS)
        if _is_subject(subject):
            for name, (start, value) in zip(header[first + 1 :], row[first + 1 :], strict=True):
                yield from _stated(subject, predicate_of(name), value, start, title)


def _is_column_name(name: str) -> bool:
    return 0 < len(name) <= MAX_PREDICATE_CHARACTERS and name.count(" ") < MAX_HEADER_WORDS and name[0].isalpha()


def _names_things(column: Sequence[str]) -> bool:
    """Whether most cells of a column are text: not numbers, nor empty."""
    return 2 * sum(map(_is_subject, column)) > len(column)


def _is_subject(cell: str) -> bool:
    short = 0 < len(cell) <= MAX_NAME_CHARACTERS and len(cell.split()) <= MAX_SUBJECT_WORDS
    return short and any(map(str.isalpha, cell)) and bool(name_of(cell))


def _stated(subject: str, predicate: str, value: str, start: int, title: str) -> Iterator[Cell]:
    for surface, confidence in objects_of(predicate, value.strip(_ENDS), title, None):
        if any(map(str.isalpha, surface)) and name_of(surface) not in ("", name_of(subject), predicate):
            yield Cell(subject, predicate, surface, confidence, start)


class _Field(NamedTuple):
    """A field of a record: its name at each level, its value, and its offset in the text."""

    path: list[str]
    value: str
    start: int

    @property
    def is_name(self) -> bool:
        return self.path[-1].lower() in _NAMES

    @property
    def owner(self) -> tuple[str, ...]:
        """The object that the field says something of; that around it, where it is the name of a nested one."""
        own = tuple(self.path[:-1])
        return own[:-1] if self.is_name and own else own

    @property
    def name(self) -> str:
        path = self.path[:-1] if self.is_name else self.path
        return next((part for part in reversed(path) if not _INDEX.fullmatch(part)), "")


def _of_record(text: str, section: Section, title: str) -> Iterator[Cell]:
    """What the fields of a record state; those of the document itself are its metadata."""
    fields = _fields(text, section)
    names = {tuple(each.path[:-1]): each.value for each in reversed(fields) if each.is_name}
    names.setdefault((), section.headings[-1] if section.headings else "")
    for each in fields:
        owner = each.owner
        while owner not in names and owner:
            owner = owner[:-1]
        subject = names.get(owner, "").strip(_ENDS)
        is_metadata = name_of(subject) == name_of(title) and len(each.path) == 1 and each.name.islower()
        if each.name and _is_subject(subject) and not subject.startswith("$") and not is_metadata:
            yield from _stated(subject, predicate_of(_INDEX.sub("", each.name)), each.value, each.start, title)


def _fields(text: str, section: Section) -> list[_Field]:
    """The fields of a record; none of a text that only has colons: a record's heading is its name or its place."""
    found = list(_FIELD.finditer(text, section.start, section.end))
    if not section.headings or len(found) < MIN_FIELDS or found[0].start() != section.start:
        return []
    ends = [*(field.start() for field in found[1:]), section.end]
    fields = [
        _Field(field[1].split("."), text[field.end() : end].partition("\n")[0].strip(_ENDS), field.start())
        for field, end in zip(found, ends, strict=True)
    ]
    is_named = section.headings[-1].strip(_ENDS) in {each.value for each in fields}
    return fields if is_named or section.headings[0] == "$" else []
