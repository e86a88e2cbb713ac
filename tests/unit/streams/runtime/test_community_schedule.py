"""When communities are found, and what stands in the way; the finder is a double."""

import asyncio
from collections.abc import Callable

import pytest

from indexer.errors import DamagedStore
from indexer.read.arrow_folders import TableFile
from indexer.read.community_reader import CommunityManifest
from streams.runtime import snapshot_schedule as module
from streams.runtime.community_schedule import Communities
from streams.runtime.partition_progress import Progress
from streams.runtime.snapshot_schedule import SnapshotSchedule
from streams.runtime.store_thread import StoreThread
from streams.worker_metrics import WorkerMetrics
from tests.support.waiting import eventually


class FakeFinder:
    """`failures` are raised one after the other, before anything is found."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.found = 0
        self.damaged: list[str] = []

    def find(self) -> CommunityManifest | None:
        if self.failures:
            raise self.failures.pop(0)
        self.found += 1
        files = {name: TableFile(name, 1, 1, "") for name in ("communities", "nodes")}
        return CommunityManifest(
            format=1,
            name="c1",
            snapshot="s1",
            graph_position=1,
            made_at_ms=0,
            seconds=0.1,
            tables=files,
            collections={},
        )

    def remove_damaged(self) -> list[str]:
        damaged, self.damaged = self.damaged, []
        return damaged


def communities(
    finder: FakeFinder, *, pending: bool = False, is_busy: Callable[[], bool] = lambda: False
) -> Communities:
    schedule = SnapshotSchedule(
        idle_seconds=0.01, min_seconds=3_600, max_seconds=3_600, share=0.02, is_pending=pending, is_busy=is_busy
    )
    return Communities(
        schedule, finder, StoreThread("communities", WorkerMetrics(), Progress(), first_wait_seconds=0.01)
    )


async def test_they_are_found_after_a_snapshot() -> None:
    finder = FakeFinder()
    found = communities(finder)
    running = asyncio.create_task(found.run())
    await asyncio.sleep(0)
    assert finder.found == 0
    found.changed()
    await eventually(lambda: finder.found == 1)
    found.changed()
    await eventually(lambda: finder.found == 2)
    running.cancel()


async def test_while_documents_are_being_indexed_they_wait() -> None:
    finder, under_way = FakeFinder(), {"a load"}
    found = communities(finder, pending=True, is_busy=lambda: bool(under_way))
    running = asyncio.create_task(found.run())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(running), 0.05)
    assert finder.found == 0
    under_way.clear()
    found.changed()
    await eventually(lambda: finder.found == 1)
    running.cancel()


@pytest.mark.parametrize("failure", [DamagedStore("a snapshot is damaged"), ValueError("a name of 3 GB")])
async def test_what_a_snapshot_is_to_blame_for_waits_for_the_next(failure: Exception) -> None:
    finder = FakeFinder(failure)
    found = communities(finder, pending=True)
    await found.make()
    assert finder.found == 0
    await found.make()
    assert finder.found == 1


async def test_a_snapshot_that_was_replaced_meanwhile_is_no_failure() -> None:
    finder = FakeFinder(FileNotFoundError("it is gone"), FileNotFoundError("it is gone"))
    await communities(finder).make()
    assert finder.found == 1


async def test_damaged_ones_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DERIVED_CHECK_SECONDS", 0.01)
    finder = FakeFinder()
    found = communities(finder)
    tasks = [asyncio.create_task(found.run()), asyncio.create_task(found.check())]
    await asyncio.sleep(0.03)
    assert finder.found == 0
    finder.damaged = ["c0"]
    await eventually(lambda: finder.found == 1)
    for task in tasks:
        task.cancel()
