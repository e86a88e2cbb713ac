"""Lag: the log's end offsets and the time of the oldest record not applied, once a second; and what blocks readers.

While Kafka does not answer, nobody knows what was written meanwhile, and no lag is reported.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from kafka_client.async_clients import LogConsumer, unreadable_at
from kafka_client.unreadable_batches import Skip, UnreadableBatch
from query_api.index.follower import LocateBroker, LogUnavailable, Span, connect, missing, spans_by_topic, spans_of
from schemas.clock import Arrivals

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
ANSWER_SECONDS = 4.0
SMALL_FETCH_BYTES = 16 * 1024
FIRST_RECORD_SECONDS = 2.0
FIRST_RECORD_POLL_MS = 200
BATCH_LOOK_SECONDS = 2.0
BATCH_ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Lag:
    """At most `records` are not applied (compaction may have taken some); the oldest has waited for `seconds`."""

    records: int
    seconds: float


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction is open at `offset`; it and what follows it, at most `records`, nobody reads before it ends. So it
    has been for at least `seconds`."""

    topic: str
    partition: int
    offset: int
    records: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.topic} partition {self.partition}: a transaction has been open for at least {self.seconds:.0f} s "
            f"at offset {self.offset}, and up to {self.records} records wait for its end. Its producer has to commit "
            "or abort it, or Kafka does after its time-out."
        )


def too_late(lags: Iterable[Lag], limit_seconds: float) -> str | None:
    """A sentence, where a record has waited longer than the limit to become searchable."""
    late = [lag for lag in lags if lag.records and lag.seconds > limit_seconds]
    if not late:
        return None
    return (
        f"{sum(lag.records for lag in late):,} records are not searchable yet, the oldest for "
        f"{max(lag.seconds for lag in late):.0f} s, and THALWEG_SERVICE__MAX_LAG_SECONDS is {limit_seconds:g}: "
        "see whether the worker runs and what it waits for."
    )


class TimedRecord(NamedTuple):
    """`timestamp_ms` is the record's own, None where it has none."""

    offset: int
    timestamp_ms: int | None


@dataclass(frozen=True)
class _Oldest:
    """The first record of the `searched` offsets; None where there is none."""

    searched: Span
    record: TimedRecord | None

    def answers(self, wanted: Span) -> bool:
        """Whether it is also the first record of `wanted`, or says that there is none."""
        if wanted.beginning < self.searched.beginning:
            return False
        return wanted.end <= self.searched.end if self.record is None else wanted.beginning <= self.record.offset


@dataclass
class _Partition:
    span: Span
    arrivals: Arrivals = field(default_factory=Arrivals)
    oldest: _Oldest | None = None

    def see(self, span: Span, now: float) -> None:
        if span.end < self.span.end:  # the topic was recreated
            self.oldest = None
        self.span = span
        self.arrivals.see(span.end, now)

    def lag(self, waiting: Span, *, now: float, now_ms: int) -> Lag:
        oldest = self.oldest
        if oldest is not None and oldest.record is None and oldest.answers(waiting):
            return Lag(0, 0.0)
        # of a record that is new at the front, the time is known at the next look: until then that of the one before
        timestamp_ms = None if oldest is None or oldest.record is None else oldest.record.timestamp_ms
        seconds = self.arrivals.age_seconds(waiting.beginning, timestamp_ms, now=now, now_ms=now_ms)
        return Lag(waiting.end - waiting.beginning, seconds)


def _waiting(span: Span, reached: int) -> Span:
    """The offsets that are not applied."""
    return Span(min(max(reached + 1, span.beginning), span.end), span.end)


