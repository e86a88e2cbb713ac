"""Times for people, whatever a producer's clock says."""

import pytest

from schemas.clock import rfc3339


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
