"""CSV, by the standard library: a section for each row, read as sentences that name the fields.

The first row names the fields, and each row below it is one line of text: `Port: Basel. River: Rhine.`. So a row is
found by its words and with the names of its columns, and a hit holds nothing of the rows beside it. A section's heading
is the row's first field, or `row 17` where that is empty or long; it is no part of the text, and offsets count
characters of the text that was made, as in every other format. Empty fields are left out.

The delimiter is the one of comma, semicolon, tab and bar that parts the first rows into columns alike, found by reading
them with each: `csv.Sniffer` takes letters and blanks for delimiters too, and quadratic time over quotation marks.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import islice

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import clean
from indexer.parsing.document_builder import TextAssembler
from indexer.parsing.limits import (
    MAX_TABLE_COLUMNS,
    MAX_TABLE_FIELD_CHARACTERS,
    MAX_TABLE_ROW_CHARACTERS,
    MAX_TABLE_ROWS,
)
from indexer.parsing.text import write_linked

NAME = "CSV"
LONG_ROW = f"a row of more than {MAX_TABLE_ROW_CHARACTERS:,} characters"
LONG_FIELD = f"a field of more than {MAX_TABLE_FIELD_CHARACTERS:,} characters"
DELIMITERS = ",;\t|"
UNIT_SEPARATOR = "\x1f"
LOOKED_AT_ROWS = 20
LOOKED_AT_CHARACTERS = 64 * 1024
MAX_HEADING_CHARACTERS = 120

_SAID_DELIMITER = re.compile(r"sep=(.)(?:\r\n?|\n)", re.IGNORECASE)  # the first line that spreadsheets write
_ENDS = (".", "!", "?", "。", "…")

Row = list[str]


def parse(text: str) -> ParsedDocument:
    """A table with its delimiter told in a first line `sep=;`, else by its first rows."""
    said = _SAID_DELIMITER.match(text)
    if said is not None:
        return read_table(_rows(text[said.end() :], said[1]), name=NAME)
    return read_table(_rows(text, delimiter_of(text)), name=NAME)


def read_table(rows: Iterable[Row], *, name: str) -> ParsedDocument:
    """The rows below the first one that holds something, each a section.

    Raises UnparsableDocument: `too_large`, and `empty_content` for a table without a row that holds something.
    """
    assembler = TextAssembler()
    fields: Row | None = None
    for number, row in _numbered(rows, name):
        if fields is None:
            fields = row
            continue
        sentences = list(_sentences(fields, row))
        if sentences:
            assembler.open_section((_heading(row, number),))
            write_linked(assembler, " ".join(sentences))
    parsed = assembler.finish()
    if not parsed.text:
        raise UnparsableDocument(
            "empty_content",
            f"Nothing readable is in the {name}: no row with content stands below the first one, which names the "
            "fields.",
        )
    return parsed


def delimiter_of(text: str) -> str:
    """What parts most of the first rows into as many columns as the first one has; of equals, into more columns. Where
    nothing parts the first one, the table has one column, and only ASCII's own separator parts it."""
    evenness = {delimiter: _evenness(text, delimiter) for delimiter in DELIMITERS}
    best = max(DELIMITERS, key=evenness.__getitem__)
    return best if evenness[best][1] else UNIT_SEPARATOR


def _evenness(text: str, delimiter: str) -> tuple[float, int]:
    """(the share of the first rows that have as many columns as the first one, how many that is); (0, 0) for one."""
    beginning = StringIO(text[:LOOKED_AT_CHARACTERS], newline="")
    try:
        widths = [len(row) for row in islice(csv.reader(beginning, delimiter=delimiter), LOOKED_AT_ROWS) if row]
    except csv.Error:
        return 0.0, 0
    if not widths or widths[0] < 2:
        return 0.0, 0
    return widths.count(widths[0]) / len(widths), widths[0]


def _numbered(rows: Iterable[Row], name: str) -> Iterator[tuple[int, Row]]:
    """The rows that hold something with their numbers, the first one 0; fields without blanks around."""
    for number, row in enumerate(rows):
        if number > MAX_TABLE_ROWS:
            raise too_large(name, f"more than {MAX_TABLE_ROWS:,} rows, empty ones counted")
        if len(row) > MAX_TABLE_COLUMNS:
            raise too_large(name, f"a row of more than {MAX_TABLE_COLUMNS:,} columns")
        cells = [" ".join(clean(cell).split()) for cell in row]
        if any(cells):
            yield number, cells


def _rows(text: str, delimiter: str) -> Iterator[Row]:
    """Raises UnparsableDocument: `malformed`, `too_large`."""
    lines = _Lines(text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            lines.begin_row()
            yield row
    except csv.Error as error:
        if "field limit" in str(error):
            raise too_large(NAME, LONG_FIELD) from error
        raise UnparsableDocument(
            "malformed", f"The content is not {NAME}: a quotation mark in line {reader.line_num:,} does not fit."
        ) from error


class _Lines:
    """The lines of a table, with their ends. A row may go on over several: together no longer than the limit."""

    def __init__(self, text: str) -> None:
        self._lines = StringIO(text, newline="")
        self._left = MAX_TABLE_ROW_CHARACTERS

    def begin_row(self) -> None:
        self._left = MAX_TABLE_ROW_CHARACTERS

    def __iter__(self) -> Iterator[str]:
        while line := self._lines.readline(self._left + 1):
            self._left -= len(line)
            if self._left < 0:
                raise too_large(NAME, LONG_ROW)
            yield line


def _sentences(fields: Row, row: Row) -> Iterator[str]:
    """`Field: value.` for each that holds something; what stands behind the last field has the number of its column."""
    for at, value in enumerate(row):
        if value:
            field = (fields[at] if at < len(fields) else "") or f"column {at + 1}"
            yield f"{field}: {value}" if value.endswith(_ENDS) else f"{field}: {value}."


def _heading(row: Row, number: int) -> str:
    return row[0] if 0 < len(row[0]) <= MAX_HEADING_CHARACTERS else f"row {number}"


def too_large(name: str, what: str) -> UnparsableDocument:
    return UnparsableDocument("too_large", f"The {name} holds {what}. Send it in several parts.")
