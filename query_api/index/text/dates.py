"""Dates as people write them, read as the span of time they name: `1958` is a year, `December, 1958` a month."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from dateutil import parser

MONTHS = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
MAX_DATE_CHARACTERS = 40
MAX_CACHED_DATES = 65_536

# No two parts can share a run of digits or letters, so that no text takes long to refuse.
_LOOKS_LIKE_A_DATE = re.compile(
    rf"(?=.*(?<!\d)[12]\d{{3}}(?!\d))(?:{MONTHS}(?![a-z])|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*(?![a-z])|"
    r"\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?!\d)|\d{1,4}(?!\d)(?:st|nd|rd|th)?|(?:utc|gmt|of|the|[tz])(?![a-z])|"
    r"[+-]\d{2}:?\d{2}(?!\d)|[\s,./+-])+",
    re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULTS = datetime(1904, 1, 1), datetime(1908, 2, 2)  # noqa: DTZ001 - leap years, so that 29 February is read


class Span(NamedTuple):
    """A span of time in milliseconds since 1970, UTC; `end` is exclusive."""

    start: int
    end: int


@lru_cache(MAX_CACHED_DATES)
def date_span(text: str) -> Span | None:
    """The day, month, year or moment that a text names, and nothing else; None for any other text.

    A date needs a year of four digits, so that `3.8` and `8` are none. 01/02/2003 is read as month/day/year.
    """
    text = text.strip()
    if len(text) > MAX_DATE_CHARACTERS or not _LOOKS_LIKE_A_DATE.fullmatch(text):
        return None
    try:
        read, other = (parser.parse(text.replace(" of ", " "), default=default) for default in _DEFAULTS)
        if read.year != other.year:
            return None
        first = read.replace(tzinfo=UTC) if read.tzinfo is None else read
        start = _milliseconds(first)
        return Span(start, start + 1 if ":" in text else _milliseconds(_end_of(first, other)))
    except (ValueError, OverflowError):
        return None


def _end_of(first: datetime, other: datetime) -> datetime:
    """The end of the year, month or day that `first` begins: where `other` differs by its default, none was given."""
    if first.month != other.month:
        return first.replace(year=first.year + 1)
    if first.day != other.day:
        return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return first + timedelta(days=1)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
