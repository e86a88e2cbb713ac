"""Lag: the log's end offsets and the time of the oldest record that a reader has not reached; open transactions.

While Kafka does not answer, nobody knows what was written meanwhile, and no lag is reported.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import structlog
from aiokafka.errors import KafkaError

from kafka_client.async_clients import LocateBroker, LogConsumer, connect
from kafka_client.topic_offsets import (
    LogUnavailable,
    Span,
    TimedRecord,
    TopicPartition,
    first_records,
    missing,
    spans_by_topic,
    spans_of,
)
from kafka_client.unreadable_batches import Skip, UnreadableBatch, skip_none
from schemas.clock import Arrivals
from schemas.settings import KafkaConnection

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
ANSWER_SECONDS = 4.0
SMALL_FETCH_BYTES = 16 * 1024
NOWHERE = Span(0, 0)


class Lag(NamedTuple):
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


@dataclass
class _Partition:
    """`first` is the first record of the `searched` offsets, None where there is none."""

    span: Span
    arrivals: Arrivals = field(default_factory=Arrivals)
    searched: Span = NOWHERE
    first: TimedRecord | None = None

    def see(self, span: Span, now: float) -> None:
        if span.end < self.span.end:  # the topic was recreated
            self.searched, self.first = NOWHERE, None
        self.span = span
        self.arrivals.see(span.end, now)

    def knows_first_of(self, waiting: Span) -> bool:
        """Whether `first` is also the first record of these offsets, or shows that they have none."""
        if waiting.beginning < self.searched.beginning:
            return False
        return waiting.end <= self.searched.end if self.first is None else waiting.beginning <= self.first.offset

    def lag(self, reached: int, *, now: float, now_ms: int) -> Lag:
        waiting = self.span.after(reached)
        self.arrivals.forget_before(waiting.beginning)
        if self.first is None and self.knows_first_of(waiting):
            return Lag(0, 0.0)
        # of a record that is new at the front, the time is known at the next look: until then that of the one before
        timestamp_ms = None if self.first is None else self.first.timestamp_ms
        seconds = self.arrivals.age_seconds(waiting.beginning, timestamp_ms, now=now, now_ms=now_ms)
        return Lag(waiting.end - waiting.beginning, seconds)


@dataclass(eq=False)
class LagMonitor:
    """Keeps the offsets of the topics that `applied()` names, and whether Kafka answers. It asks over a connection of
    its own: so a consumer that hangs is noticed.

    `applied` gives, by topic and partition, the last offset that a reader has done with.
    """

    locate_broker: LocateBroker
    applied: Callable[[], Mapping[str, Mapping[int, int]]]
    clock: Callable[[], float] = time.monotonic
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _: KW_ONLY
    skip: Skip = skip_none

    def __post_init__(self) -> None:
        self.unreadable: list[UnreadableBatch] = []
        """The batches that the readers of `applied` have reached, in the order of the log."""
        self.problem: str | None = "not asked yet"
        self.missing: str | None = None
        self.answered_at: float | None = None
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._open_since: dict[tuple[str, int, int], tuple[float, int]] = {}
        self._connection: KafkaConnection | None = None
        self._consumer: LogConsumer | None = None
        self._was_asked = asyncio.Event()

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """The open transactions; none while Kafka does not answer."""
        if not self.reachable:
            return []
        now = self.clock()
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
        return None if self.answered_at is None else self.clock() - self.answered_at

    async def run(self) -> None:
        """Look once a second, until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await self.close()

    async def look(self) -> None:
        """Ask the broker once; where it does not answer, `problem` says so."""
        try:
            if self._consumer is None or self.locate_broker() != self._connection:
                await self._reconnect()
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._ask(self._consumer)
        except (KafkaError, OSError, TimeoutError, LogUnavailable) as error:
            problem = str(error).rstrip(".") or "Kafka does not answer"
            if self.problem is None:
                log.warning("kafka does not answer", problem=problem)
            self.problem = problem
            await self.close()
        self._was_asked.set()

    async def _reconnect(self) -> None:
        await self.close()
        self._connection = self.locate_broker()
        async with asyncio.timeout(ANSWER_SECONDS):
            self._consumer = await connect(self._connection, SMALL_FETCH_BYTES, skip=self.skip)

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    async def end_now(self, topic: str) -> int:
        """Where partition 0 of a topic ends now; a moment, since nothing is fetched on this connection. Raises
        LogUnavailable, KafkaError, OSError or TimeoutError."""
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._was_asked.wait()
            if self._consumer is None:
                raise LogUnavailable(self.problem or "Kafka does not answer")
            return (await spans_of(self._consumer, topic))[0].end

    async def _ask(self, consumer: Any) -> None:
        applied = self.applied()
        spans = await spans_by_topic(consumer, tuple(applied))
        places = [TopicPartition(topic, number) for topic, by_number in spans.items() for number in by_number]
        unknown = {}
        for place in places:
            waiting = spans[place.topic][place.partition].after(applied[place.topic].get(place.partition, -1))
            seen = self._partitions.get(place)
            if waiting.beginning < waiting.end and (seen is None or not seen.knows_first_of(waiting)):
                unknown[place] = waiting
        first = await first_records(consumer, unknown) if unknown else {}
        if self.problem is not None:
            log.info("kafka answers")
        absent = [topic for topic in applied if topic not in spans]
        self.missing = missing(absent[-1]) if absent else None
        self._partitions = {place: seen for place, seen in self._partitions.items() if place.topic in spans}
        for topic, by_number in spans.items():
            self.see(topic, by_number)
        for place, record in first.items():
            if not isinstance(record, UnreadableBatch):
                self._partitions[place].searched, self._partitions[place].first = unknown[place], record
        self.unreadable = [batch for _, batch in sorted(first.items()) if isinstance(batch, UnreadableBatch)]
        self._see_watermarks(await consumer.high_watermarks(places) if places else {})
        self.problem, self.answered_at = None, self.clock()

    def _see_watermarks(self, watermarks: Mapping[TopicPartition, int]) -> None:
        """Take note of the transactions that are open: their partitions go on behind the end of what may be read."""
        now = self.clock()
        opened = {}
        for place, watermark in watermarks.items():
            end = self._partitions[place].span.end
            if watermark > end:
                since, _ = self._open_since.get((*place, end), (now, 0))
                opened[*place, end] = since, watermark - end
        self._open_since = opened

    def see(self, topic: str, spans: Mapping[int, Span]) -> None:
        """Take note of what the partitions hold now, as Kafka has just answered."""
        self.problem = None
        now = self.clock()
        for number, span in spans.items():
            self._partitions.setdefault(TopicPartition(topic, number), _Partition(span)).see(span, now)

    def partition_count(self, topic: str) -> int | None:
        """None until the topic has been seen."""
        partitions = [place.partition for place in self._partitions if place.topic == topic]
        return max(partitions) + 1 if partitions else None

    def ends(self, topic: str) -> dict[int, int]:
        """By partition; empty while Kafka does not answer."""
        return {partition: span.end for partition, span in self.spans(topic).items()}

    def spans(self, topic: str) -> dict[int, Span]:
        """What each partition holds; empty while Kafka does not answer."""
        return {number: seen.span for number, seen in self._seen(topic).items()}

    def lag(self, topic: str, reached: Mapping[int, int]) -> dict[int, Lag]:
        """By partition, for a reader that has applied everything up to and including `reached`; empty while Kafka does
        not answer."""
        now, now_ms = self.clock(), self.now_ms()
        return {
            number: seen.lag(reached.get(number, -1), now=now, now_ms=now_ms)
            for number, seen in self._seen(topic).items()
        }

    def lags(self) -> dict[str, dict[int, Lag]]:
        """Of the readers of `applied`, by topic and partition."""
        return {topic: self.lag(topic, reached) for topic, reached in self.applied().items()}

    def waiting(self) -> set[tuple[str, int, int]]:
        """Topic, partition and the last offset applied, where there is lag."""
        return {
            (topic, number, reached.get(number, -1))
            for topic, reached in self.applied().items()
            for number, lag in self.lag(topic, reached).items()
            if lag.records
        }

    def _seen(self, topic: str) -> dict[int, _Partition]:
        if not self.reachable:
            return {}
        return {place.partition: seen for place, seen in self._partitions.items() if place.topic == topic}
