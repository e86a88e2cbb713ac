"""Times in a question: `on 08-Jan-2001`, `in December 1958`, `between 2001 and 2003`, `before 2005`."""

import re
from typing import NamedTuple

from query_api.index.text.dates import MONTHS, Span, date_span
from schemas.filters import Operator

_MONTH = rf"{MONTHS}(?![a-z])"
_DATE = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?[\s/-]+(?:of\s+)?{_MONTH}[\s,/-]+[12]\d{{3}}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+[12]\d{{3}}"
    rf"|{_MONTH}[\s,/-]+(?:of\s+)?[12]\d{{3}}|[12]\d{{3}}-\d{{1,2}}(?:-\d{{1,2}})?|\d{{1,2}}/\d{{1,2}}/[12]\d{{3}}|[12]\d{{3}})(?![\w])(?![-/]\w)"
)
_START = r"(?<![\w./-])"
_TO = r"\s*(?:and|to|until|till|through|–|-)\s*"
_RANGE = re.compile(rf"{_START}(?:between|from)\s+(?P<first>{_DATE}){_TO}(?P<last>{_DATE})", re.IGNORECASE)
_BEFORE = re.compile(rf"{_START}(?:before|prior\s+to|earlier\s+than|until)\s+(?P<date>{_DATE})", re.IGNORECASE)
_AFTER = re.compile(rf"{_START}(?:after|later\s+than)\s+(?P<date>{_DATE})", re.IGNORECASE)
_SINCE = re.compile(rf"{_START}since\s+(?P<date>{_DATE})(?:\s+(?:on|onwards?))?", re.IGNORECASE)
_DECADE = re.compile(rf"{_START}(?:the\s+)?(?P<decade>[12]\d\d0)s\b", re.IGNORECASE)
_PLAIN = re.compile(
    rf"{_START}(?P<lead>(?:in|on|of|from|during|year|dated|for|at)\s+(?:the\s+year\s+)?)?(?P<date>{_DATE})",
    re.IGNORECASE,
)
_BARE_YEAR = re.compile(r"[12]\d{3}")
EARLIEST, LATEST = -(2**53), 2**53


class TimeExpression(NamedTuple):
    """A span of time that a question names, and where: characters `start..end` (exclusive). `bounds` are the same as
    filters have it: operators with dates, in the question's words."""

    start: int
    end: int
    span: Span
    bounds: tuple[tuple[Operator, str], ...]


def times_in(text: str) -> list[TimeExpression]:
    """From left to right, none within another. A year by itself counts behind `in` and its like only."""
    found: list[TimeExpression] = []
    for pattern in (_RANGE, _BEFORE, _AFTER, _SINCE, _DECADE, _PLAIN):
        for match in pattern.finditer(text):
            span = _span_of(pattern, match)
            if span is not None and not any(each.start < match.end() and match.start() < each.end for each in found):
                found.append(TimeExpression(match.start(), match.end(), span, _bounds_of(pattern, match)))
    return sorted(found)


def _span_of(pattern: re.Pattern[str], match: re.Match[str]) -> Span | None:
    if pattern is _DECADE:
        first, last = (date_span(str(int(match["decade"]) + more)) for more in (0, 9))
        return Span(first.start, last.end) if first and last else None
    if pattern is _RANGE:
        first, last = date_span(match["first"]), date_span(match["last"])
        return Span(first.start, last.end) if first and last and first.start <= last.start else None
    date = date_span(match["date"])
    if date is None or (pattern is _PLAIN and _BARE_YEAR.fullmatch(match["date"]) and not match["lead"]):
        return None
    if pattern is _BEFORE:
        return Span(EARLIEST, date.start)
    if pattern is _AFTER:
        return Span(date.end, LATEST)
    return Span(date.start, LATEST) if pattern is _SINCE else date


def _bounds_of(pattern: re.Pattern[str], match: re.Match[str]) -> tuple[tuple[Operator, str], ...]:
    if pattern is _DECADE:
        first = int(match["decade"])
        return (">=", str(first)), ("<=", str(first + 9))
    if pattern is _RANGE:
        return (">=", match["first"]), ("<=", match["last"])
    operators: dict[re.Pattern[str], Operator] = {_BEFORE: "<", _AFTER: ">", _SINCE: ">="}
    return ((operators.get(pattern, "="), match["date"]),)
