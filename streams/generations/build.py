"""The build of a generation beside the live one: its progress, and when it may take the other's place."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from indexer.errors import DamagedStore, TransientStoreError
from indexer.generation_comparison import compare_generations
from indexer.generation_folders import Generation, read_build, write_build
from kafka_client.topic_offsets import Span
from schemas.generations import Build, GenerationComparison
from streams.worker_log import log

READY_LAG_SECONDS = 5.0
WRITE_SECONDS = 0.5


@dataclass(eq=False, kw_only=True)
class BuildMonitor:
    """Writes `build.json` twice a second; the build is ready while it follows the log as closely as a live generation
    does, once it was compared with its base.

    `spans` gives what the partitions of the documents topic hold, nothing while the broker does not answer; `done` and
    `reached` the last offset done and stored, by partition; `lag_seconds` the age of the oldest record that waits, None
    while nobody knows; `graph_is_current` whether the graph has what the tables have; `make_snapshot` publishes the
    graph; `count_chunks` the chunks stored so far.
    """

    generation: Generation
    base: Generation | None
    spans: Callable[[], Mapping[int, Span]]
    done: Callable[[], Mapping[int, int]]
    reached: Callable[[], Mapping[int, int]]
    lag_seconds: Callable[[], float | None]
    graph_is_current: Callable[[], Awaitable[bool]]
    make_snapshot: Callable[[], Awaitable[None]]
    count_chunks: Callable[[], Awaitable[int]]
    clock: Callable[[], float] = time.monotonic
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def __post_init__(self) -> None:
        self._first_spans: Mapping[int, Span] = {}
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
            records, of_records = self._records()
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

    def _records(self) -> tuple[int, int]:
        """Offsets read so far, and of how many; the last known numbers while the broker does not answer."""
        spans, done = self.spans(), self.done()
        if not spans:
            return self._build.records, self._build.of_records
        self._first_spans = self._first_spans or spans
        waiting = sum(span.end - span.after(done.get(number, -1)).beginning for number, span in spans.items())
        of_records = sum(span.end - span.beginning for span in spans.values())
        return of_records - waiting, of_records

    def _follows_the_log(self) -> bool:
        """Nothing waits; or what does came after the start and has not waited for long."""
        lag, done = self.lag_seconds(), self.done()
        if lag is None or not self._first_spans or lag > READY_LAG_SECONDS:
            return False
        return lag == 0 or all(done.get(number, -1) + 1 >= span.end for number, span in self._first_spans.items())

    async def _finish(self) -> None:
        """Compare it with its base, once: later both follow the same log."""
        await self.make_snapshot()
        comparison: GenerationComparison | None = None
        problem = None
        if self.base is not None:
            try:
                comparison = await asyncio.to_thread(compare_generations, self.base, self.generation)
            except (TransientStoreError, DamagedStore, ValueError, OSError) as error:
                log.warning("the base of the build cannot be compared with it", error=str(error)[:200])
        if comparison is not None and not comparison.same_documents:
            problem = difference(self.generation.name, comparison)
        self._compared = True
        self._update(state="ready", ready_ms=self.now_ms(), comparison=comparison, problem=problem)
        log.info("generation is ready", generation=self.generation.name, seconds=round(self._build.seconds, 1))


def difference(name: str, comparison: GenerationComparison) -> str:
    """Why there is no automatic switch to it, for a person."""
    parts = []
    if comparison.missing_count:
        parts.append(f"{comparison.missing_count} documents are missing, such as {comparison.missing[0][:80]!r}")
    if comparison.unexpected_count:
        parts.append(f"{comparison.unexpected_count} were not there before, such as {comparison.unexpected[0][:80]!r}")
    return (
        f"Not switched to: {'; '.join(parts)}. See 'thalweg dead-letters list' for those that could not be indexed; "
        f"'thalweg generations switch {name} --force' switches all the same."
    )
