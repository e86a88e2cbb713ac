"""The report of an evaluation as files; one is an HTML page that fetches nothing, with charts in SVG."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple

from query_api.evaluation.ranking_measures import CUTOFFS
from query_api.evaluation.report import (
    Table,
    all_tables,
    as_json_text,
    as_markdown,
    calibration_facts,
    calibration_table,
    calibrations,
    collection_facts,
    facts,
    hardest_table,
    with_interval,
)
from query_api.evaluation.results import Calibration, CollectionResult, Evaluation, Interval

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
COLOURS = 9
WIDTH = 560
MARGIN_TOP, MARGIN_RIGHT, MARGIN_BOTTOM = 14, 20, 40
ROW_HEIGHT = 30
LABEL_HEIGHT = 14
CHART_HEIGHT = 206
SHARE_TICKS = {f"{tick:g}": tick for tick in (0.0, 0.25, 0.5, 0.75, 1.0)}
PERCENT_TICKS = {f"{100 * tick:.0f}": tick for tick in SHARE_TICKS.values()}


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
    yield f'</ul><div class="plots">{"".join(_charts(result, level))}</div>'
    yield from map(_table, all_tables(result, level))
    yield "<h3>Calibration</h3><ul>"
    yield from (f"<li>{escape(sentence)}</li>" for sentence in calibration_facts(result))
    yield '</ul><div class="plots">'
    for name, parts in calibrations(result).items():
        errors = ", ".join(f"{of} {found.expected_error:.3f}" for of, found in parts.items())
        yield _figure(
            reliability_chart(f"Reliability of {name}", parts), f"{name}; expected calibration error: {errors}"
        )
    yield f"</div>{_table(calibration_table(result))}{_table(hardest_table(result))}"


def _charts(result: CollectionResult, level: float) -> Iterator[str]:
    main = result.main_measure
    intervals = {approach.name: approach.measures[main] for approach in result.approaches}
    yield _figure(interval_chart(f"{main} by approach", intervals), f"{main} in percent, with {level:.0%} intervals")
    for measure, caption in (("R", "Recall"), ("AllGold", "Questions with every relevant document")):
        cutoffs = [cutoff for cutoff in CUTOFFS if f"{measure}@{cutoff}" in result.approaches[0].measures]
        series = {
            each.name: [each.measures[f"{measure}@{cutoff}"].mean for cutoff in cutoffs] for each in result.approaches
        }
        svg = cutoff_chart(f"{measure}@k by approach", cutoffs, series)
        yield _figure(svg, f"{caption} among the first k, in percent")


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


class Point(NamedTuple):
    """A mark at shares of the axes, from 0 to 1; `low` to `high` is its interval along x."""

    x: float
    y: float
    title: str
    radius: float = 5
    low: float | None = None
    high: float | None = None


def interval_chart(title: str, intervals: Mapping[str, Interval]) -> str:
    """A mark with its interval for each name, on an axis from 0 to 100 percent."""
    rows = {name: 1 - (row + 0.5) / len(intervals) for row, name in enumerate(intervals)}
    series = [
        [Point(each.mean, rows[name], f"{name}: {with_interval(each)}", low=each.low, high=each.high)]
        for name, each in intervals.items()
    ]
    return _svg(title, series, PERCENT_TICKS, rows, left=110, height=ROW_HEIGHT * len(intervals), grid="x")


def cutoff_chart(title: str, cutoffs: Sequence[int], series: Mapping[str, Sequence[float]]) -> str:
    """A line for each name over the cutoffs, evenly spaced; the names are in a legend below."""
    x_ticks = {f"@{cutoff}": at / max(1, len(cutoffs) - 1) for at, cutoff in enumerate(cutoffs)}
    points = [
        [
            Point(x, value, f"{name} {tick}: {100 * value:.1f}", radius=3)
            for (tick, x), value in zip(x_ticks.items(), values, strict=True)
        ]
        for name, values in series.items()
    ]
    return _svg(title, points, x_ticks, PERCENT_TICKS, legend=list(series))


def reliability_chart(title: str, calibrations: Mapping[str, Calibration]) -> str:
    """The share that is relevant over confidence, a series for each name; a hit on the diagonal means what it says.
    Larger marks: more hits of the series."""
    series = []
    for name, calibration in calibrations.items():
        most = max(each.hits for each in calibration.bins)
        series.append(
            [
                Point(
                    each.confidence,
                    each.right,
                    f"{name}, {each.hits}: confidence {each.confidence:.2f}, right {each.right:.2f}",
                    radius=round(3 + 6 * (each.hits / most) ** 0.5, 1),
                )
                for each in calibration.bins
            ]
        )
    return _svg(
        title,
        series,
        SHARE_TICKS,
        PERCENT_TICKS,
        width=CHART_HEIGHT,
        legend=list(calibrations),
        x_label="confidence",
        diagonal=True,
    )


def _svg(
    title: str,
    series: Sequence[Sequence[Point]],
    x_ticks: Mapping[str, float],
    y_ticks: Mapping[str, float],
    *,
    left: float = 55,
    width: float | None = None,
    height: float = CHART_HEIGHT,
    grid: Literal["x", "y"] = "y",
    legend: Sequence[str] = (),
    x_label: str = "",
    diagonal: bool = False,
) -> str:
    """Series of marks in their colours. A series of several is joined by a line, except beside a diagonal."""
    width = WIDTH - left - MARGIN_RIGHT if width is None else width
    bottom, right = MARGIN_TOP + height, left + width

    def at_x(share: float) -> float:
        return round(left + share * width, 1)

    def at_y(share: float) -> float:
        return round(bottom - share * height, 1)

    parts: list[str] = []
    if grid == "x":
        parts += [_line("grid", x, MARGIN_TOP, x, bottom) for x in map(at_x, x_ticks.values())]
    else:
        parts += [_line("grid", left, y, right, y) for y in map(at_y, y_ticks.values())]
    parts += [_text(at_x(share), bottom + 18, tick) for tick, share in x_ticks.items()]
    parts += [_text(left - 8, at_y(share) + 4, tick, "end") for tick, share in y_ticks.items()]
    if diagonal:
        parts.append(_line("grid", at_x(0), at_y(0), at_x(1), at_y(1)))
    for number, points in enumerate(series):
        colour = f"c{number % COLOURS}"
        if len(points) > 1 and not diagonal:
            joined = " ".join(f"{at_x(point.x)},{at_y(point.y)}" for point in points)
            parts.append(f'<polyline class="{colour}" points="{joined}"/>')
        parts += [
            _line(colour, at_x(point.low), at_y(point.y), at_x(point.high), at_y(point.y))
            for point in points
            if point.low is not None and point.high is not None
        ]
        parts += [_circle(colour, at_x(point.x), at_y(point.y), point.radius, point.title) for point in points]
    below = bottom + MARGIN_BOTTOM + (LABEL_HEIGHT if x_label else 0)
    parts += _legend(legend, below + 4)
    if x_label:
        parts.append(_text(at_x(0.5), bottom + MARGIN_BOTTOM - 4, x_label))
    total = below + (18 * (1 + (len(legend) - 1) // 4) if legend else 0)
    return (
        f'<svg viewBox="0 0 {WIDTH} {total}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg>"
    )


def _legend(names: Sequence[str], top: float) -> Iterator[str]:
    for number, name in enumerate(names):
        x, y = 60 + 120 * (number % 4), top + 18 * (number // 4)
        yield _circle(f"c{number % COLOURS}", x, y - 4, 5, name)
        yield _text(x + 10, y, name, "start")


def _line(style: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{style}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _circle(style: str, x: float, y: float, radius: float, title: str) -> str:
    return f'<circle class="{style}" cx="{x}" cy="{y}" r="{radius}"><title>{escape(title)}</title></circle>'


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
