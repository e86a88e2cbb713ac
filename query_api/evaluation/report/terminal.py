"""The report on a terminal: the summary, and where the rest stands."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from query_api.evaluation.findings import CollectionFindings, Evaluation
from query_api.evaluation.report.tables import (
    calibration_text,
    chosen_measures,
    collection_facts,
    facts,
    with_interval,
)

SHOWN = 3
WIDTH_ELSEWHERE = 200  # characters a line, where there is no terminal
UNBOUNDED = 10_000


def show(console: Console, found: Evaluation, out: Path | None) -> None:
    """A table for each collection, one line for each approach; no figure is cut, however narrow the console is."""
    narrowed = False
    for collection in found.collections:
        table, whole = fitting_table(console, collection)
        narrowed |= not whole
        console.print(Text(collection.name, style="bold"))
        console.print(table, highlight=False)
        for sentence in collection_facts(collection):
            console.print(Text(sentence, style="dim"))
        if all(approach.calibration is None for approach in collection.approaches):
            console.print(Text("Calibration is not measured: no hit carries a confidence.", style="dim"))
        else:
            for approach in collection.approaches:
                console.print(Text(calibration_text(approach), style="dim"))
        console.print()
    console.print(Text(facts(found), style="dim"))
    if narrowed:
        console.print(
            Text("There is no room for all intervals and measures: a wider terminal, --json and --out have them.")
        )
    console.print(
        Text(
            f"Report: {out / 'report.html'}, with report.md and report.json beside it."
            if out
            else f"In percent, with {found.level:.0%} intervals. Name a folder with --out for comparisons and plots.",
            style="dim",
        )
    )


def fitting_table(console: Console, found: CollectionFindings) -> tuple[Table, bool]:
    """The fullest table that fits into the console's width, and whether it is the whole one.

    The intervals go first, the last measure's before the others; then the measures, but for the first.
    """
    names = chosen_measures(found)[:SHOWN]
    whole = _table(found, names, len(names))
    narrower = [
        *(_table(found, names, intervals) for intervals in range(len(names) - 1, -1, -1)),
        *(_table(found, names[:most], 0) for most in range(len(names) - 1, 0, -1)),
    ]
    unbounded = console.options.update(width=UNBOUNDED)
    fitting = (
        each for each in (whole, *narrower) if Measurement.get(console, unbounded, each).maximum <= console.width
    )
    table = next(fitting, narrower[-1])
    return table, table is whole


def _table(found: CollectionFindings, names: Sequence[str], intervals: int) -> Table:
    """The measures `names` of every approach, the first `intervals` of them with intervals, and the median latency."""
    table = Table(box=None, pad_edge=False)
    for name in ["approach", *names, "p50 ms"]:
        table.add_column(Text(name), justify="left" if name == "approach" else "right", overflow="fold")
    for approach in found.approaches:
        figures = [
            with_interval(approach.measures[name]) if place < intervals else f"{100 * approach.measures[name].mean:.1f}"
            for place, name in enumerate(names)
        ]
        table.add_row(*map(Text, [approach.name, *figures, f"{1000 * approach.latencies['answer'].p50:.1f}"]))
    return table
