"""Times as questions name them."""

from datetime import UTC, datetime, timedelta

import pytest

from query_api.query.dates import times_in

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def day(moment: int) -> str | None:
    """None for what lies beyond any date."""
    return None if abs(moment) >= 2**53 else (EPOCH + timedelta(milliseconds=moment)).strftime("%Y-%m-%d")


@pytest.mark.parametrize(
    ("question", "said", "first", "behind"),
    [
        ("created on 08-Jan-2001?", "on 08-Jan-2001", "2001-01-08", "2001-01-09"),
        ("what came in December 1958", "in December 1958", "1958-12-01", "1959-01-01"),
        ("notes of January 8, 2001, please", "of January 8, 2001", "2001-01-08", "2001-01-09"),
        ("PEPs in 2004", "in 2004", "2004-01-01", "2005-01-01"),
        ("2001-02-03 notes", "2001-02-03", "2001-02-03", "2001-02-04"),
        ("between 2001 and March 2003", "between 2001 and March 2003", "2001-01-01", "2003-04-01"),
        ("from 2001 to 2003", "from 2001 to 2003", "2001-01-01", "2004-01-01"),
        ("before 2005", "before 2005", None, "2005-01-01"),
        ("after May 2005", "after May 2005", "2005-06-01", None),
        ("since 2005", "since 2005", "2005-01-01", None),
        ("films of the 1990s", "the 1990s", "1990-01-01", "2000-01-01"),
    ],
)
def test_a_time_is_found_with_its_words(question: str, said: str, first: str | None, behind: str | None) -> None:
    (found,) = times_in(question)
    assert question[found.start : found.end] == said
    assert (day(found.span.start), day(found.span.end)) == (first, behind)


@pytest.mark.parametrize(
    ("question", "bounds"),
    [
        ("created on 08-Jan-2001?", [("=", "08-Jan-2001")]),
        ("between 2001 and March 2003", [(">=", "2001"), ("<=", "March 2003")]),
        ("before 2005", [("<", "2005")]),
        ("after May 2005", [(">", "May 2005")]),
        ("since 2005", [(">=", "2005")]),
        ("films of the 1990s", [(">=", "1990"), ("<=", "1999")]),
    ],
)
def test_a_time_is_told_as_a_filter_would_have_it(question: str, bounds: list[tuple[str, str]]) -> None:
    (found,) = times_in(question)
    assert list(found.bounds) == bounds


@pytest.mark.parametrize(
    "question", ["2014 S/S is an album", "port 2001/tcp", "PEP 2004", "version 3.10", "may 5", "between 2005 and 2001x"]
)
def test_what_only_looks_like_a_time_is_left_alone(question: str) -> None:
    assert times_in(question) == []
