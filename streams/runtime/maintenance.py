"""Keeps the vector tables in shape, in a thread of its own beside the writer's."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from indexer.write.lance_maintenance import MaintenanceReport
from streams.metrics import WorkerMetrics
from streams.runtime.store_thread import StoreThread
from streams.settings import WorkerSettings

AFTER_WORK_SECONDS = 0.5
FORGET_EVERY_SECONDS = 3_600.0
DAY_SECONDS = 86_400.0


class MaintainedWriter(Protocol):
    """May run beside the writer's other calls."""

    def maintain(self) -> MaintenanceReport:
        """Does what pays now, nothing when nothing pays, and says what it did."""
        ...

    def forget(self, before_ms: int) -> int:
        """Deletes retrievals and feedback from before a time, and says how many. May be called again."""
        ...


async def keep_maintained(
    writer: MaintainedWriter, thread: StoreThread, metrics: WorkerMetrics, settings: WorkerSettings
) -> None:
    """Look after the tables for ever; at once again after something was done, since more may wait."""
    log = structlog.get_logger("thalweg.worker")
    forgetting = Forgetting(writer, thread, settings.kafka.provenance_days)
    while True:
        await forgetting.when_due()
        report = await thread.run(writer.maintain)
        metrics.lance_fragments.set(max(report.fragments.values(), default=0))
        if report.optimised or report.indexed:
            log.info(
                "vector tables maintained",
                optimised=report.optimised,
                indexed=report.indexed,
                unindexed=report.unindexed,
                seconds=round(report.seconds, 3),
            )
            await asyncio.sleep(AFTER_WORK_SECONDS)
        else:
            await asyncio.sleep(settings.worker.maintenance_seconds)


class Forgetting:
    """Retrievals and feedback leave the tables when they are as old as what their topic no longer keeps."""

    def __init__(
        self, writer: MaintainedWriter, thread: StoreThread, kept_days: float, now: Callable[[], float] = time.time
    ) -> None:
        self._writer = writer
        self._thread = thread
        self._kept_seconds = kept_days * DAY_SECONDS
        self._now = now
        self._due = float("-inf")

    async def when_due(self) -> None:
        """Once an hour, counted from the end of the time before; the first time at once."""
        if self._now() < self._due:
            return
        forgotten = await self._thread.run(self._writer.forget, int((self._now() - self._kept_seconds) * 1_000))
        self._due = self._now() + FORGET_EVERY_SECONDS
        if forgotten:
            structlog.get_logger("thalweg.worker").info("old retrievals and feedback forgotten", rows=forgotten)
