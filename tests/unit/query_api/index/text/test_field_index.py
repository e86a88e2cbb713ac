"""Dates as people write them."""

from datetime import UTC, datetime, timedelta

import pytest

from query_api.index.text.field_index import date_span


@pytest.mark.parametrize(
    ("text", "first", "behind"),
    [
        ("2001", "2001-01-01", "2002-01-01"),
        ("December, 1958", "1958-12-01", "1959-01-01"),
        ("Feb 2000", "2000-02-01", "2000-03-01"),
        ("2001-12", "2001-12-01", "2002-01-01"),
        ("08-Jan-2001", "2001-01-08", "2001-01-09"),
        ("2000-02-29", "2000-02-29", "2000-03-01"),
        ("8th of January 2001", "2001-01-08", "2001-01-09"),
        ("January 8, 2001", "2001-01-08", "2001-01-09"),
        ("12/31/1999", "1999-12-31", "2000-01-01"),
    ],
)
def test_a_date_is_as_long_as_it_says(text: str, first: str, behind: str) -> None:
    span = date_span(text)
    assert span is not None
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    shown = [(epoch + timedelta(milliseconds=moment)).strftime("%Y-%m-%d") for moment in span]
    assert shown == [first, behind]


def test_a_moment_is_a_millisecond_long_and_has_its_time_zone() -> None:
    assert date_span("1970-01-01T01:00:00.5+01:00") == (500, 501)
    assert date_span("1970-01-01T00:00:01Z") == (1_000, 1_001)


@pytest.mark.parametrize("text", ["", "8", "3.8", "May", "Monday", "PEP 8 in 2001", "2001 final", "9999", "31-31-2001"])
def test_what_names_no_year_or_more_than_a_date_is_no_date(text: str) -> None:
    assert date_span(text) is None


def test_no_text_takes_long_to_refuse() -> None:
    """Were runs of digits cut in all possible ways, each of these would take years."""
    for text in ("2001 " + "1" * 34 + "x", "2001" + "jan" * 11 + "xy!", "2001" + ".-" * 17 + "x"):
        assert date_span(text[:40]) is None