class LagMonitor:
    """Keeps the offsets of the topics that `applied()` names, and whether Kafka answers.

    `applied` gives, by topic and partition, the last offset that searches show.
    """

    def __init__(
        self,
        locate_broker: LocateBroker,
        applied: Callable[[], Mapping[str, Mapping[int, int]]],
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.problem: str | None = "not asked yet"
        self.missing: str | None = None
        self.answered_at: float | None = None
        self._locate_broker = locate_broker
        self._applied = applied
        self._clock = clock
        self._now_ms = now_ms
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._open_since: dict[tuple[str, int, int], tuple[float, int]] = {}
        self._consumer: LogConsumer | None = None
        self._was_asked = asyncio.Event()

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """The open transactions; none while Kafka does not answer."""
        if not self.reachable:
            return []
        now = self._clock()
        return [
            OpenTransaction(*place, records, now - since)
            for place, (since, records) in sorted(self._open_since.items())
        ]

    @property
    def reachable(self) -> bool:
        return self.problem is None

    @property
    def seconds_since_answer(self) -> float | None:
        """None where Kafka has not answered yet."""
        return None if self.answered_at is None else self._clock() - self.answered_at

    async def run(self) -> None:
        while True:
            try:
                await self._look_while_connected()
            except (KafkaError, OSError, TimeoutError, LogUnavailable) as error:
                problem = str(error).rstrip(".") or "Kafka does not answer"
                if self.problem is None:
                    log.warning("kafka out of reach", problem=problem)
                self.problem = problem
                self._was_asked.set()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look_while_connected(self) -> None:
        servers = self._locate_broker()
        async with asyncio.timeout(ANSWER_SECONDS):
            consumer = await connect(servers, SMALL_FETCH_BYTES)
        try:
            while self._locate_broker() == servers:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._look(consumer)
                self._consumer = consumer
                self._was_asked.set()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._consumer = None
            await consumer.stop()

    async def end_now(self, topic: str) -> int:
        """Where partition 0 of a topic ends now; a moment, since nothing is fetched on this connection. Raises
        LogUnavailable, KafkaError, OSError or TimeoutError."""
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._was_asked.wait()
            if self._consumer is None:
                raise LogUnavailable(self.problem or "Kafka does not answer")
            return (await spans_of(self._consumer, topic))[0].end

    async def _look(self, consumer: Any) -> None:
        applied = self._applied()
        topics = tuple(applied)
        spans = await spans_by_topic(consumer, topics)
        oldest = await self._oldest(consumer, spans, applied)
        if self.problem is not None:
            log.info("kafka reached")
        absent = [topic for topic in topics if topic not in spans]
        self.missing = missing(absent[-1]) if absent else None
        self._partitions = {of: seen for of, seen in self._partitions.items() if of[0] in spans}
        for topic, seen in spans.items():
            self.see(topic, seen)
        for place, found in oldest.items():
            self._partitions[place.topic, place.partition].oldest = found
        places = [TopicPartition(topic, partition) for topic, seen in spans.items() for partition in seen]
        if places:
            self.see_watermarks(spans, await consumer.high_watermarks(places))
        self.problem, self.answered_at = None, self._clock()

    async def _oldest(
        self, consumer: Any, spans: Mapping[str, Mapping[int, Span]], applied: Mapping[str, Mapping[int, int]]
    ) -> dict[TopicPartition, _Oldest]:
        """What is news of the oldest records that are not applied."""
        wanted: dict[TopicPartition, Span] = {}
        for topic, by_number in spans.items():
            for partition, span in by_number.items():
                waiting = _waiting(span, applied[topic].get(partition, -1))
                seen = self._partitions.get((topic, partition))
                known = seen is not None and seen.oldest is not None and seen.oldest.answers(waiting)
                if waiting.beginning < waiting.end and not known:
                    wanted[TopicPartition(topic, partition)] = waiting
        if not wanted:
            return {}
        return {
            place: _Oldest(wanted[place], record) for place, record in (await first_records(consumer, wanted)).items()
        }

    def see_watermarks(self, spans: Mapping[str, Mapping[int, Span]], watermarks: Mapping[TopicPartition, int]) -> None:
        """Take note of the transactions that are open: their partitions go on behind the end of what may be read."""
        now = self._clock()
        opened = {}
        for place, watermark in watermarks.items():
            end = spans[place.topic][place.partition].end
            if watermark > end:
                since, _ = self._open_since.get((*place, end), (now, 0))
                opened[*place, end] = since, watermark - end
        self._open_since = opened

    def see(self, topic: str, spans: Mapping[int, Span]) -> None:
        """Take note of what the partitions hold now, as Kafka has just answered."""
        self.problem = None
        now = self._clock()
        for partition, span in spans.items():
            self._partitions.setdefault((topic, partition), _Partition(span)).see(span, now)

    def partition_count(self, topic: str) -> int | None:
        """None until the topic has been seen."""
        partitions = [partition for name, partition in self._partitions if name == topic]
        return max(partitions) + 1 if partitions else None

    def ends(self, topic: str) -> dict[int, int]:
        """By partition; empty while Kafka does not answer."""
        return {partition: span.end for partition, span in self.spans(topic).items()}

    def spans(self, topic: str) -> dict[int, Span]:
        """What each partition holds; empty while Kafka does not answer."""
        if not self.reachable:
            return {}
        return {partition: seen.span for (name, partition), seen in self._partitions.items() if name == topic}

    def lag(self, topic: str, reached: Mapping[int, int]) -> dict[int, Lag]:
        """By partition, for a reader that has applied everything up to and including `reached`; empty while Kafka does
        not answer."""
        lags: dict[int, Lag] = {}
        if not self.reachable:
            return lags
        now, now_ms = self._clock(), self._now_ms()
        for (name, partition), seen in self._partitions.items():
            if name == topic:
                waiting = _waiting(seen.span, reached.get(partition, -1))
                seen.arrivals.forget_before(waiting.beginning)
                lags[partition] = seen.lag(waiting, now=now, now_ms=now_ms)
        return lags


async def first_records(
    consumer: Any, spans: Mapping[TopicPartition, Span]
) -> dict[TopicPartition, TimedRecord | None]:
    """The first record of each span, None where a span holds none; without those that could not be read in time.

    Leaves the partitions assigned and paused: aiokafka may lose the cancellation that stops a consumer when that comes
    while an assignment is given up. One fetch for all, as small as the consumer's settings allow.
    """
    found: dict[TopicPartition, TimedRecord | None] = {}
    if not spans.keys() <= consumer.assignment():
        consumer.assign(list(spans))
    consumer.resume(*spans)
    try:
        for place, span in spans.items():
            consumer.seek(place, span.beginning)
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_RECORD_SECONDS):
                for place, span in spans.items():
                    try:
                        found[place] = await _first(consumer, place, span)
                    except KafkaError as error:  # a batch that cannot be read, or offsets that were deleted meanwhile
                        log.debug("oldest record not read", topic=place.topic, error=type(error).__name__)
    finally:
        consumer.pause(*spans)
    return found


