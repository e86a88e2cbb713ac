"""Percentiles from buckets: within a hundredth of those of the sorted list."""

import pytest

from query_api.analytics.latencies import Latencies


def latencies_of(seconds: list[float]) -> Latencies:
    latencies = Latencies()
    for each in seconds:
        latencies.add(each)
    return latencies


def test_percentiles_are_within_a_hundredth() -> None:
    seconds = [0.001 * 1.01**number for number in range(1_000)]
    told = latencies_of(seconds).told()
    assert told.searches == 1_000
    for share, percentile in ((0.5, told.p50), (0.9, told.p90), (0.95, told.p95), (0.99, told.p99)):
        assert percentile == pytest.approx(seconds[round(share * 1_000) - 1], rel=0.0105)


def test_none_of_nothing_and_one_of_one() -> None:
    assert latencies_of([]).told().p50 is None
    assert latencies_of([0.02]).percentile(0.99) == pytest.approx(0.02, rel=0.0105)


def test_what_no_clock_should_say_is_still_counted() -> None:
    odd = latencies_of([0.0, -1.0, 1e9])
    assert odd.told().searches == 3
