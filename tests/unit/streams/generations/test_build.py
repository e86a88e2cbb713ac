"""A build is ready while it follows the log, and says how far it is."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from indexer.generation_folders import Generation, make_generation, read_build
from kafka_client.topic_offsets import Span, TopicPartition
from schemas.generations import Build
from streams.generations import build as build_module
from streams.generations.build import READY_LAG_SECONDS, BuildMonitor
from streams.runtime.partition_progress import Progress
from tests.support.fixtures.manifest import MANIFEST
from tests.support.waiting import eventually

PLACE = TopicPartition("thalweg.documents.v1", 0)


class Worker:
    """What the worker that builds knows: its lag, its positions, and the log's ends."""

    def __init__(self, end: int) -> None:
        self.progress = Progress()
        self.progress.expect("text", PLACE.topic, PLACE.partition, -1)
        self.end = end
        self.lag: float | None = 60.0
        self.graph_is_current = True
        self.snapshots = 0

    def read(self, offset: int, lag: float) -> None:
        self.progress.done("text", PLACE.topic, PLACE.partition, offset)
        self.lag = lag

    def spans(self) -> Mapping[int, Span]:
        return {0: Span(0, self.end)}

    def done(self) -> Mapping[int, int]:
        return self.progress.reached()[PLACE.topic]

    async def is_current(self) -> bool:
        return self.graph_is_current

    async def snapshot(self) -> None:
        self.snapshots += 1

    async def chunks(self) -> int:
        return 7


@asynccontextmanager
async def monitored(data_dir: Path, worker: Worker) -> AsyncIterator[Generation]:
    generation = make_generation(data_dir, MANIFEST)
    monitor = BuildMonitor(
        generation=generation,
        base=None,
        spans=worker.spans,
        done=worker.done,
        reached=worker.done,
        lag_seconds=lambda: worker.lag,
        graph_is_current=worker.is_current,
        make_snapshot=worker.snapshot,
        count_chunks=worker.chunks,
    )
    task = asyncio.create_task(monitor.run())
    try:
        yield generation
    finally:
        task.cancel()
        await asyncio.wait({task})


def written(generation: Generation) -> Build:
    return read_build(generation) or Build(state="building")


@pytest.fixture(autouse=True)
def _written_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "WRITE_SECONDS", 0.01)


async def test_build_is_ready_once_it_follows_the_log(tmp_path: Path) -> None:
    worker = Worker(end=100)
    async with monitored(tmp_path, worker) as generation:
        await eventually(lambda: written(generation).of_records == 100)
        worker.read(50, lag=1.0)
        await eventually(lambda: written(generation).reached == {0: 50})
        assert written(generation).state == "building", "what was there at the start is not read yet"
        worker.graph_is_current = False
        worker.read(99, lag=0.0)
        await eventually(lambda: written(generation).reached == {0: 99})
        assert written(generation).state == "building"
        worker.graph_is_current = True
        await eventually(lambda: written(generation).state == "ready")
        assert worker.snapshots == 1


async def test_build_that_falls_behind_is_ready_no_longer(tmp_path: Path) -> None:
    worker = Worker(end=100)
    async with monitored(tmp_path, worker) as generation:
        worker.read(99, lag=0.0)
        await eventually(lambda: written(generation).state == "ready")
        complete = written(generation).ready_ms
        worker.end, worker.lag = 800, READY_LAG_SECONDS + 1
        await eventually(lambda: written(generation).state == "building")
        assert (written(generation).ready_ms, written(generation).of_records) == (complete, 800)
        worker.graph_is_current = False  # as it is now and then while records keep coming
        worker.read(750, lag=1.0)
        await eventually(lambda: written(generation).state == "ready")
        assert worker.snapshots == 1, "it was compared before"


async def test_build_is_not_ready_while_the_lag_is_unknown(tmp_path: Path) -> None:
    worker = Worker(end=1)
    async with monitored(tmp_path, worker) as generation:
        worker.read(0, lag=0.0)
        await eventually(lambda: written(generation).state == "ready")
        worker.lag = None
        await eventually(lambda: written(generation).state == "building")
