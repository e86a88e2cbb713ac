"""Times in a question: `on 08-Jan-2001`, `between 2001 and 2003`; from today, as `last week` and `since yesterday`; and
words for what is newest. Days are those of UTC, weeks begin on Monday."""

import re
from calendar import month_name
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from dateutil.relativedelta import relativedelta

from query_api.index.text.field_index import MONTHS, Span, date_span
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


def to_milliseconds(moment: datetime) -> int:
    """Since 1970."""
    return int(moment.astimezone(UTC).timestamp() * 1000)


class TimeExpression(NamedTuple):
    """A span of time that a question names, and where: characters `start..end` (exclusive). `bounds` are the same as
    filters have it: operators with dates, in the question's words."""

    start: int
    end: int
    span: Span
    bounds: tuple[tuple[Operator, str], ...]


def times_in(text: str) -> list[TimeExpression]:
    """From left to right, none within another. A year alone counts after `in` and its like only."""
    found: list[TimeExpression] = []
    for pattern in (_RANGE, _BEFORE, _AFTER, _SINCE, _DECADE, _PLAIN):
        for match in pattern.finditer(text):
            span = _span_of(pattern, match)
            if span is not None and not any(each.start < match.end() and match.start() < each.end for each in found):
                found.append(TimeExpression(match.start(), match.end(), span, _bounds_of(pattern, match)))
    return sorted(found)


def _span_between(first: str, last: str) -> Span | None:
    """From the beginning of the first date to the end of the last."""
    begin, end = date_span(first), date_span(last)
    return Span(begin.start, end.end) if begin and end and begin.start <= end.start else None


def _span_of(pattern: re.Pattern[str], match: re.Match[str]) -> Span | None:
    if pattern is _DECADE:
        return _span_between(match["decade"], str(int(match["decade"]) + 9))
    if pattern is _RANGE:
        return _span_between(match["first"], match["last"])
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


