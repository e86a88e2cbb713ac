"""The report as Markdown (tables as in GitHub's dialect). Names, ids and questions are shown as they are: none of their
characters is markup, be it Markdown or HTML."""

from collections.abc import Iterator
from html import escape

from query_api.evaluation.findings import CollectionFindings, Evaluation
from query_api.evaluation.report.tables import (
    Table,
    all_tables,
    calibration_text,
    collection_facts,
    facts,
    hardest_table,
)


def as_markdown(found: Evaluation) -> str:
    lines = ["# Evaluation", "", _text(facts(found))]
    for collection in found.collections:
        lines += _collection(collection, found.level)
    return "\n".join(lines) + "\n"


def _collection(found: CollectionFindings, level: float) -> Iterator[str]:
    yield from ("", f"## {_text(found.name)}", "")
    yield _text(" ".join(collection_facts(found)))
    yield ""
    yield from (f"- **{_text(approach.name)}**: {_text(approach.about)}" for approach in found.approaches)
    for table in all_tables(found, level):
        yield from _table(table)
    yield from ("", "### Calibration", "")
    yield from (f"- {_text(calibration_text(approach))}" for approach in found.approaches)
    yield from _table(hardest_table(found))


def _table(table: Table) -> Iterator[str]:
    if not table.rows:
        return
    yield from ("", f"### {_text(table.title)}", "")
    yield _row(table.header)
    yield _row(["---", *("---:" for _ in table.header[1:])])
    yield from (_row(row) for row in table.rows)
    yield from ("", _text(table.note))


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(_text(cell) for cell in cells)} |"


def _text(text: str) -> str:
    """On one line, with nothing in it that would end a cell or begin markup."""
    flat = " ".join(escape(text, quote=False).split())
    for character in "\\`*_[]|~":
        flat = flat.replace(character, f"\\{character}")
    return flat
