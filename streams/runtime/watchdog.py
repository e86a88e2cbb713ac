"""Lag as the broker reports it, and the watchdog that ends a worker that makes no progress in spite of lag."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import structlog
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaError

from kafka_client.async_clients import LogConsumer, open_consumer
from schemas.clock import Arrivals
from schemas.settings import KafkaConnection
from streams.errors import WorkerStuck
from streams.runtime.partition_progress import PartitionProgress, Progress, TopicPartition
from streams.runtime.worker_health import Health
from streams.worker_metrics import WorkerMetrics

STORES = {"text": "lance", "graph": "graph", "provenance": "lance"}
STUCK_SECONDS = 300.0  # without progress in spite of lag: the worker ends, to be restarted
UNKNOWN = math.nan  # a lag while the broker does not answer: nobody knows what was written meanwhile
_ANSWER_SECONDS = 5.0
_FETCH_BYTES = 16 * 1024


class FirstRecord(NamedTuple):
    """`timestamp_ms` is the record's own; None where it could not be read."""

    offset: int
    timestamp_ms: int | None


class Log(Protocol):
    """What the broker reports of partitions, over a connection of its own: so a consumer that hangs is noticed."""

    async def ends(self) -> Mapping[TopicPartition, int] | None:
        """The offset after the last committed record of each partition, and the markers after it; None when the broker
        does not answer. What follows the beginning of an open transaction nobody may read yet."""
        ...

    async def first_record(self, partition: TopicPartition, start: int, end: int) -> FirstRecord | None:
        """The first record from `start` on and before `end`; None where there is none: what is there may also be only
        the marks of a transaction, or what compaction left."""
        ...


class KafkaLog:
    """Asks with a connection of its own. Opens when used first, so that a worker starts without waiting for it."""

    def __init__(self, connection: KafkaConnection, partitions: Sequence[TopicPartition]) -> None:
        self._partitions = {KafkaPartition(*partition): partition for partition in partitions}
        self._connection = connection
        self._consumer: LogConsumer | None = None

    async def ends(self) -> Mapping[TopicPartition, int] | None:
        return await self._offsets(lambda consumer: consumer.end_offsets(list(self._partitions)))

    async def beginnings(self) -> Mapping[TopicPartition, int] | None:
        """The offset of the first record of each partition; None when the broker does not answer."""
        return await self._offsets(lambda consumer: consumer.beginning_offsets(list(self._partitions)))

    async def _offsets(
        self, ask: Callable[[LogConsumer], Awaitable[dict[KafkaPartition, int]]]
    ) -> Mapping[TopicPartition, int] | None:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                found = await ask(await self._started())
        except (KafkaError, TimeoutError, OSError):
            return None
        return {self._partitions[kafka]: offset for kafka, offset in found.items()}

    async def first_record(self, partition: TopicPartition, start: int, end: int) -> FirstRecord | None:
        kafka = KafkaPartition(*partition)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                consumer = await self._started()
                consumer.seek(kafka, start)
                consumer.resume(kafka)
                while await consumer.position(kafka) < end:
                    for record in (await consumer.getmany(kafka, timeout_ms=200, max_records=1)).get(kafka, ()):
                        if record.offset >= end:
                            return None
                        return FirstRecord(record.offset, record.timestamp if record.timestamp >= 0 else None)
        except (KafkaError, TimeoutError, OSError):
            return FirstRecord(start, None)
        finally:
            if self._consumer is not None:
                self._consumer.pause(kafka)
        return None

    async def close(self) -> None:
        if self._consumer is not None:
            await self._consumer.stop()

    async def _started(self) -> LogConsumer:
        if self._consumer is None:
            consumer = await open_consumer(
                self._connection,
                request_timeout_ms=10_000,
                auto_offset_reset="earliest",
                max_partition_fetch_bytes=_FETCH_BYTES,
            )
            consumer.assign(list(self._partitions))
            consumer.pause(*self._partitions)
            self._consumer = consumer
        return self._consumer


@dataclass(frozen=True)
class _Looked:
    """What stood between two offsets of a partition when it was looked at."""

    start: int
    end: int
    first: FirstRecord | None

    def answers(self, start: int, end: int) -> bool:
        if start < self.start:
            return False
        return end <= self.end if self.first is None else start <= self.first.offset


