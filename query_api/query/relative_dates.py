"""Times that a question tells from today: `last week`, `in the last 7 days`, `since yesterday`; and words for what is
newest. Days are those of UTC, weeks begin on Monday."""

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from dateutil.relativedelta import relativedelta

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
_NUMBER = "|".join([r"\d{1,3}", *(name.replace(" ", r"\s+") for name in sorted(_NUMBERS, key=len, reverse=True))])
_UNIT = rf"(?:{'|'.join(_UNITS)})"
_TIME = re.compile(
    rf"""(?<![\w'’-])(?:(?P<relation>since|after|before|until|older\s+than|newer\s+than)\s+)?
    (?:(?:in|over|during|within|for|from)\s+)?(?:
      (?:the\s+)?(?:last|past|previous)\s+(?P<number>{_NUMBER})\s+(?P<of>{_UNIT})s?
    | (?:the\s+(?:last|past)|past)\s+(?P<past>{_UNIT})
    | (?P<ago>{_NUMBER})\s+(?P<ago_of>{_UNIT})s?(?:\s+ago|(?P<length>))
    | (?:the\s+)?(?P<which>this|current|last|previous)\s+(?P<unit>week|month|quarter|year)
    | (?P<on>on\s+|last\s+)?(?P<weekday>{"|".join(_WEEKDAYS)})
    | (?P<day>today|yesterday)
    )(?![\w-])(?!\s+of\b)(?!['’]s\s+(?:date|day|time|name)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
# Behind these a time is something to be computed, or what is so now: `get last week`, `known today as`.
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
_NEWEST = re.compile(r"(?<!\bmore\s)\b(?:recent(?:ly)?|latest|newest|what(?:['’]s|\s+is)\s+new)\b", re.IGNORECASE)


class RelativeTime(NamedTuple):
    """From `since` on and before `until`; None where it has no such end. Characters `start..end` (exclusive) say so."""

    start: int
    end: int
    since: datetime | None
    until: datetime | None


def relative_time(text: str, now: datetime) -> RelativeTime | None:
    """The first time that a question tells from `now`, as a restriction of what it asks for."""
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


def asks_for_newest(text: str) -> bool:
    return _NEWEST.search(text) is not None


def time_words(text: str) -> list[tuple[int, int]]:
    """Where a question speaks of a time from today, or of what is newest: (start, end) in characters."""
    matches = [_restriction(text), *_NEWEST.finditer(text)]
    return [match.span() for match in matches if match is not None]


def _restriction(text: str) -> re.Match[str] | None:
    for match in _TIME.finditer(text):
        if match["length"] is not None and "than" not in (match["relation"] or ""):
            continue  # `3 days` alone is a length
        if match["weekday"] and not match["on"] and not match["relation"]:
            continue
        if not match["relation"] and _NO_RESTRICTION.search(text[: match.start()]):
            continue
        if match["day"] and match["day"].lower() == "today" and not match["relation"] and not _HAPPENED.search(text):
            continue
        return match
    return None


def _span(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    """The first moment of a time and the one behind its last. What reaches up to now ends with today."""
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
    if match["unit"]:
        unit = match["unit"].lower()
        this = _begin(unit, today)
        if match["which"].lower() in ("this", "current"):
            return this, this + _UNITS[unit]
        return this - _UNITS[unit], tomorrow if unit == "week" else this
    if match["weekday"]:
        back = (today.weekday() - _WEEKDAYS.index(match["weekday"].lower())) % 7 or 7
        return today - timedelta(days=back), today - timedelta(days=back - 1)
    return (today, tomorrow) if match["day"].lower() == "today" else (today - timedelta(days=1), today)


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
