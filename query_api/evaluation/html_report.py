"""The report of an evaluation as files; one is an HTML page that fetches nothing, with bars in its tables."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from query_api.evaluation.report import (
    Table,
    all_tables,
    as_json_text,
    as_markdown,
    calibration_facts,
    calibration_table,
    collection_facts,
    facts,
    hardest_table,
    reliability_table,
)
from query_api.evaluation.results import CollectionResult, Evaluation

STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #0072b255; --interval: #d55e0066; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
.facts, .note { opacity: .75; font-size: 14px; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
td[style] { min-width: 4rem; background-repeat: no-repeat; background-image:
  linear-gradient(to right, transparent var(--low, 0%), var(--interval) 0 var(--high, 0%), transparent 0),
  linear-gradient(to right, var(--bar) var(--share), transparent 0);
  background-size: 100% 25%, 100% 100%; background-position: bottom; }
"""
PERCENT = re.compile(r"(\d+\.\d)(?: \[(\d+\.\d), (\d+\.\d)\])?")


def write_reports(evaluation: Evaluation, folder: Path) -> None:
    """report.json with every figure, report.md, and report.html, which needs no other file; earlier ones are
    replaced."""
    for name, text in (
        ("report.json", as_json_text(evaluation) + "\n"),
        ("report.md", as_markdown(evaluation)),
        ("report.html", as_html(evaluation)),
    ):
        (folder / name).write_text(text, encoding="utf-8")


def as_html(evaluation: Evaluation) -> str:
    sections = "".join(part for each in evaluation.collections for part in _collection(each, evaluation.level))
    names = ", ".join(each.name for each in evaluation.collections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Evaluation of {escape(names)}</title><style>{STYLE}</style></head><body><h1>Evaluation</h1>"
        f'<p class="facts">{escape(facts(evaluation))}</p>{sections}</body></html>\n'
    )


def _collection(result: CollectionResult, level: float) -> Iterator[str]:
    yield f'<h2>{escape(result.name)}</h2><p class="facts">{escape(" ".join(collection_facts(result)))}</p><ul>'
    yield from (f"<li><b>{escape(each.name)}</b>: {escape(each.about)}</li>" for each in result.approaches)
    yield "</ul>"
    yield from map(_table, all_tables(result, level))
    yield "<h3>Calibration</h3><ul>"
    yield from (f"<li>{escape(sentence)}</li>" for sentence in calibration_facts(result))
    yield "</ul>"
    yield from map(_table, (calibration_table(result), reliability_table(result), hardest_table(result)))


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join(f"<tr>{''.join(_cell(cell, table) for cell in row)}</tr>" for row in table.rows)
    return (
        f'<h3>{escape(table.title)}</h3><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        f'</table></div><p class="note">{escape(table.note)}</p>'
    )


def _cell(text: str, table: Table) -> str:
    """With a bar for a percentage, and a line below for its interval."""
    found = PERCENT.fullmatch(text) if table.is_percent else None
    if found is None:
        return f"<td>{escape(text)}</td>"
    share, low, high = found.groups()
    interval = f";--low:{low}%;--high:{high}%" if low else ""
    return f'<td style="--share:{share}%{interval}">{text}</td>'
