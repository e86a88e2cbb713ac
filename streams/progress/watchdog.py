"""Lag, told by the broker itself, and the watchdog that ends a worker which makes no progress in spite of it."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import structlog
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaError

from kafka_client.consumers import LogConsumer
from streams.errors import WorkerStuck
from streams.metrics import Health, WorkerMetrics
from streams.progress.partitions import Progress, Reached, TopicPartition

STORES = {"text": "lance", "graph": "kuzu", "provenance": "lance"}
UNKNOWN = math.nan  # a lag while the broker does not answer: nobody knows what was written meanwhile
_ANSWER_SECONDS = 5.0


class Log(Protocol):
    """What the broker says of the partitions, asked apart from the consumers: one that hangs is seen to hang."""

    async def ends(self) -> Mapping[TopicPartition, int] | None:
        """The offset after the last committed record of each partition, and the marks behind it; None when the broker
        does not answer. What follows the beginning of an open transaction nobody may read yet."""
        ...


class KafkaLog:
    """Asks with a connection of its own. Opens when used first, so that a worker starts without waiting for it."""

    def __init__(self, bootstrap_servers: str, partitions: Sequence[TopicPartition]) -> None:
        self._partitions = {KafkaPartition(*partition): partition for partition in partitions}
        self._bootstrap_servers = bootstrap_servers
        self._consumer: LogConsumer | None = None

    async def ends(self) -> Mapping[TopicPartition, int] | None:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                consumer = await self._started()
                found = await consumer.end_offsets(list(self._partitions))
        except (KafkaError, TimeoutError, OSError):
            return None
        return {self._partitions[kafka]: end for kafka, end in found.items()}

    async def close(self) -> None:
        if self._consumer is not None:
            await self._consumer.stop()

    async def _started(self) -> LogConsumer:
        if self._consumer is None:
            consumer = LogConsumer(bootstrap_servers=self._bootstrap_servers, request_timeout_ms=10_000)
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            self._consumer = consumer
        return self._consumer


class Watchdog:
    """Measures lag every few seconds, and raises WorkerStuck for a partition that stands still in spite of lag.

    Not stuck is who knows what he waits for: a broker that does not answer, a store or a model that is being retried, a
    person's word on a batch that cannot be read.
    """

    def __init__(
        self,
        log: Log,
        progress: Progress,
        metrics: WorkerMetrics,
        health: Health,
        *,
        patience_seconds: float,
        every_seconds: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._kafka_log = log
        self._health = health
        self._progress = progress
        self._metrics = metrics
        self._patience_seconds = patience_seconds
        self._every_seconds = every_seconds
        self._clock = clock
        self._now_ms = now_ms
        self._excused_at = clock()
        self._answered = True
        self._log = structlog.get_logger("thalweg.worker")

    async def keep(self) -> None:
        """Look for ever. Raises WorkerStuck."""
        while True:
            await self.look()
            await asyncio.sleep(self._every_seconds)

    async def look(self) -> None:
        """Measure once. Raises WorkerStuck."""
        ends = await self._kafka_log.ends()
        now = self._clock()
        self._tell(answered=ends is not None)
        self._health.note([str(batch) for batch in list(self._progress.unreadable.values())])
        if ends is None or self._progress.waiting_for:
            self._excused_at = now
        lag_seconds: dict[str, float] = {}
        for partition, reached in self._progress.reached.items():
            lag = 0 if ends is None else max(0, ends.get(partition, 0) - 1 - reached.offset)
            known_lag = UNKNOWN if ends is None else lag
            self._metrics.lag_records.labels(partition.topic, str(partition.partition)).set(known_lag)
            store = STORES[reached.stage]
            self._metrics.store_position.labels(store, partition.topic, str(partition.partition)).set(reached.offset)
            self._require_movement(partition, reached, lag, now)
            age = self._age_seconds(reached, lag)
            lag_seconds[reached.stage] = max(age, lag_seconds.get(reached.stage, 0.0))
        for stage, seconds in lag_seconds.items():
            self._metrics.lag_seconds.labels(stage).set(UNKNOWN if ends is None else seconds)

    def _tell(self, *, answered: bool) -> None:
        if answered and not self._answered:
            self._log.info("kafka answers again")
            self._health.up("kafka")
        elif self._answered and not answered:
            self._log.warning("kafka does not answer; nothing is lost, and it goes on when it is back")
            self._health.down("kafka")
        self._answered = answered

    def _require_movement(self, partition: TopicPartition, reached: Reached, lag: int, now: float) -> None:
        if not lag or partition in self._progress.unreadable:
            reached.moved_at = now
        still_seconds = now - max(reached.moved_at, self._excused_at)
        if still_seconds > self._patience_seconds:
            raise WorkerStuck(
                f"{partition.topic} partition {partition.partition} has {lag} records waiting and made no progress "
                f"for {still_seconds:.0f} s."
            )

    def _age_seconds(self, reached: Reached, lag: int) -> float:
        oldest = reached.in_hand_since_ms
        if oldest is None and lag:
            oldest = reached.done_ms
        return 0.0 if oldest is None else max(0.0, (self._now_ms() - oldest) / 1000)
