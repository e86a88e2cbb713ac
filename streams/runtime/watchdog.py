"""The watchdog: the worker's lag as metrics, and the end of a worker that makes no progress in spite of it."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from kafka_client.topic_lag import Lag, LagMonitor
from kafka_client.topic_offsets import TopicPartition
from streams.errors import WorkerStuck
from streams.runtime.partition_progress import PartitionProgress, Progress
from streams.runtime.worker_health import Health
from streams.worker_metrics import WorkerMetrics

STORES = {"text": "lance", "graph": "graph", "provenance": "lance"}
STUCK_SECONDS = 300.0  # without progress in spite of lag: the worker ends, to be restarted
UNKNOWN = math.nan  # a lag while the broker does not answer: nobody knows what was written meanwhile


@dataclass(eq=False)
class Watchdog:
    """Measures lag every few seconds, and raises WorkerStuck for a partition that makes no progress in spite of lag.

    A worker that waits for something known is not stuck: a broker that does not answer, a store or a model that is
    being retried, an operator's decision on a batch that cannot be read.
    """

    lag_monitor: LagMonitor
    progress: Progress
    metrics: WorkerMetrics
    health: Health
    _: KW_ONLY
    timeout_seconds: float = STUCK_SECONDS
    every_seconds: float = 2.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._excused_at = self.clock()
        self._excused_partitions: dict[TopicPartition, float] = {}
        self.lag_seconds: dict[str, float] | None = None
        """By stage; None before the first look, and while the broker does not answer."""

    async def run(self) -> None:
        """For ever. Raises WorkerStuck."""
        while True:
            await self.check()
            await asyncio.sleep(self.every_seconds)

    async def check(self) -> None:
        """Measure once. Raises WorkerStuck."""
        await self.lag_monitor.look()
        now, answered = self.clock(), self.lag_monitor.reachable
        (self.health.up if answered else self.health.down)("kafka")
        unreadable = self.lag_monitor.unreadable + list(self.progress.unreadable.values())
        self.health.note(sorted({str(batch) for batch in unreadable}))
        stopped = {(batch.topic, batch.partition) for batch in unreadable}
        if not answered or self.progress.waiting_for:
            self._excused_at = now
        lags = self.lag_monitor.lags()
        lag_seconds: dict[str, float] = {}
        for partition, reached in list(self.progress.partitions.items()):
            lag = lags[partition.topic].get(partition.partition, Lag(0, 0.0))
            self.metrics.lag_records.labels(partition.topic, str(partition.partition)).set(
                lag.records if answered else UNKNOWN
            )
            store = STORES[reached.stage]
            self.metrics.store_position.labels(store, partition.topic, str(partition.partition)).set(reached.offset)
            self._require_movement(partition, reached, 0 if partition in stopped else lag.records, now)
            lag_seconds[reached.stage] = max(lag.seconds, lag_seconds.get(reached.stage, 0.0))
        self.lag_seconds = lag_seconds if answered else None
        for stage, seconds in lag_seconds.items():
            self.metrics.lag_seconds.labels(stage).set(seconds if answered else UNKNOWN)

    def _require_movement(self, partition: TopicPartition, reached: PartitionProgress, lag: int, now: float) -> None:
        if not lag:
            self._excused_partitions[partition] = now
        excused_at = max(self._excused_at, self._excused_partitions.get(partition, self._excused_at))
        still_seconds = now - max(reached.moved_at, excused_at)
        if still_seconds > self.timeout_seconds:
            raise WorkerStuck(
                f"{partition.topic} partition {partition.partition} has {lag} records waiting and made no progress "
                f"for {still_seconds:.0f} s."
            )
