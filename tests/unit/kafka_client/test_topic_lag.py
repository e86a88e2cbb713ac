"""Lag: in records and in seconds, from what the log was seen to hold."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException

from kafka_client.topic_lag import Lag, LagMonitor, OpenTransaction
from kafka_client.topic_offsets import Span, TopicMissing, spans_by_topic, spans_of
from kafka_client.unreadable_batches import UnreadableBatch


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def watch(clock: Clock, applied: Mapping[int, int] | None = None) -> LagMonitor:
    return LagMonitor(lambda: None, lambda: {"documents": applied or {}}, clock, lambda: int(clock.now * 1000))


def test_lag_of_topic_never_seen_is_unknown() -> None:
    log = watch(Clock())
    assert log.lag("documents", {0: 5}) == {}
    assert log.partition_count("documents") is None
    assert not log.reachable


def test_lag_counts_records_after_the_last_one_applied() -> None:
    log = watch(Clock())
    log.see("documents", {0: Span(0, 10), 1: Span(0, 0), 2: Span(4, 6)})
    assert log.lag("documents", {0: 6}) == {0: Lag(3, 0.0), 1: Lag(0, 0.0), 2: Lag(2, 0.0)}
    assert log.partition_count("documents") == 3


def test_oldest_record_is_as_old_as_its_first_observation() -> None:
    clock = Clock()
    log = watch(clock)
    for end in (10, 12, 12, 20):
        log.see("documents", {0: Span(0, end)})
        clock.now += 5
    assert log.lag("documents", {0: 9}) == {0: Lag(10, 15.0)}
    assert log.lag("documents", {0: 11}) == {0: Lag(8, 5.0)}
    assert log.lag("documents", {0: 19}) == {0: Lag(0, 0.0)}


def test_lag_of_recreated_topic_starts_again() -> None:
    clock = Clock()
    log = watch(clock)
    log.see("documents", {0: Span(0, 50)})
    clock.now += 5
    log.see("documents", {0: Span(0, 2)})
    assert log.lag("documents", {}) == {0: Lag(2, 0.0)}


async def test_lag_is_unknown_without_kafka_and_continues_after() -> None:
    clock = Clock()
    log = watch(clock)
    log.see("documents", {0: Span(0, 10)})
    log.problem = "Kafka does not answer"
    clock.now += 25
    assert log.lag("documents", {0: 6}) == log.ends("documents") == {}
    assert log.partition_count("documents") == 1
    log.see("documents", {0: Span(0, 12)})
    assert log.lag("documents", {0: 6}) == {0: Lag(5, 25.0)}


async def test_lag_of_removed_topic_is_unknown() -> None:
    log = watch(Clock(), {0: 9, 1: 10})
    log.see("documents", {0: Span(0, 10)})
    log.see("gone", {0: Span(0, 10)})
    await log._ask(FakeConsumer())
    assert log.lag("documents", {0: 9, 1: 10}) == {0: Lag(0, 0.0), 1: Lag(0, 0.0)}
    assert log.lag("gone", {0: 9}) == {}


class FakeCluster:
    def topics(self) -> set[str]:
        return {"documents", "indexed", "of somebody else"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {"documents": {1, 0}, "indexed": {0}}[topic]


class FakeConsumer:
    """Answers for three topics, and counts what it was asked. `records` are those of partition 0 of the documents, as
    time in milliseconds by offset; `failure` is raised instead of them. Partition 1 has `held_back`."""

    def __init__(self, records: dict[int, int] | None = None, failure: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.records = records or {}
        self.failure = failure
        self.held_back = 5
        self._client = self  # what metadata are asked of
        self._position: dict[TopicPartition, int] = {}

    def assignment(self) -> set[TopicPartition]:
        return set(self._position)

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._position = dict.fromkeys(partitions, -1)

    def resume(self, *partitions: TopicPartition) -> None:
        self.asked.append("records")

    def pause(self, *partitions: TopicPartition) -> None:
        assert self.assignment().issuperset(partitions)

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._position[place] = offset

    async def position(self, place: TopicPartition) -> int:
        return self._position[place]

    async def getmany(
        self, place: TopicPartition, *, timeout_ms: int, max_records: int
    ) -> dict[TopicPartition, list[SimpleNamespace]]:
        if self.failure is not None:
            raise self.failure
        here = self.records if place == TopicPartition("documents", 0) else {}
        offset = next((each for each in sorted(here) if each >= self._position[place]), None)
        if offset is None:
            self._position[place] = 1_000_000
            return {}
        self._position[place] = offset + 1
        return {place: [SimpleNamespace(offset=offset, timestamp=here[offset])]}

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
        return {each: 10 + each.partition + self.held_back * each.partition for each in partitions}


async def test_open_transaction_is_reported_until_it_ends() -> None:
    clock, consumer = Clock(), FakeConsumer()
    log = watch(clock)
    await log._ask(consumer)
    clock.now += 12
    await log._ask(consumer)
    assert log.open_transactions == [OpenTransaction("documents", 1, 11, 5, 12.0)]
    assert log.lag("documents", {0: 9, 1: 10}) == {0: Lag(0, 0.0), 1: Lag(0, 0.0)}
    consumer.held_back = 0
    await log._ask(consumer)
    assert log.open_transactions == []


async def test_spans_of_all_topics_take_three_requests() -> None:
    consumer = FakeConsumer()
    assert await spans_by_topic(consumer, ("documents", "indexed", "not there")) == {
        "documents": {0: Span(2, 10), 1: Span(2, 11)},
        "indexed": {0: Span(2, 10)},
    }
    assert consumer.asked == ["metadata", "beginnings", "ends"]


async def test_missing_topic_is_reported_with_advice() -> None:
    with pytest.raises(TopicMissing, match="there is no topic not there: run `thalweg topics --create`"):
        await spans_of(FakeConsumer(), "not there")


async def test_first_look_reports_the_age_of_the_record_itself() -> None:
    clock = Clock()
    applied = {0: 3, 1: 10}
    log = watch(clock, applied)
    consumer = FakeConsumer({6: 68_000, 8: 98_000})  # 4 and 5 were compacted away
    await log._ask(consumer)
    assert log.lag("documents", applied) == {0: Lag(6, 32.0), 1: Lag(0, 0.0)}
    clock.now += 1
    await log._ask(consumer)
    assert log.lag("documents", applied)[0] == Lag(6, 33.0)
    assert consumer.asked.count("records") == 1, "the record is not read again while it is the oldest"
    applied[0] = 6
    await log._ask(consumer)
    assert log.lag("documents", applied)[0] == Lag(3, 3.0)


async def test_offsets_without_a_record_are_no_lag() -> None:
    applied = {0: 3, 1: 10}
    log = watch(Clock(), applied)
    await log._ask(FakeConsumer())
    assert log.lag("documents", applied) == {0: Lag(0, 0.0), 1: Lag(0, 0.0)}


async def test_unreadable_batch_at_the_front_is_reported() -> None:
    batch = UnreadableBatch("documents", 0, 4, 5, "checksum")
    consumer = FakeConsumer(failure=batch)
    log = watch(Clock(), {0: 3, 1: 10})
    await log._ask(consumer)
    assert (log.unreadable, log.lags()["documents"][0].records) == ([batch], 6)
    consumer.failure = None
    await log._ask(consumer)
    assert (log.unreadable, log.lags()["documents"][0].records) == ([], 0)


async def test_unreadable_record_is_as_old_as_its_observation() -> None:
    clock = Clock()
    applied = {0: 3, 1: 10}
    log = watch(clock, applied)
    await log._ask(FakeConsumer(failure=CorruptRecordException()))
    clock.now += 5
    assert log.reachable
    assert log.lag("documents", applied)[0] == Lag(6, 5.0)


@pytest.mark.parametrize("timestamp_ms", [0, 9_000_000_000_000], ids=["years behind", "years ahead"])
async def test_producer_clock_is_bounded_by_observations(timestamp_ms: int) -> None:
    clock = Clock()
    log = watch(clock, {0: 8, 1: 10})
    log.see("documents", {0: Span(2, 9), 1: Span(2, 11)})
    clock.now += 1
    await log._ask(FakeConsumer({9: timestamp_ms}))
    clock.now += 30
    assert 30 <= log.lag("documents", {0: 8, 1: 10})[0].seconds <= 31
