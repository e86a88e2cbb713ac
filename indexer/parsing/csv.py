"""CSV and TSV: each row becomes a section of sentences that name the fields.

The first row names the fields; each further row is one line of text such as `Port: Basel. River: Rhine.`. A section's
heading is the row's first field, or `row 17` where that is empty or long; it is not part of the text. Empty fields are
left out. Lines above the names (a report's title and date, comments) are text before the rows.

CSV is read by the standard library. The delimiter is the one of comma, semicolon, tab and bar that splits the first
rows most evenly: `csv.Sniffer` also accepts letters and blanks, and takes quadratic time over quotation marks.

TSV by IANA's definition has no quoting, but spreadsheets quote as in CSV. So a field is unquoted only where it begins
and ends with a quotation mark and all between are doubled. A quoted field may hold tabs and line ends if its row, read
so, has as many fields as the first row, and its lines, read separately, have not; for the first row the next one
decides.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain, islice

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import normalise
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.registry import (
    MAX_TABLE_COLUMNS,
    MAX_TABLE_FIELD_CHARACTERS,
    MAX_TABLE_ROW_CHARACTERS,
    MAX_TABLE_ROWS,
)
from indexer.parsing.text import field_sentence, write_linked

LONG_ROW = f"a row of more than {MAX_TABLE_ROW_CHARACTERS:,} characters"
LONG_FIELD = f"a field of more than {MAX_TABLE_FIELD_CHARACTERS:,} characters"
DELIMITERS = ",;\t|"
COMMENT = "#"
UNIT_SEPARATOR = "\x1f"
SAMPLE_ROWS = 20
SAMPLE_CHARACTERS = 64 * 1024
MAX_HEADING_CHARACTERS = 120

_DELIMITER_LINE = re.compile(r"sep=(.)(?:\r\n?|\n)", re.IGNORECASE)  # the first line that spreadsheets write
_NUMBER = re.compile(r"[^\W\d_]{0,3}[\s€$£¥+-]*\d[\d.,:/\s%-]*[^\W\d_]{0,2}")
_BREAK = re.compile(r"\r\n|\n|\r")
_LINE_END = re.compile(r"\r\n|\n|\r|\Z")
_FIELD_END = re.compile(r"\t|\r\n|\n|\r|\Z")
_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"(?=[\t\r\n]|\Z)')  # possessive: else a long field takes 100 MB

Row = list[str]


def parse_csv(text: str) -> ParsedDocument:
    """The delimiter is that of a first line such as `sep=;`, else the best for the first rows.

    Raises UnparsableDocument: `malformed`, `too_large`, `empty_content`.
    """
    declared = _DELIMITER_LINE.match(text)
    if declared is not None:
        return _table(_csv_rows(text[declared.end() :], declared[1]), name="CSV")
    return _table(_csv_rows(text, _delimiter(text)), name="CSV")


def parse_tsv(text: str) -> ParsedDocument:
    """Raises UnparsableDocument: `too_large`, `empty_content`."""
    return _table(tsv_rows(text), name="TSV")


def _table(rows: Iterable[Row], *, name: str) -> ParsedDocument:
    builder = DocumentBuilder()
    has_rows = write_rows(builder, rows, name=name)
    if not has_rows:
        raise UnparsableDocument(
            "empty_content",
            f"Nothing readable is in the {name}: there is no row with content below the first one, which names the "
            "fields.",
        )
    return builder.finish()


def write_rows(builder: DocumentBuilder, rows: Iterable[Row], *, name: str, under: tuple[str, ...] = ()) -> bool:
    """Write each row as a section under these headings: the first one below a title or comments, which are text, names
    the fields. Whether there was a row below it. Raises `too_large`."""
    numbered = _numbered(rows, name)
    sample = list(islice(numbered, SAMPLE_ROWS))
    above = _rows_above(sample)
    if above and under:
        builder.open_section(under)
    for _, row in sample[:above]:
        write_linked(builder, " ".join(filter(None, row)))
        builder.break_line()
    first, fields = sample[above] if sample else (0, [])
    has_rows = False
    for number, row in chain(sample[above + 1 :], numbered):
        sentences = list(_sentences(fields, row))
        if sentences:
            builder.open_section((*under, _heading(row, number - first)))
            write_linked(builder, " ".join(sentences))
            has_rows = True
    return has_rows


def _numbered(rows: Iterable[Row], name: str) -> Iterator[tuple[int, Row]]:
    """(number, cells) of each row that is not empty; the first row is number 0. Cells are stripped."""
    for number, row in enumerate(rows):
        if number > MAX_TABLE_ROWS:
            raise _too_large(name, f"more than {MAX_TABLE_ROWS:,} rows, empty ones counted")
        if len(row) > MAX_TABLE_COLUMNS:
            raise _too_large(name, f"a row of more than {MAX_TABLE_COLUMNS:,} columns")
        cells = [" ".join(normalise(cell).split()) for cell in row]
        if any(cells):
            yield number, cells


def _sentences(fields: Row, row: Row) -> Iterator[str]:
    """`Field: value.` for each value; one beyond the named fields gets the number of its column."""
    for at, value in enumerate(row):
        if value:
            field = (fields[at] if at < len(fields) else "") or f"column {at + 1}"
            yield field_sentence(field, value)


def _heading(row: Row, number: int) -> str:
    return row[0] if 0 < len(row[0]) <= MAX_HEADING_CHARACTERS else f"row {number}"


def _too_large(name: str, what: str) -> UnparsableDocument:
    return UnparsableDocument("too_large", f"The {name} holds {what}. Send it in several parts.")


def _rows_above(rows: Sequence[tuple[int, Row]]) -> int:
    """How many of the first rows are above the names of the fields, of (number, cells) without empty rows.

    Such rows are narrow (a cell or two of a wider table) or comments. The names are a row as wide as most, with such a
    row below it, and are apart: after an empty line, after rows of one cell each above three fields or more, or above
    values of another kind. Else the first row has the names.
    """
    widths = [len(row) for _, row in rows if len(row) > 1]
    width = max(set(widths), key=lambda one: (widths.count(one), one), default=0)
    above = 0
    while above < len(rows) - 1 and (_is_narrow(rows[above][1], width) or _is_remark([row for _, row in rows[above:]])):
        above += 1
    if not above or above == len(rows) - 1 or not len(rows[above][1]) == len(rows[above + 1][1]) == width:
        return 0
    (before, last), (number, names), (_, values) = rows[above - 1 : above + 2]
    is_apart = number > before + 1 or last[0].startswith(COMMENT)
    is_title = width > 2 and all(sum(map(bool, row)) == 1 for _, row in rows[:above])
    return above if is_apart or is_title or _differ_in_kind(names, values) else 0


def _is_narrow(row: Row, width: int) -> bool:
    filled = sum(map(bool, row))
    if row[0].startswith(COMMENT):
        return len(row) != width or row[0].startswith(2 * COMMENT)
    return (len(row) < width and filled <= max(2, width // 2)) or (width > 2 and filled == 1 and row[0] != "")


def _is_remark(rows: list[Row]) -> bool:
    """Whether the first row is a comment with commas in it, as the next one names the fields."""
    return rows[0][0].startswith(COMMENT) and len(rows) > 2 and _differ_in_kind(rows[1], rows[2])


def _differ_in_kind(names: Row, values: Row) -> bool:
    """Whether words are above numbers, and no number is above anything."""
    return not any(map(_NUMBER.fullmatch, names)) and any(map(_NUMBER.fullmatch, values))


def _delimiter(text: str) -> str:
    """The delimiter that gives most of the first rows the width of the first one; of equals, the greater width.

    Where none splits the first row the table has one column.
    """
    evenness = {delimiter: _evenness(text, delimiter) for delimiter in DELIMITERS}
    best = max(DELIMITERS, key=evenness.__getitem__)
    return best if evenness[best][1] else UNIT_SEPARATOR


def _evenness(text: str, delimiter: str) -> tuple[float, int]:
    """(share of the first rows as wide as the one that names the fields, that width); (0, 0) for a single column."""
    sample = StringIO(text[:SAMPLE_CHARACTERS], newline="")
    try:
        rows = [
            (number, [cell.strip() for cell in row])
            for number, row in enumerate(islice(csv.reader(sample, delimiter=delimiter), SAMPLE_ROWS))
            if any(map(str.strip, row))
        ]
    except csv.Error:
        return 0.0, 0
    widths = [len(row) for _, row in rows[_rows_above(rows) :]]
    if not widths or widths[0] < 2:
        return 0.0, 0
    return widths.count(widths[0]) / len(widths), widths[0]


def _csv_rows(text: str, delimiter: str) -> Iterator[Row]:
    lines = _Lines(text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            lines.begin_row()
            yield row
    except csv.Error as error:
        if "field limit" in str(error):
            raise _too_large("CSV", LONG_FIELD) from error
        raise UnparsableDocument(
            "malformed", f"The content is not CSV: a quotation mark in line {reader.line_num:,} does not fit."
        ) from error


class _Lines:
    """The lines of a table with their ends. A row may span several, together no longer than the limit."""

    def __init__(self, text: str) -> None:
        self._lines = StringIO(text, newline="")
        self._left = MAX_TABLE_ROW_CHARACTERS

    def begin_row(self) -> None:
        self._left = MAX_TABLE_ROW_CHARACTERS

    def __iter__(self) -> Iterator[str]:
        while line := self._lines.readline(self._left + 1):
            self._left -= len(line)
            if self._left < 0:
                raise _too_large("CSV", LONG_ROW)
            yield line


def tsv_rows(text: str) -> Iterator[Row]:
    columns = 0
    start = 0
    while start < len(text):
        row, following = _tsv_row(text, start, columns)
        if max(map(len, row)) > MAX_TABLE_FIELD_CHARACTERS:
            raise _too_large("TSV", LONG_FIELD)
        if not columns and any(map(str.strip, row)):
            columns = len(row)
        yield row
        start = following


def _tsv_row(text: str, start: int, columns: int) -> tuple[Row, int]:
    """(the row at `start`, where the next one begins); `columns` is 0 for the first row."""
    end, following = _find(_LINE_END, text, start)
    if end - start > MAX_TABLE_ROW_CHARACTERS:
        raise _too_large("TSV", LONG_ROW)
    fields = text[start:end].split("\t")
    quoted = [_QUOTED.fullmatch(field) if field.startswith('"') else None for field in fields]
    if any(match is None and field.startswith('"') for field, match in zip(fields, quoted, strict=True)):
        longer, after = _multiline_tsv_row(text, start, columns or MAX_TABLE_COLUMNS)
        widths = {line.count("\t") + 1 for line in _BREAK.split(text[start:after].rstrip("\r\n"))}
        if len(longer) in _expected_widths(text, after, columns) and widths != {len(longer)}:
            return longer, after
    row = [field if match is None else _unquoted(match) for field, match in zip(fields, quoted, strict=True)]
    return row, following


def _expected_widths(text: str, after: int, columns: int) -> set[int]:
    """How many fields a row should have: as many as the first one; the first one as many as the next."""
    if columns or after == len(text):
        return {columns or 1}
    end, _ = _find(_LINE_END, text, after)
    return {text.count("\t", after, end) + 1, len(_multiline_tsv_row(text, after, MAX_TABLE_COLUMNS)[0])}


def _multiline_tsv_row(text: str, start: int, columns: int) -> tuple[Row, int]:
    """As `_tsv_row`, with tabs and line ends inside quotation marks as part of the field.

    Stops at one field more than `columns`: else unclosed quotation marks would be followed from each line again.
    """
    row: Row = []
    limit = start + MAX_TABLE_ROW_CHARACTERS
    while True:
        match = _QUOTED.match(text, start, limit)
        if match is not None and match.end() < limit:
            row.append(_unquoted(match))
            end, following = _find(_FIELD_END, text, match.end())
        else:
            end, following = _find(_FIELD_END, text, start)
            row.append(text[start:end])
        if text[end:following] != "\t" or len(row) > columns:
            return row, following
        start = following


def _unquoted(match: re.Match[str]) -> str:
    return match[1].replace('""', '"')


def _find(pattern: re.Pattern[str], text: str, start: int) -> tuple[int, int]:
    """The span of the next match; the pattern matches at the end of the text at the latest."""
    match = pattern.search(text, start)
    return match.span() if match else (len(text), len(text))
