"""Plots as inline SVG: marks with intervals, curves over k, reliability diagrams. The page's style has the colours."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from query_api.evaluation.metrics.calibration import Calibration
from query_api.evaluation.metrics.uncertainty import Interval

WIDTH = 560
LEFT = 110
RIGHT = 20
ROW = 30
TOP = 14
HEIGHT = 260
BOTTOM = 40
COLOURS = 9

_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


class _Frame(NamedTuple):
    """The inside of a plot, in pixels; `across` and `up` place shares from 0 to 1."""

    left: float
    top: float
    width: float
    height: float

    def across(self, share: float) -> float:
        return round(self.left + share * self.width, 1)

    def up(self, share: float) -> float:
        return round(self.top + (1 - share) * self.height, 1)


def marks(title: str, intervals: Mapping[str, Interval]) -> str:
    """A mark with its interval for each name, on an axis from 0 to 100 percent."""
    frame = _Frame(LEFT, TOP, WIDTH - LEFT - RIGHT, ROW * len(intervals))
    parts = _vertical_grid(frame)
    for number, (name, interval) in enumerate(intervals.items()):
        y = TOP + ROW * (number + 0.5)
        colour = _colour(number)
        shown = f"{name}: {100 * interval.mean:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
        low, mean, high = (frame.across(share) for share in (interval.low, interval.mean, interval.high))
        parts += [
            _text(LEFT - 10, y + 4, name, "end"),
            f'<line class="{colour}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>',
            f'<circle class="{colour}" cx="{mean}" cy="{y}" r="5"><title>{escape(shown)}</title></circle>',
        ]
    return _svg(title, parts, TOP + frame.height + BOTTOM)


def curves(title: str, positions: Sequence[int], series: Mapping[str, Sequence[float]]) -> str:
    """A line for each name over the cutoffs, which stand evenly spaced; names stand in a legend below."""
    frame = _Frame(LEFT / 2, TOP, WIDTH - LEFT / 2 - RIGHT, HEIGHT - TOP - BOTTOM)
    parts = _horizontal_grid(frame)
    places = [frame.across(number / max(1, len(positions) - 1)) for number in range(len(positions))]
    parts += [_text(x, HEIGHT - BOTTOM + 18, f"@{cutoff}") for x, cutoff in zip(places, positions, strict=True)]
    for number, (name, values) in enumerate(series.items()):
        points = list(zip(places, (frame.up(value) for value in values), strict=True))
        drawn = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline class="{_colour(number)}" points="{drawn}"/>')
        parts += [
            f'<circle class="{_colour(number)}" cx="{x}" cy="{y}" r="3"><title>{escape(name)} @{cutoff}: '
            f"{100 * value:.1f}</title></circle>"
            for (x, y), cutoff, value in zip(points, positions, values, strict=True)
        ]
        x, y = 60 + 120 * (number % 4), HEIGHT + 4 + 18 * (number // 4)
        parts += [f'<circle class="{_colour(number)}" cx="{x}" cy="{y - 4}" r="5"/>', _text(x + 10, y, name, "start")]
    return _svg(title, parts, HEIGHT + 18 * (1 + (len(series) - 1) // 4))


def reliability(title: str, calibration: Calibration) -> str:
    """The share that was right over confidence; a hit on the diagonal means what it says. Larger marks: more hits."""
    frame = _Frame(LEFT / 2, TOP, HEIGHT - TOP - BOTTOM, HEIGHT - TOP - BOTTOM)
    most = max(each.hits for each in calibration.bins)
    parts = _horizontal_grid(frame)
    parts += [_text(frame.across(tick), HEIGHT - BOTTOM + 18, f"{tick:g}") for tick in _TICKS]
    parts.append(
        f'<line class="grid" x1="{frame.across(0)}" y1="{frame.up(0)}" x2="{frame.across(1)}" y2="{frame.up(1)}"/>'
    )
    parts += [
        f'<circle class="c0" cx="{frame.across(each.confidence)}" cy="{frame.up(each.right)}" '
        f'r="{3 + 6 * (each.hits / most) ** 0.5:.1f}"><title>{each.hits} hits: confidence {each.confidence:.2f}, '
        f"right {each.right:.2f}</title></circle>"
        for each in calibration.bins
    ]
    parts.append(_text(frame.across(0.5), HEIGHT - 4, "confidence"))
    return _svg(title, parts, HEIGHT)


def _vertical_grid(frame: _Frame) -> list[str]:
    bottom = frame.top + frame.height
    lines = [
        f'<line class="grid" x1="{frame.across(tick)}" x2="{frame.across(tick)}" y1="{frame.top}" y2="{bottom}"/>'
        for tick in _TICKS
    ]
    return lines + [_text(frame.across(tick), bottom + 18, f"{100 * tick:.0f}") for tick in _TICKS]


def _horizontal_grid(frame: _Frame) -> list[str]:
    right = frame.left + frame.width
    lines = [
        f'<line class="grid" x1="{frame.left}" x2="{right}" y1="{frame.up(tick)}" y2="{frame.up(tick)}"/>'
        for tick in _TICKS
    ]
    return lines + [_text(frame.left - 8, frame.up(tick) + 4, f"{100 * tick:.0f}", "end") for tick in _TICKS]


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _colour(number: int) -> str:
    return f"c{number % COLOURS}"


def _svg(title: str, parts: Sequence[str], height: float) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg>"
    )
