"""Spreadsheets (XLSX), by calamine: a row is what it is in CSV, in a section under its sheet's name.

Values are read, not formulas; dates as ISO 8601. Rows and columns without a value are left out, as are hidden sheets.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from io import BytesIO

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.csv import Row, write_rows
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.office.archive import Archive
from indexer.parsing.registry import MAX_SHEET_CELLS

_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
_PLACE = re.compile(r"([A-Z]{0,3})(\d{1,7})")
_Value = int | float | str | bool | time | date | datetime | timedelta


def parse(content: bytes) -> ParsedDocument:
    """Raises UnparsableDocument: `malformed`, `protected`, `too_large`."""
    archive = Archive(content, "XLSX")
    archive.require("xl/", "spreadsheet")
    notes = _checked(archive)
    builder = DocumentBuilder()
    try:
        workbook = CalamineWorkbook.from_filelike(BytesIO(content))
        for sheet in workbook.sheets_metadata:
            if sheet.visible != SheetVisibleEnum.Visible:
                notes.append(f"The hidden sheet {sheet.name[:80]!r} is left out.")
            elif sheet.typ == SheetTypeEnum.WorkSheet:
                _write(builder, sheet.name, list(_rows(workbook.get_sheet_by_name(sheet.name))))
    except PasswordError as error:
        raise UnparsableDocument("protected", "The XLSX is locked by a password; send it unlocked.") from error
    except CalamineError as error:
        raise UnparsableDocument("malformed", "The content is not XLSX: its parts do not fit together.") from error
    return builder.finish(notes=notes)


def _write(builder: DocumentBuilder, name: str, rows: list[Row]) -> None:
    if len(rows) == 1:  # nothing that it could name
        builder.open_section((name,))
        builder.row(filter(None, rows[0]))
    else:
        write_rows(builder, rows, name="XLSX", under=(name,))


def _checked(archive: Archive) -> list[str]:
    """What to note of the sheets. calamine makes room for each cell between a sheet's first and its last."""
    without_value = 0
    for sheet in (archive.part(name) for name in filter(_SHEET.fullmatch, archive.names)):
        formulas = () if sheet is None else sheet.iter("{*}f")
        without_value += sum(1 for one in formulas if one.getnext() is None or not one.getnext().text)
        rows = columns = 0
        for cell in () if sheet is None else sheet.iter("{*}row", "{*}c"):
            place = _PLACE.match(cell.get("r", "1"))
            column, row = place.groups() if place else ("A", "1")
            rows, columns = max(rows, int(row)), max(columns, _number(column))
        if rows * columns > MAX_SHEET_CELLS:
            raise UnparsableDocument(
                "too_large", f"A sheet of the XLSX spans {rows * columns:,} cells; the limit is {MAX_SHEET_CELLS:,}."
            )
    return [f"{without_value:,} formulas were saved without their values."] if without_value else []


def _number(column: str) -> int:
    return sum(26**place * (ord(letter) - 64) for place, letter in enumerate(reversed(column)))


def _rows(sheet: CalamineSheet) -> Iterator[Row]:
    return ([_text(value) for value in row] for row in sheet.iter_rows() if any(value != "" for value in row))


def _text(value: _Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"  # as a spreadsheet shows it: 3, 0.1
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    return value.isoformat() if isinstance(value, date | time) else str(value)
