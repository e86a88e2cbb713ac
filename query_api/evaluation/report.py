"""The report of an evaluation as JSON, as Markdown, and as a summary for the terminal."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import msgspec
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as TerminalTable
from rich.text import Text

from query_api.evaluation.html_report import as_html
from query_api.evaluation.report_tables import (
    Table,
    all_tables,
    calibration_text,
    chosen_measures,
    collection_facts,
    facts,
    hardest_table,
    with_interval,
)
from query_api.evaluation.results import CollectionResult, Evaluation

SUMMARY_MEASURES = 3
NO_TERMINAL_WIDTH = 200  # characters a line, where there is no terminal
UNBOUNDED = 10_000


def as_json_text(evaluation: Evaluation) -> str:
    """Every figure, down to the documents each question got. A measure of 0 is included; nothing is left out."""
    return msgspec.json.format(msgspec.json.encode(evaluation), indent=2).decode()


def write_reports(evaluation: Evaluation, folder: Path) -> None:
    """report.json with every figure, report.md, and report.html, which needs no other file; earlier ones are
    replaced."""
    for name, text in (
        ("report.json", as_json_text(evaluation) + "\n"),
        ("report.md", as_markdown(evaluation)),
        ("report.html", as_html(evaluation)),
    ):
        (folder / name).write_text(text, encoding="utf-8")


def as_markdown(evaluation: Evaluation) -> str:
    """With tables of GitHub's dialect. No character of names, ids and questions is markup, be it Markdown or HTML."""
    lines = ["# Evaluation", "", _escaped(facts(evaluation))]
    for collection in evaluation.collections:
        lines += _markdown_section(collection, evaluation.level)
    return "\n".join(lines) + "\n"


def _markdown_section(result: CollectionResult, level: float) -> Iterator[str]:
    yield from ("", f"## {_escaped(result.name)}", "")
    yield _escaped(" ".join(collection_facts(result)))
    yield ""
    yield from (f"- **{_escaped(approach.name)}**: {_escaped(approach.about)}" for approach in result.approaches)
    for table in all_tables(result, level):
        yield from _markdown_table(table)
    yield from ("", "### Calibration", "")
    yield from (f"- {_escaped(calibration_text(approach))}" for approach in result.approaches)
    yield from _markdown_table(hardest_table(result))


def _markdown_table(table: Table) -> Iterator[str]:
    if not table.rows:
        return
    yield from ("", f"### {_escaped(table.title)}", "")
    for row in (table.header, ["---", *("---:" for _ in table.header[1:])], *table.rows):
        yield f"| {' | '.join(_escaped(cell) for cell in row)} |"
    yield from ("", _escaped(table.note))


def _escaped(text: str) -> str:
    """On one line, with nothing in it that would end a cell or begin markup."""
    flat = " ".join(escape(text, quote=False).split())
    for character in "\\`*_[]|~":
        flat = flat.replace(character, f"\\{character}")
    return flat


def show_summary(console: Console, evaluation: Evaluation, out: Path | None) -> None:
    """A table for each collection, one line for each approach; no figure is cut, however narrow the console is."""
    narrowed = False
    for collection in evaluation.collections:
        table, whole = fitting_table(console, collection)
        narrowed |= not whole
        console.print(Text(collection.name, style="bold"))
        console.print(table, highlight=False)
        sentences = collection_facts(collection)
        if all(approach.calibration is None for approach in collection.approaches):
            sentences.append("Calibration is not measured: no hit carries a confidence.")
        else:
            sentences += map(calibration_text, collection.approaches)
        for sentence in sentences:
            console.print(Text(sentence, style="dim"))
        console.print()
    console.print(Text(facts(evaluation), style="dim"))
    if narrowed:
        console.print(
            Text("There is no room for all intervals and measures: a wider terminal, --json and --out have them.")
        )
    more = f"In percent, with {evaluation.level:.0%} intervals. Name a folder with --out for comparisons and plots."
    written = f"Report: {out / 'report.html'}, with report.md and report.json beside it." if out else more
    console.print(Text(written, style="dim"))


def fitting_table(console: Console, result: CollectionResult) -> tuple[TerminalTable, bool]:
    """The fullest table that fits into the console's width, and whether it is the whole one.

    The intervals go first, the last measure's before the others; then the measures, but for the first.
    """
    names = chosen_measures(result)[:SUMMARY_MEASURES]
    whole = _summary_table(result, names, len(names))
    narrower = [
        *(_summary_table(result, names, intervals) for intervals in range(len(names) - 1, -1, -1)),
        *(_summary_table(result, names[:most], 0) for most in range(len(names) - 1, 0, -1)),
    ]
    unbounded = console.options.update(width=UNBOUNDED)
    fitting = (
        each for each in (whole, *narrower) if Measurement.get(console, unbounded, each).maximum <= console.width
    )
    table = next(fitting, narrower[-1])
    return table, table is whole


def _summary_table(result: CollectionResult, names: Sequence[str], intervals: int) -> TerminalTable:
    """The measures `names` of every approach, the first `intervals` of them with intervals, and the median latency."""
    table = TerminalTable(box=None, pad_edge=False)
    for name in ["approach", *names, "p50 ms"]:
        table.add_column(Text(name), justify="left" if name == "approach" else "right", overflow="fold")
    for approach in result.approaches:
        figures = [
            with_interval(approach.measures[name])
            if column < intervals
            else f"{100 * approach.measures[name].mean:.1f}"
            for column, name in enumerate(names)
        ]
        table.add_row(*map(Text, [approach.name, *figures, f"{1000 * approach.latencies['answer'].p50:.1f}"]))
    return table
