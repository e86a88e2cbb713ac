"""Keeps the vector tables in shape, in a thread of its own beside the writer's."""

import asyncio
from typing import Protocol

import structlog

from indexer.write.maintenance import MaintenanceReport
from streams.metrics import WorkerMetrics
from streams.progress.stores import StoreThread

AFTER_WORK_SECONDS = 0.5


class MaintainedWriter(Protocol):
    """Does what pays now, nothing when nothing pays, and says what it did. May run beside the writer's other calls."""

    def maintain(self) -> MaintenanceReport: ...


async def keep_maintained(
    writer: MaintainedWriter, thread: StoreThread, metrics: WorkerMetrics, every_seconds: float
) -> None:
    """Look after the tables for ever; at once again after something was done, since more may wait."""
    log = structlog.get_logger("thalweg.worker")
    while True:
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
            await asyncio.sleep(every_seconds)
