"""Counting in bounded memory, and percentiles from buckets."""

from dataclasses import dataclass

import pytest

from query_api.usage_analytics import BoundedCounter, LatencyHistogram


@dataclass
class Times:
    count: int = 0


def counted(words: list[str], most: int) -> BoundedCounter[Times]:
    counter = BoundedCounter(Times, most)
    for word in words:
        counter[word].count += 1
    return counter


def test_everything_is_counted_exactly_while_there_is_room() -> None:
    counter = counted(list("abracadabra"), 5)
    assert [(key, times.count) for key, times in counter.most_common()] == [
        ("a", 5),
        ("b", 2),
        ("r", 2),
        ("c", 1),
        ("d", 1),
    ]
    assert not counter.approximate


def test_what_is_frequent_outlives_any_number_of_rare_things() -> None:
    words = [
        word for number in range(1_000) for word in ("often", "sometimes" if number % 4 == 0 else f"rare {number}")
    ]
    counter = counted(words, 20)
    first, second, *others = counter.most_common()
    assert (first[0], first[1].count) == ("often", 1_000)
    assert (second[0], second[1].count) == ("sometimes", 250)
    assert len(others) <= 18
    assert counter.approximate


def latencies_of(seconds: list[float]) -> LatencyHistogram:
    latencies = LatencyHistogram()
    for each in seconds:
        latencies.add(each)
    return latencies


def test_percentiles_are_within_a_hundredth() -> None:
    seconds = [0.001 * 1.01**number for number in range(1_000)]
    summary = latencies_of(seconds).summary()
    assert summary.searches == 1_000
    for share, percentile in ((0.5, summary.p50), (0.9, summary.p90), (0.95, summary.p95), (0.99, summary.p99)):
        assert percentile == pytest.approx(seconds[round(share * 1_000) - 1], rel=0.0105)


def test_none_of_nothing_and_one_of_one() -> None:
    assert latencies_of([]).summary().p50 is None
    assert latencies_of([0.02]).percentile(0.99) == pytest.approx(0.02, rel=0.0105)


def test_what_no_clock_should_say_is_still_counted() -> None:
    odd = latencies_of([0.0, -1.0, 1e9])
    assert odd.summary().searches == 3
