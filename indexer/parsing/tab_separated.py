"""TSV: as CSV, with tabs. In IANA's definition quotation marks mean nothing; spreadsheets set them as in CSV.

So a field is read as a quoted one only where it begins and ends with a quotation mark and all between them are doubled;
any other mark is a character. A quoted field may hold tabs and line ends where its row, read so, has as many fields as
the first one, and its lines, read as they stand, have not; for the first one the next one decides.
"""

import re
from collections.abc import Iterator

from indexer.documents import ParsedDocument
from indexer.parsing.comma_separated import LONG_FIELD, LONG_ROW, Row, read_table, too_large
from indexer.parsing.limits import MAX_TABLE_COLUMNS, MAX_TABLE_FIELD_CHARACTERS, MAX_TABLE_ROW_CHARACTERS

NAME = "TSV"

_BREAK = re.compile(r"\r\n|\n|\r")
_LINE_END = re.compile(r"\r\n|\n|\r|\Z")
_FIELD_END = re.compile(r"\t|\r\n|\n|\r|\Z")
_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"(?=[\t\r\n]|\Z)')  # possessive: else a long field takes 100 MB


def parse(text: str) -> ParsedDocument:
    """Raises UnparsableDocument as `read_table` does."""
    return read_table(_rows(text), name=NAME)


def _rows(text: str) -> Iterator[Row]:
    columns = 0
    start = 0
    while start < len(text):
        row, following = _row(text, start, columns)
        if max(map(len, row)) > MAX_TABLE_FIELD_CHARACTERS:
            raise too_large(NAME, LONG_FIELD)
        if not columns and any(map(str.strip, row)):
            columns = len(row)
        yield row
        start = following


def _row(text: str, start: int, columns: int) -> tuple[Row, int]:
    """The row that begins there, and where the next one does; `columns` is 0 while the first one is read."""
    end, following = _find(_LINE_END, text, start)
    if end - start > MAX_TABLE_ROW_CHARACTERS:
        raise too_large(NAME, LONG_ROW)
    fields = text[start:end].split("\t")
    quoted = [_QUOTED.fullmatch(field) if field.startswith('"') else None for field in fields]
    if any(match is None and field.startswith('"') for field, match in zip(fields, quoted, strict=True)):
        longer, behind = _row_of_quoted_fields(text, start, columns or MAX_TABLE_COLUMNS)
        widths = {line.count("\t") + 1 for line in _BREAK.split(text[start:behind].rstrip("\r\n"))}
        if len(longer) in _widths(text, behind, columns) and widths != {len(longer)}:
            return longer, behind
    row = [field if match is None else _inside(match) for field, match in zip(fields, quoted, strict=True)]
    return row, following


def _widths(text: str, behind: int, columns: int) -> set[int]:
    """How many fields a row should have: as many as the first one; the first one as many as the one behind it."""
    if columns or behind == len(text):
        return {columns or 1}
    end, _ = _find(_LINE_END, text, behind)
    return {text.count("\t", behind, end) + 1, len(_row_of_quoted_fields(text, behind, MAX_TABLE_COLUMNS)[0])}


def _row_of_quoted_fields(text: str, start: int, columns: int) -> tuple[Row, int]:
    """The same where tabs and line ends within quotation marks belong to the field. Of a row of more fields than
    columns, one too many is read: marks that go on for ever would be followed from each line again."""
    row: Row = []
    limit = start + MAX_TABLE_ROW_CHARACTERS
    while True:
        match = _QUOTED.match(text, start, limit)
        if match is not None and match.end() < limit:
            row.append(_inside(match))
            end, following = _find(_FIELD_END, text, match.end())
        else:
            end, following = _find(_FIELD_END, text, start)
            row.append(text[start:end])
        if text[end:following] != "\t" or len(row) > columns:
            return row, following
        start = following


def _inside(match: re.Match[str]) -> str:
    return match[1].replace('""', '"')


def _find(pattern: re.Pattern[str], text: str, start: int) -> tuple[int, int]:
    """Where the next match begins and ends; the pattern matches at the end of the text at the latest."""
    match = pattern.search(text, start)
    return match.span() if match else (len(text), len(text))
