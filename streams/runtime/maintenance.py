"""Background maintenance of the vector tables in threads beside the writer's: compaction, retention, checksums."""

import asyncio
import time
from collections.abc import Callable

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation, read_manifest, restore_current, restore_manifest
from indexer.integrity.files import damage_message, damaged_tables, is_recoverable
from indexer.write.lance_writer import LanceWriter
from streams.errors import StartAgain
from streams.runtime.store_thread import StoreThread
from streams.settings import WorkerSettings
from streams.worker_log import log
from streams.worker_metrics import WorkerMetrics

AFTER_WORK_SECONDS = 0.5
MAINTENANCE_SECONDS = 2.0  # between two looks at the tables; work is done only where it pays
RETENTION_CHECK_SECONDS = 3_600.0
CHECKSUM_SECONDS = 1.0
CHECK_SECONDS = 15.0
CHECK_PAUSE_FACTOR = 19  # a twentieth of one core at most
DAY_SECONDS = 86_400.0


async def maintain_tables(
    writer: LanceWriter, thread: StoreThread, metrics: WorkerMetrics, settings: WorkerSettings
) -> None:
    """Until cancelled; at once again after something was done, since more may be due."""
    retention = Retention(writer, thread, settings.kafka.provenance_days)
    while True:
        await retention.apply()
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
            await asyncio.sleep(MAINTENANCE_SECONDS)


class Retention:
    """Deletes retrievals and feedback as old as what their topic no longer keeps."""

    def __init__(
        self, writer: LanceWriter, thread: StoreThread, days: float, now: Callable[[], float] = time.time
    ) -> None:
        self._writer = writer
        self._thread = thread
        self._seconds = days * DAY_SECONDS
        self._now = now
        self._due = float("-inf")

    async def apply(self) -> None:
        """Once an hour, counted from the end of the last time; the first time at once."""
        if self._now() < self._due:
            return
        deleted = await self._thread.run(self._writer.forget, int((self._now() - self._seconds) * 1_000))
        self._due = self._now() + RETENTION_CHECK_SECONDS
        if deleted:
            log.info("old retrievals and feedback deleted", rows=deleted)


async def check_files(generation: Generation, *, is_live: bool) -> None:
    """Until cancelled: compare every file of the tables with its checksum, pass after pass, and write the manifest
    again where it is damaged; of the live generation `CURRENT`, too.

    Raises DamagedStore, and StartAgain where the next start repairs it.
    """
    manifest = await asyncio.to_thread(read_manifest, generation)
    while True:
        manifest = await asyncio.to_thread(restore_manifest, generation, manifest)
        if is_live:
            await asyncio.to_thread(restore_current, generation.data_dir, generation)
        steps = damaged_tables(generation)
        while True:
            began = time.monotonic()
            damage = await asyncio.to_thread(next, steps, None)
            if damage and all(map(is_recoverable, damage)):
                raise StartAgain(damage_message(damage))
            if damage:
                raise DamagedStore(damage_message(damage))
            await asyncio.sleep(CHECK_PAUSE_FACTOR * (time.monotonic() - began))
            if damage is None:
                break
        await asyncio.sleep(CHECK_SECONDS)


async def record_checksums(writer: LanceWriter, thread: StoreThread) -> None:
    """Until cancelled: a file is recorded about a second after it was written."""
    while True:
        await thread.run(writer.record_checksums)
        await asyncio.sleep(CHECKSUM_SECONDS)
