"""Times for people, whatever a producer's clock says."""

import pytest

from schemas.clock import Arrivals, rfc3339, since_ms


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (1_500, "1970-01-01T00:00:01.500000+00:00"),
        (-1, "1969-12-31T23:59:59.999000+00:00"),
        (1_790_000_000_000_000, "9999-12-31T23:59:59.999000+00:00"),
        (-(2**62), "0001-01-01T00:00:00+00:00"),
    ],
)
def test_a_clock_years_off_is_shown_as_near_as_can_be(timestamp_ms: int, text: str) -> None:
    assert rfc3339(timestamp_ms) == text


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("90s", 910_000),
        ("15m", 100_000),
        ("1970-01-01T00:00:02Z", 2_000),
        ("1970-01-01T01:00:02+01:00", 2_000),
        ("1970-01-02", 86_400_000),
        ("999999999w", 0),
        ("1900-01-01", 0),
    ],
)
def test_a_time_is_said_as_so_long_ago_or_as_a_date(text: str, expected_ms: int) -> None:
    assert since_ms(text, now_ms=1_000_000) == expected_ms


@pytest.mark.parametrize("text", ["", "yesterday", "5", "-5m", "5y", "2026-13-01"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="15m, 2h, 7d"):
        since_ms(text, now_ms=0)


def age(arrivals: Arrivals, offset: int, timestamp_ms: int | None, now: float = 100.0) -> float:
    """The monotonic and the wall clock show the same here."""
    return arrivals.age_seconds(offset, timestamp_ms, now=now, now_ms=int(now * 1000))


def test_a_record_from_before_the_first_look_is_as_old_as_it_says() -> None:
    arrivals = Arrivals()
    arrivals.see(10, 95.0)
    assert age(arrivals, 4, 68_000) == 32
    assert age(arrivals, 4, None) == 5
    assert age(arrivals, 4, 200_000) == 5, "it was there at the first look, whatever its producer's clock said"


def test_a_record_that_came_between_two_looks_is_as_old_as_they_allow() -> None:
    arrivals = Arrivals()
    arrivals.see(10, 80.0)
    arrivals.see(10, 90.0)
    arrivals.see(12, 91.0)
    assert age(arrivals, 10, 90_500) == 9.5
    assert age(arrivals, 11, 0) == 10
    assert age(arrivals, 11, 900_000) == age(arrivals, 11, None) == 9


def test_a_record_that_was_not_seen_yet_has_no_age() -> None:
    arrivals = Arrivals()
    assert age(arrivals, 0, 0) == 0
    arrivals.see(10, 99.0)
    assert age(arrivals, 10, 0) == 0


def test_a_topic_that_was_replaced_is_seen_as_new() -> None:
    arrivals = Arrivals()
    arrivals.see(50, 10.0)
    arrivals.see(2, 98.0)
    assert age(arrivals, 1, None) == 2
    assert age(arrivals, 1, 60_000) == 40


def test_what_was_forgotten_is_as_old_as_it_says() -> None:
    for forget in ("explicitly", "by number"):
        arrivals = Arrivals(remembered=100 if forget == "explicitly" else 2)
        for end, now in ((10, 10.0), (20, 20.0), (30, 30.0), (40, 40.0)):
            arrivals.see(end, now)
        if forget == "explicitly":
            arrivals.forget_before(25)
        assert age(arrivals, 5, 12_000) == 88
        assert age(arrivals, 35, 12_000) == 70
