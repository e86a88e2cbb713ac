"""The report as one HTML page: style, tables and plots inside, nothing fetched, no script."""

from collections.abc import Iterator
from html import escape

from query_api.evaluation.findings import CollectionFindings, Evaluation
from query_api.evaluation.metrics.measures import CUTOFFS
from query_api.evaluation.report.plots import curves, marks, reliability
from query_api.evaluation.report.tables import (
    Table,
    all_tables,
    calibration_text,
    collection_facts,
    facts,
    hardest_table,
)

# The colours are those of Okabe and Ito (2008), which people with any kind of colour vision can tell apart.
STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #8889; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
.facts, figcaption, .note { opacity: .75; font-size: 14px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } svg { width: 100%; height: auto; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg line, svg polyline { stroke-width: 3; } svg polyline[class] { fill: none; }
svg .grid { stroke: var(--quiet); stroke-width: .5; }
.c0 { stroke: #0072b2; fill: #0072b2; } .c1 { stroke: #d55e00; fill: #d55e00; } .c2 { stroke: #009e73; fill: #009e73; }
.c3 { stroke: #cc79a7; fill: #cc79a7; } .c4 { stroke: #e69f00; fill: #e69f00; } .c5 { stroke: #56b4e9; fill: #56b4e9; }
.c6 { stroke: #b5a900; fill: #b5a900; } .c7 { stroke: #777; fill: #777; } .c8 { stroke: #855c33; fill: #855c33; }
"""


def as_page(found: Evaluation) -> str:
    sections = "".join(part for collection in found.collections for part in _collection(collection, found.level))
    names = ", ".join(collection.name for collection in found.collections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Evaluation of {escape(names)}</title><style>{STYLE}</style></head><body><h1>Evaluation</h1>"
        f'<p class="facts">{escape(facts(found))}</p>{sections}</body></html>\n'
    )


def _collection(found: CollectionFindings, level: float) -> Iterator[str]:
    yield f'<h2>{escape(found.name)}</h2><p class="facts">{escape(" ".join(collection_facts(found)))}</p><ul>'
    yield from (f"<li><b>{escape(each.name)}</b>: {escape(each.about)}</li>" for each in found.approaches)
    yield f'</ul><div class="plots">{"".join(_plots(found, level))}</div>'
    for table in all_tables(found, level):
        yield _table(table)
    yield "<h3>Calibration</h3><ul>"
    yield from (f"<li>{escape(calibration_text(approach))}</li>" for approach in found.approaches)
    yield '</ul><div class="plots">'
    for approach in found.approaches:
        if approach.calibration is not None:
            yield _figure(reliability(f"Reliability of {approach.name}", approach.calibration), approach.name)
    yield f"</div>{_table(hardest_table(found))}"


def _plots(found: CollectionFindings, level: float) -> Iterator[str]:
    main = found.main_measure
    by_approach = {approach.name: approach.measures[main] for approach in found.approaches}
    yield _figure(marks(f"{main} by approach", by_approach), f"{main} in percent, with {level:.0%} intervals")
    for measure, caption in (("R", "Recall"), ("AllGold", "Questions with every relevant document")):
        cutoffs = [cutoff for cutoff in CUTOFFS if f"{measure}@{cutoff}" in found.approaches[0].measures]
        series = {
            each.name: [each.measures[f"{measure}@{cutoff}"].mean for cutoff in cutoffs] for each in found.approaches
        }
        yield _figure(curves(f"{measure}@k by approach", cutoffs, series), f"{caption} among the first k, in percent")


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return (
        f'<h3>{escape(table.title)}</h3><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        f'</table></div><p class="note">{escape(table.note)}</p>'
    )
