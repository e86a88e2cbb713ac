"""Lag: in records and in seconds, from what the log was seen to hold."""

from collections.abc import Sequence

import pytest
from aiokafka import TopicPartition

from query_api.upkeep.log_watch import HeldBack, Lag, LogWatch
from query_api.upkeep.tailing import Span, TopicMissing, spans_by_topic, spans_of


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def watch(clock: Clock) -> LogWatch:
    return LogWatch(lambda: None, lambda: ("documents",), clock)


def test_nothing_is_known_of_a_log_never_seen() -> None:
    log = watch(Clock())
    assert log.lag("documents", {0: 5}) == {}
    assert log.partition_count("documents") is None
    assert not log.reachable


def test_lag_counts_records_after_the_last_one_applied() -> None:
    log = watch(Clock())
    log.see("documents", {0: Span(0, 10), 1: Span(0, 0), 2: Span(4, 6)})
    assert log.lag("documents", {0: 6}) == {0: Lag(3, 0.0), 1: Lag(0, 0.0), 2: Lag(2, 0.0)}
    assert log.partition_count("documents") == 3


def test_the_oldest_waiting_record_is_as_old_as_it_was_first_seen() -> None:
    clock = Clock()
    log = watch(clock)
    for end in (10, 12, 12, 20):
        log.see("documents", {0: Span(0, end)})
        clock.now += 5
    assert log.lag("documents", {0: 9}) == {0: Lag(10, 15.0)}
    assert log.lag("documents", {0: 11}) == {0: Lag(8, 5.0)}
    assert log.lag("documents", {0: 19}) == {0: Lag(0, 0.0)}


def test_a_topic_made_anew_starts_from_nothing() -> None:
    clock = Clock()
    log = watch(clock)
    log.see("documents", {0: Span(0, 50)})
    clock.now += 5
    log.see("documents", {0: Span(0, 2)})
    assert log.lag("documents", {}) == {0: Lag(2, 0.0)}


async def test_lag_is_unknown_while_kafka_is_away_and_goes_on_from_what_was_seen_before() -> None:
    clock = Clock()
    log = watch(clock)
    log.see("documents", {0: Span(0, 10)})
    log.problem = "Kafka does not answer"
    clock.now += 25
    assert log.lag("documents", {0: 6}) == log.ends("documents") == {}
    assert log.partition_count("documents") == 1
    log.see("documents", {0: Span(0, 12)})
    assert log.lag("documents", {0: 6}) == {0: Lag(5, 25.0)}


async def test_the_lag_of_a_topic_that_was_taken_away_is_unknown() -> None:
    log = watch(Clock())
    log.see("documents", {0: Span(0, 10)})
    log.see("gone", {0: Span(0, 10)})
    await log._look(FakeConsumer())
    assert log.lag("documents", {0: 9, 1: 10}) == {0: Lag(0, 0.0), 1: Lag(0, 0.0)}
    assert log.lag("gone", {0: 9}) == {}


class FakeCluster:
    def topics(self) -> set[str]:
        return {"documents", "indexed", "of somebody else"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {"documents": {1, 0}, "indexed": {0}}[topic]


class FakeConsumer:
    """Answers for three topics, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._client = self

    async def fetch_all_metadata(self) -> FakeCluster:
        self.asked.append("metadata")
        return FakeCluster()

    async def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append("beginnings")
        return dict.fromkeys(partitions, 2)

    async def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append("ends")
        return {each: 10 + each.partition for each in partitions}

    async def high_watermarks(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append("watermarks")
        return {each: 10 + each.partition + 5 * each.partition for each in partitions}


async def test_an_open_transaction_is_told_for_as_long_as_it_holds_records_back() -> None:
    clock = Clock()
    log = watch(clock)
    await log._look(FakeConsumer())
    clock.now += 12
    await log._look(FakeConsumer())
    assert log.held_back == [HeldBack("documents", 1, 11, 5, 12.0)]
    assert log.lag("documents", {0: 9, 1: 10}) == {0: Lag(0, 0.0), 1: Lag(0, 0.0)}
    log.see_watermarks({"documents": {1: Span(2, 16)}}, {TopicPartition("documents", 1): 16})
    assert log.held_back == []


async def test_a_look_at_all_topics_is_three_requests() -> None:
    consumer = FakeConsumer()
    assert await spans_by_topic(consumer, ("documents", "indexed", "not there")) == {
        "documents": {0: Span(2, 10), 1: Span(2, 11)},
        "indexed": {0: Span(2, 10)},
    }
    assert consumer.asked == ["metadata", "beginnings", "ends"]


async def test_a_topic_that_is_not_there_is_told_with_what_to_do() -> None:
    with pytest.raises(TopicMissing, match="there is no topic not there: run `thalweg topics create`"):
        await spans_of(FakeConsumer(), "not there")