class Watchdog:
    """Measures lag every few seconds, and raises WorkerStuck for a partition that stands still in spite of lag.

    A worker that waits for something known is not stuck: a broker that does not answer, a store or a model that is
    being retried, an operator's decision on a batch that cannot be read.
    """

    def __init__(
        self,
        log: Log,
        progress: Progress,
        metrics: WorkerMetrics,
        health: Health,
        *,
        timeout_seconds: float = STUCK_SECONDS,
        every_seconds: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._kafka_log = log
        self._health = health
        self._progress = progress
        self._metrics = metrics
        self._timeout_seconds = timeout_seconds
        self._every_seconds = every_seconds
        self._clock = clock
        self._now_ms = now_ms
        self._excused_at = clock()
        self._excused_partitions: dict[TopicPartition, float] = {}
        self._arrivals: dict[TopicPartition, Arrivals] = {}
        self._looked: dict[TopicPartition, _Looked] = {}
        self._answered = True
        self.lag_seconds: dict[str, float] | None = None
        """By stage; None before the first look, and while the broker does not answer."""
        self._log = structlog.get_logger("thalweg.worker")

    async def run(self) -> None:
        """For ever. Raises WorkerStuck."""
        while True:
            await self.check()
            await asyncio.sleep(self._every_seconds)

    async def check(self) -> None:
        """Measure once. Raises WorkerStuck."""
        ends = await self._kafka_log.ends()
        now = self._clock()
        self._report(answered=ends is not None)
        self._health.note([str(batch) for batch in list(self._progress.unreadable.values())])
        if ends is None or self._progress.waiting_for:
            self._excused_at = now
        lag_seconds: dict[str, float] = {}
        for partition, reached in list(self._progress.partitions.items()):
            lag, age = (0, 0.0) if ends is None else await self._measured(partition, reached, ends.get(partition, 0))
            known_lag = UNKNOWN if ends is None else lag
            self._metrics.lag_records.labels(partition.topic, str(partition.partition)).set(known_lag)
            store = STORES[reached.stage]
            self._metrics.store_position.labels(store, partition.topic, str(partition.partition)).set(reached.offset)
            self._require_movement(partition, reached, lag, now)
            lag_seconds[reached.stage] = max(age, lag_seconds.get(reached.stage, 0.0))
        self.lag_seconds = None if ends is None else lag_seconds
        for stage, seconds in lag_seconds.items():
            self._metrics.lag_seconds.labels(stage).set(UNKNOWN if ends is None else seconds)

    def _report(self, *, answered: bool) -> None:
        if answered and not self._answered:
            self._log.info("kafka answers again")
            self._health.up("kafka")
        elif self._answered and not answered:
            self._log.warning("kafka does not answer; nothing is lost, and it goes on when it is back")
            self._health.down("kafka")
        self._answered = answered

    async def _measured(self, partition: TopicPartition, reached: PartitionProgress, end: int) -> tuple[int, float]:
        """Records that are not done, compacted ones included, and how many seconds the oldest has waited."""
        arrivals = self._arrivals.setdefault(partition, Arrivals())
        arrivals.see(end, self._clock())
        start = reached.offset + 1
        arrivals.forget_before(start)
        if start >= end:
            return 0, 0.0
        timestamp_ms = reached.oldest_in_flight_ms
        if timestamp_ms is None:
            looked = self._looked.get(partition)
            if looked is None or not looked.answers(start, end):
                looked = _Looked(start, end, await self._kafka_log.first_record(partition, start, end))
                self._looked[partition] = looked
            if looked.first is None:
                return 0, 0.0
            timestamp_ms = looked.first.timestamp_ms
        age = arrivals.age_seconds(start, timestamp_ms, now=self._clock(), now_ms=self._now_ms())
        return end - start, age

    def _require_movement(self, partition: TopicPartition, reached: PartitionProgress, lag: int, now: float) -> None:
        if not lag or partition in self._progress.unreadable:
            self._excused_partitions[partition] = now
        excused_at = max(self._excused_at, self._excused_partitions.get(partition, self._excused_at))
        still_seconds = now - max(reached.moved_at, excused_at)
        if still_seconds > self._timeout_seconds:
            raise WorkerStuck(
                f"{partition.topic} partition {partition.partition} has {lag} records waiting and made no progress "
                f"for {still_seconds:.0f} s."
            )
