"""Times for people, whatever a producer's clock says."""

import pytest

from schemas.clock import rfc3339, since_ms


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
