"""The build of a generation beside the live one: how far it is, and when it may take the other's place."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog

from indexer.errors import DamagedStore, TransientStoreError
from indexer.generation_comparison import compare_generations
from indexer.generation_folders import Generation, read_build, write_build
from schemas.generations import Build, GenerationComparison
from streams.runtime.partition_progress import Progress, TopicPartition
from streams.runtime.watchdog import KafkaLog

READY_LAG_SECONDS = 5.0
WRITE_SECONDS = 0.5


@dataclass(eq=False, kw_only=True)
class BuildMonitor:
    """Writes `build.json` twice a second; the build is ready while it follows the log as closely as a live generation
    does, once it was compared with its base.

    `reached` gives the last offset stored, by partition; `lag_seconds` the age of the oldest record that waits, None
    while nobody knows; `graph_is_current` whether the graph has what the tables have; `make_snapshot` publishes the
    graph; `count_chunks` the chunks stored so far.
    """

    generation: Generation
    base: Generation | None
    documents_log: KafkaLog
    progress: Progress
    reached: Callable[[], Mapping[int, int]]
    lag_seconds: Callable[[], float | None]
    graph_is_current: Callable[[], Awaitable[bool]]
    make_snapshot: Callable[[], Awaitable[None]]
    count_chunks: Callable[[], Awaitable[int]]
    clock: Callable[[], float] = time.monotonic
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def __post_init__(self) -> None:
        self._log = structlog.get_logger("thalweg.worker")
        self._first_ends: Mapping[TopicPartition, int] | None = None
        self._compared = False
        before = read_build(self.generation) or Build(state="building", started_ms=self.now_ms())
        self._build = before.model_copy(update={"state": "building", "problem": None, "at_ms": self.now_ms()})

    async def run(self) -> None:
        """Until cancelled."""
        worked_since = self.clock()
        while True:
            now = self.clock()
            seconds = self._build.seconds + (now - worked_since if self._build.state == "building" else 0.0)
            worked_since = now
            records, of_records = await self._records()
            self._update(
                at_ms=self.now_ms(),
                seconds=seconds,
                records=records,
                of_records=max(records, of_records),
                reached=dict(self.reached()),
                chunks=await self.count_chunks(),
            )
            if not self._follows_the_log():
                self._update(state="building")
            elif self._compared:
                self._update(state="ready")
            elif await self.graph_is_current():
                await self._finish()
            await asyncio.to_thread(write_build, self.generation, self._build)
            await asyncio.sleep(WRITE_SECONDS)

    def _update(self, **changes: object) -> None:
        self._build = self._build.model_copy(update=changes)

    async def _records(self) -> tuple[int, int]:
        """Offsets read so far, and of how many; the last known numbers while the broker does not answer."""
        beginnings, ends = await self.documents_log.beginnings(), await self.documents_log.ends()
        if beginnings is None or ends is None:
            return self._build.records, self._build.of_records
        if self._first_ends is None:
            self._first_ends = ends
        reached = {place: self.progress.partitions[place].offset + 1 for place in ends}
        done = sum(max(0, min(reached[place], ends[place]) - beginnings[place]) for place in ends)
        return done, sum(ends[place] - beginnings[place] for place in ends)

    def _follows_the_log(self) -> bool:
        """Nothing waits; or what does came after the start and has not waited for long."""
        lag = self.lag_seconds()
        if lag is None or self._first_ends is None or lag > READY_LAG_SECONDS:
            return False
        done = self.progress.partitions
        return lag == 0 or all(done[place].offset + 1 >= end for place, end in self._first_ends.items())

    async def _finish(self) -> None:
        """Compare it with its base, once: later both follow the same log."""
        await self.make_snapshot()
        comparison: GenerationComparison | None = None
        problem = None
        if self.base is not None:
            try:
                comparison = await asyncio.to_thread(compare_generations, self.base, self.generation)
            except (TransientStoreError, DamagedStore, ValueError, OSError) as error:
                self._log.warning("the base of the build cannot be compared with it", error=str(error)[:200])
        if comparison is not None and not comparison.same_documents:
            problem = difference(self.generation.name, comparison)
        self._compared = True
        self._update(state="ready", ready_ms=self.now_ms(), comparison=comparison, problem=problem)
        self._log.info("generation is ready", generation=self.generation.name, seconds=round(self._build.seconds, 1))


def difference(name: str, comparison: GenerationComparison) -> str:
    """Why it is not switched to by itself, for a person."""
    parts = []
    if comparison.missing_count:
        parts.append(f"{comparison.missing_count} documents are missing, such as {comparison.missing[0][:80]!r}")
    if comparison.unexpected_count:
        parts.append(f"{comparison.unexpected_count} were not there before, such as {comparison.unexpected[0][:80]!r}")
    return (
        f"Not switched to: {'; '.join(parts)}. See 'thalweg dead-letters list' for those that could not be indexed; "
        f"'thalweg generations switch {name} --force' switches all the same."
    )