_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "a few": 3, "four": 4, "five": 5}
_NUMBERS |= {"six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12}
_UNITS = {
    "hour": relativedelta(hours=1),
    "day": relativedelta(days=1),
    "week": relativedelta(weeks=1),
    "month": relativedelta(months=1),
    "quarter": relativedelta(months=3),
    "year": relativedelta(years=1),
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = tuple(name.lower() for name in month_name if name)
_NUMBER = "|".join([r"\d{1,3}", *(name.replace(" ", r"\s+") for name in sorted(_NUMBERS, key=len, reverse=True))])
_UNIT = rf"(?:{'|'.join(_UNITS)})"
_TIME = re.compile(
    rf"""(?<![\w'’-])(?:(?P<relation>since|after|before|until|older\s+than|newer\s+than)\s+)?
    (?:(?:in|over|during|within|for|from)\s+)?(?:
      (?:the\s+)?(?:last|past|previous)\s+(?P<number>{_NUMBER})\s+(?P<of>{_UNIT})s?
    | (?:the\s+(?:last|past)|past)\s+(?P<past>{_UNIT})
    | (?P<ago>{_NUMBER})\s+(?P<ago_of>{_UNIT})s?(?:\s+ago|(?P<length>))
    | (?:the\s+)?(?P<which>this|current|last|previous)\s+(?P<unit>week|month|quarter|year)
    | (?P<on>on\s+|last\s+)?(?P<weekday>{"|".join(_WEEKDAYS)})(?!\s+(?:to|until|till|through)\b)
    | (?:last\s+|this\s+)?(?P<month>{"|".join(_MONTHS)})(?![\s,/-]*\d)
    | (?:the\s+)?(?P<day>day\s+before\s+yesterday|today|yesterday)
    )(?![\w-])(?!\s+of\b)(?!['’]s\s+(?:date|day|time|name)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
# After these a time is to be computed, or means now: `get last week`, `known today as`.
_NO_RESTRICTION = re.compile(
    r"\b(?:get|gets|getting|find|calculate|compute|print|return|returns|convert|check|is|are|as|known|called|used|still"
    r"|equals?|(?:date|dates|day|days|start|end|beginning|first|last|number)\s+(?:of|in|from))\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:did|was|were|has|have|had|new|news|happen(?:s|ed|ing)?|chang(?:e|es|ed|ing)|update[sd]?|added|created|posted"
    r"|published|released|wrote|written|arrived|came|went|sent|made|from\s+today|today['’]s)\b",
    re.IGNORECASE,
)
# What documents are asked for by: a change, their kind before the time, the time's own noun.
_CHANGED = (
    r"(?:chang(?:e|ed|es|ing)|updated?|added|created|published|posted|uploaded|modified|edited|wrote|written|arrived"
    r"|decided?)"
)
_CHANGE = re.compile(rf"\b(?:new|news|happened|{_CHANGED})\b", re.IGNORECASE)
_PAST = re.compile(r"\b(?:did|was|were|had)\b|\b(?:who|what|which\s+\w+)\s+\w+ed\b", re.IGNORECASE)
_PRESENT = re.compile(
    r"\b(?:can|could|may|might|must|shall|should|will|would|do|does|is|are|am|gets?\s+\w+ed)\b(?!\s*[|])",
    re.IGNORECASE,
)
_KINDS = (
    r"(?:documents?|docs?|files?|pages?|notes?|posts?|papers?|tickets?|issues?|bugs?|incidents?|alarms?|alerts?|reports?"
    r"|e?-?mails?|messages?|minutes|articles?|records?|entries|letters?|changelogs?|releases?|commits?|updates|uploads?"
    r"|decisions?|reviews?|proposals?|everything|anything|all|changes|news)"
)
_KIND = re.compile(rf"\b{_KINDS}(?:\s+(?:\w+ed|new|written|sent|that\s+\w+\s+\w+))?(?:\s+of)?\s*$", re.IGNORECASE)
_KIND_FIRST = re.compile(rf"\W*(?:(?:which|what|the|any|all|find|list|show|give|me)\s+)*{_KINDS}\b", re.IGNORECASE)
_KIND_ABOUT = re.compile(
    rf"{_KIND_FIRST.pattern}(?=\s+(?:about|on|of|for|in|with|by|to|that|which|from|\w+ed)\b|.*\b{_CHANGED}\b)",
    re.IGNORECASE,
)
_OF_KIND = re.compile(rf"['’]s?\s+(?:\w+\s+){{0,2}}{_KINDS}\b", re.IGNORECASE)
_REQUEST = re.compile(
    r"\W*(?:(?:please|(?:can|could|would|will)\s+(?:you|i|we)|(?:is|are|was|were|has|have)\s+there(?:\s+been)?"
    rf"|do\s+(?:you|i|we)\s+have|what\s+(?:is|are|were)(?=\s+(?:(?:the|all|our|my)\s+)?{_KINDS}\b)"
    rf"|(?:has|have|did|was|were)(?=\s+(?:anything|something|any\s+{_KINDS})\b)"
    r"|(?:show|find|list|give|get|see|open|look\s+for|search\s+for)(?:\s+(?:me|us))?)\s+)+",
    re.IGNORECASE,
)
_NO_REQUEST = re.compile(  # what asks for a fact, or names a deed: `delete files older than a week`
    r"\W*(?:how|when|where|why|whose|whom|is|are|was|were|do|does|did|has|have|had|can|could|may|might|must|shall|should"
    r"|will|would|delet(?:e|ing)|remov(?:e|ing)|purg(?:e|ing)|clear|clean|archiv(?:e|ing)|send|submit|keep|keeping|retain"
    r"|stor(?:e|ing)|export|move|close|return|cancel|expire|rotate|compress|back\s?up|restore|convert|drop|approve)\b",
    re.IGNORECASE,
)
_NEW = r"new(?=\W*(?:[|]|$|(?:in|on|at|to|for|about|with|from|since|by|and)\b))"  # `|` is where the time was
_WHAT_CHANGED = re.compile(
    rf"\W*(?:what|which|who|anything|everything|something|things?)\b(?:['’]s|\s+(?:is|are|was|were|has|have|did)\b)?"
    rf"(?:\s+(?!(?:can|may|must|should|will|would|is|are|do|does)\b)[\w'’]+){{0,5}}?\s+"
    rf"(?<!\bthe\s)(?<!\ba\s)(?<!\ban\s)(?<!\bour\s)(?:{_NEW}|happened(?=\W*[|]\W*$)|{_CHANGED}\b)",
    re.IGNORECASE,
)
_CHANGES_FIRST = re.compile(
    rf"\W*(?:(?:the|any|all|latest|recent)\s+)*(?:{_NEW}|new\s+{_KINDS}\b|(?:news|updates|{_CHANGED})"
    r"(?=\W*(?:[|]|$|(?:in|on|at|to|for|about|with|from|of|by|and)\b)))",
    re.IGNORECASE,
)
_CAME = re.compile(r"\b(?:came\s+out|(?:was|were|is)\s+there\s+about)\b", re.IGNORECASE)
_INTERROGATIVE = re.compile(r"\W*(what|who|which)\b", re.IGNORECASE)
_NEWEST = re.compile(r"(?<!\bmore\s)\b(?:recent(?:ly)?|latest|newest|what(?:['’]s|\s+is)\s+new)\b", re.IGNORECASE)


_RELATIONS = ("since", "older", "newer")


class RelativeTime(NamedTuple):
    """From `since` on and before `until`; None where it has no such end. Characters `start..end` (exclusive) say so."""

    start: int
    end: int
    since: datetime | None
    until: datetime | None


def relative_time(text: str, now: datetime) -> RelativeTime | None:
    """The first time relative to `now` that restricts what a question asks for."""
    match = _restriction(text)
    if match is None:
        return None
    first, end = _span(match, now)
    match " ".join((match["relation"] or "").lower().split()):
        case "since" | "newer than":
            return RelativeTime(*match.span(), first, None)
        case "after":
            return RelativeTime(*match.span(), end, None)
        case "before" | "until" | "older than":
            return RelativeTime(*match.span(), None, first)
    return RelativeTime(*match.span(), first, end)


def asks_for_documents(text: str, time: RelativeTime, *, of_field: bool = False) -> bool:
    """Whether a question asks for documents by the time, as `notes since Monday` and `what changed last week` do. It
    may as well be what the question is about: `open on Sunday`, `orders placed in the last 30 days can be returned`.
    `of_field` is whether it refers to a field that has dates, as in `prices created this week`."""
    before, said, after = text[: time.start], text[time.start : time.end].lower(), text[time.end :]
    if request := _REQUEST.match(before):
        before = before[request.end() :]
    rest = f"{before}{'in' if said.endswith(_MONTHS) else '|'}{after}"
    if _NO_REQUEST.match(before):
        return False
    is_present = _PRESENT.search(rest) is not None
    if _WHAT_CHANGED.match(rest) or (_OF_KIND.match(after) and not is_present):
        return True
    if opening := _INTERROGATIVE.match(before):
        asks = opening[1].lower() == "which" or _PAST.search(rest)
        return bool(asks and not is_present and (_KIND.search(before) or _KIND_FIRST.match(before)))
    if is_present or of_field:
        return not is_present
    of_kind = _CHANGE.search(before) if said.startswith("on ") else (_KIND.search(before) or _KIND_ABOUT.match(before))
    return bool(_CHANGES_FIRST.match(rest) or of_kind or said.startswith(_RELATIONS))


def speaks_of_documents(text: str, start: int, end: int) -> bool:
    """Whether a question with a date asks for documents: it names their kind first or before the date, as in `documents
    about rivers from 2012`, or says what happened to them, as `published in 2025`. A date may as well be of what is
    asked: `our revenue of 2025`."""
    before, rest = text[:start], f"{text[:start]} {text[end:]}"
    return bool(_KIND_FIRST.match(rest) or _KIND.search(before) or _CHANGE.search(rest) or _CAME.search(rest))


def asks_for_newest(text: str) -> bool:
    return _NEWEST.search(text) is not None


def time_words(text: str) -> list[tuple[int, int]]:
    """Where a question speaks of a time from today, or of what is newest: (start, end) in characters."""
    matches = [_restriction(text), *_NEWEST.finditer(text)]
    return [match.span() for match in matches if match is not None]


def _restriction(text: str) -> re.Match[str] | None:
    return next((match for match in _TIME.finditer(text) if _restricts(text, match)), None)


def _restricts(text: str, match: re.Match[str]) -> bool:
    """Whether a time restricts what is asked for, and is not a length, name or part of the subject."""
    relation, day = match["relation"] or "", match["day"] or ""
    if match["length"] is not None and "than" not in relation:
        return False  # `3 days` alone is a length
    if day and match.start() and day[0].isupper() and not text.isupper():
        return False  # a name, such as that of a song
    if relation:
        return True
    said = match[0].lower()
    may_be_a_name = (match["weekday"] and not match["on"] and not said.startswith("from")) or (
        match["month"] and not said.startswith(("in ", "during ", "last ", "this "))  # as in `letters from June`
    )
    if may_be_a_name or (not said.startswith("from") and _NO_RESTRICTION.search(text[: match.start()])):
        return False
    return day.lower() != "today" or _HAPPENED.search(text) is not None


def _span(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    """(start, exclusive end) of a time. What reaches up to now ends with today."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    tomorrow = today + timedelta(days=1)
    if match["number"] or match["past"]:
        unit = (match["of"] or match["past"]).lower()
        return (now if unit == "hour" else today) - _count(match["number"]) * _UNITS[unit], tomorrow
    if match["ago"]:
        unit = match["ago_of"].lower()
        before = now - _count(match["ago"]) * _UNITS[unit]
        first = before.replace(minute=0, second=0, microsecond=0) if unit == "hour" else _begin(unit, before)
        if "than" in (match["relation"] or ""):
            first = before
        return first, first + _UNITS[unit]
    if match["month"]:
        month = _MONTHS.index(match["month"].lower()) + 1
        first, unit = today.replace(year=today.year - (month > today.month), month=month, day=1), "month"
    elif match["unit"]:
        unit = match["unit"].lower()
        first = _begin(unit, today)
        if match["which"].lower() not in ("this", "current"):
            return first - _UNITS[unit], tomorrow if unit == "week" else first
    else:
        first, unit = today - timedelta(days=_days_back(match, today)), "day"
    return first, first + _UNITS[unit]


def _days_back(match: re.Match[str], today: datetime) -> int:
    if match["weekday"]:
        return (today.weekday() - _WEEKDAYS.index(match["weekday"].lower())) % 7 or 7
    return ("yesterday" in match["day"].lower()) + ("before" in match["day"].lower())


def _count(number: str | None) -> int:
    if number is None:
        return 1
    return int(number) if number.isdigit() else _NUMBERS[" ".join(number.lower().split())]


def _begin(unit: str, moment: datetime) -> datetime:
    """The first moment of the day, week, month, quarter or year around a moment."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
        case "year":
            return day.replace(month=1, day=1)
    return day