async def _first(consumer: Any, place: TopicPartition, span: Span) -> TimedRecord | None:
    while await consumer.position(place) < span.end:
        batches = await consumer.getmany(place, timeout_ms=FIRST_RECORD_POLL_MS, max_records=1)
        for record in batches.get(place, ()):
            if record.offset >= span.end:
                return None
            return TimedRecord(record.offset, record.timestamp if record.timestamp >= 0 else None)
    return None


class UnreadableBatchMonitor:
    """`found` are the batches that stand in the way now, in the order of the log."""

    def __init__(
        self,
        locate_broker: LocateBroker,
        waiting: Callable[[], Mapping[TopicPartition, int]],
        settings: TopicPartition,
        skip: Skip,
    ) -> None:
        """`waiting` tells the partitions with lag, and the offset that each reader wants next; `settings` is the place
        that the worker reads whole before it goes on anywhere."""
        self.found: list[UnreadableBatch] = []
        self._locate_broker = locate_broker
        self._waiting = waiting
        self._settings = settings
        self._skip = skip
        self._before: Mapping[TopicPartition, int] = {}

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(BATCH_LOOK_SECONDS)

    async def look(self) -> None:
        """Read from every offset at which a reader has stood since the last look."""
        waiting, servers = self._waiting(), self._locate_broker()
        still = {place: offset for place, offset in waiting.items() if self._before.get(place) == offset}
        self._before = waiting
        if servers is None:
            return
        try:
            found = [
                await unreadable_at(servers, place, offset, seconds=BATCH_ANSWER_SECONDS, skip=self._skip)
                for place, offset in sorted(still.items())
            ]
            if still:
                found.append(
                    await unreadable_at(
                        servers, self._settings, 0, seconds=BATCH_ANSWER_SECONDS, skip=self._skip, to_the_end=True
                    )
                )
        except (KafkaError, OSError, TimeoutError) as error:
            log.debug("cannot look for unreadable batches", error=f"{type(error).__name__}: {error}")
            return
        self.found = [batch for batch in found if batch is not None]
