"""What all parts of a worker share: settings, metrics, health, progress, and what runs until the worker ends."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any

from kafka_client.skipped_batches import SkippedBatches
from schemas.topics import TopicNames
from streams.generations.role import WorkerRole
from streams.kafka.partition_reader import PartitionReader
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import Retrier
from streams.runtime.store_thread import StoreThread
from streams.runtime.worker_health import Health
from streams.settings import WorkerSettings
from streams.worker_metrics import WorkerMetrics

_FIRST_WAIT_SECONDS = 0.5


class WorkerRuntime:
    """`cleanup` closes what was opened, in the reverse order; `failure` is set to what ends a running worker. Whoever
    contributes to the graph takes `commit_lock`."""

    def __init__(self, settings: WorkerSettings, role: WorkerRole) -> None:
        self.settings = settings
        self.role = role
        self.names = TopicNames(settings.kafka.topic_prefix)
        self.metrics = WorkerMetrics()
        self.metrics.measure_disk(settings.storage.data_dir)
        self.health = Health(["kafka", "encoder", "stores", "partitions"])
        self.progress = Progress()
        self.skipped = SkippedBatches(lambda: settings.kafka, self.names.curation)
        self.commit_lock = asyncio.Lock()
        self.cleanup = AsyncExitStack()
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._background: list[asyncio.Task[None]] = []

    def run(self, *works: Coroutine[Any, Any, None]) -> None:
        """In the background; the failure of any is the worker's."""
        for work in works:
            task = asyncio.create_task(work)
            task.add_done_callback(self._on_end)
            self._background.append(task)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)

    async def aclose(self) -> None:
        """Cancel what is running, close what was opened. Every step is tried."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.cleanup.aclose()

    def retrier(self, target: str, *errors: type[Exception]) -> Retrier:
        return Retrier(target, errors, self.metrics, self.progress, first_wait_seconds=_FIRST_WAIT_SECONDS)

    def store_thread(self, name: str) -> StoreThread:
        thread = StoreThread(name, self.metrics, self.progress)
        self.cleanup.callback(thread.end)
        return thread

    def partition_reader(self, topic: str, partition: int) -> PartitionReader:
        return PartitionReader(self.settings.kafka, topic, partition, self.skipped, self.progress.unreadable)
