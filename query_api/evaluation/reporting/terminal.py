"""The report on a terminal: the summary, and where the rest stands."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from query_api.evaluation.reporting.tables import calibration_text, collection_facts, facts, intervals_table
from query_api.judging.findings import Evaluation

SHOWN = 3
WIDTH = 200


def show(console: Console, found: Evaluation, out: Path | None) -> None:
    """A table for each collection, one line for each approach."""
    for collection in found.collections:
        rows = intervals_table(collection, SHOWN)
        table = Table(box=None, pad_edge=False, title=Text(collection.name, style="bold"), title_justify="left")
        for name in [*rows.header, "p50 ms"]:
            table.add_column(Text(name), justify="left" if name == "approach" else "right", no_wrap=True)
        for row, approach in zip(rows.rows, collection.approaches, strict=True):
            answer = approach.latencies["answer"]
            table.add_row(*map(Text, row), f"{1000 * answer.p50:.1f}")
        console.print(
            table, highlight=False, width=WIDTH, crop=False
        )  # a narrow terminal wraps, and shows every figure
        for sentence in collection_facts(collection):
            console.print(Text(sentence, style="dim"))
        if all(approach.calibration is None for approach in collection.approaches):
            console.print(Text("Calibration is not measured: no hit carries a confidence.", style="dim"))
        else:
            for approach in collection.approaches:
                console.print(Text(calibration_text(approach), style="dim"))
        console.print()
    console.print(Text(facts(found), style="dim"))
    console.print(
        Text(
            f"Report: {out / 'report.html'}, with report.md and report.json beside it."
            if out
            else f"In percent, with {found.level:.0%} intervals. Name a folder with --out for comparisons and plots.",
            style="dim",
        )
    )
