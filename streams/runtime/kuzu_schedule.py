"""The graph published as a Kùzu file, for Cypher: by a process beside the worker, which nothing waits for."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from indexer.generation_folders import Generation
from indexer.read.published_graph import is_due, newest_folder
from indexer.write.arrow_publication import remove_unfinished
from indexer.write.kuzu_publication import remove_damaged
from streams.child_processes import Child, exit_text
from streams.runtime.snapshot_schedule import CHECK_PAUSE_FACTOR, MadeOfSnapshots
from streams.worker_log import log
from streams.worker_metrics import WorkerMetrics

SHARE = 0.05  # of the time, at most


@dataclass(eq=False)
class GraphPublisher(MadeOfSnapshots):
    """Has the newest snapshot published when that is due: rarely, the longer it takes. A failure harms nothing else: it
    is logged and counted, and the next snapshot is published. Cancelling `run` ends the process that publishes."""

    pause_factor = CHECK_PAUSE_FACTOR
    generation: Generation
    start: Callable[[], Child]
    metrics: WorkerMetrics
    is_due: Callable[[Generation], bool] = is_due

    async def remove_damaged(self) -> bool:
        names = await asyncio.to_thread(remove_damaged, self.generation.kuzu_dir)
        if names:
            log.error("damaged published graphs are removed, and made again", names=names)
        return bool(names)

    async def make(self) -> None:
        token = self.schedule.begin()
        if not self.is_due(self.generation):
            self.schedule.made(token)
            return
        try:
            problem = await self._run_process()
        except OSError as error:  # it cannot be started
            problem = str(error)
        took = self.schedule.made(token)
        self.metrics.graph_publications.labels("failed" if problem else "done").inc()
        if problem:
            log.error("the graph is not published; the next snapshot will be", reason=problem)
            await asyncio.to_thread(remove_unfinished, self.generation.kuzu_dir)
            return
        newest = newest_folder(self.generation.kuzu_dir)
        log.info("graph published", name=newest.name if newest else None, seconds=round(took, 3))

    async def _run_process(self) -> str:
        """Why it failed; empty where it did not."""
        process = self.start()
        try:
            code = await asyncio.to_thread(process.wait)
        finally:
            process.kill()
        return "" if code == 0 else process.output_tail().strip() or exit_text(code)


def publishing_process(generation: Generation, log_file: Path, buffer_bytes: int) -> Child:
    """Started; it ends with this process."""
    program = [sys.executable, "-m", "indexer.write.kuzu_publication"]
    arguments = [str(generation.data_dir.absolute()), generation.name, str(buffer_bytes)]
    return Child([*program, *arguments], output=log_file, append=False)
