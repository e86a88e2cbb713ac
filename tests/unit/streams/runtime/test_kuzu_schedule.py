"""When the graph is published, and what a failure does; the process that publishes is a double."""

import asyncio
import threading
from pathlib import Path

import pytest

from indexer.generation_folders import Generation
from streams.runtime import snapshot_schedule as module
from streams.runtime.kuzu_schedule import SHARE, GraphPublisher
from streams.runtime.snapshot_schedule import SnapshotSchedule
from streams.worker_metrics import WorkerMetrics
from tests.support.waiting import eventually


class FakeProcess:
    """Ends by itself with a code, or, without one, when it is killed."""

    def __init__(self, code: int | None, output: str = "") -> None:
        self._code = code
        self._output = output
        self._ended = threading.Event()
        self.was_killed = False

    def wait(self) -> int:
        if self._code is None:
            self._ended.wait()
            return -9
        return self._code

    def kill(self) -> None:
        self.was_killed = True
        self._ended.set()

    def output_tail(self, lines: int = 20) -> str:
        return self._output


class Processes:
    """Started one after the other; the last one for good."""

    def __init__(self, *processes: FakeProcess | OSError, are_due: bool = True) -> None:
        self.waiting = list(processes)
        self.are_due = are_due
        self.started = 0

    def start(self) -> FakeProcess:
        self.started += 1
        process = self.waiting.pop(0) if len(self.waiting) > 1 else self.waiting[0]
        if isinstance(process, OSError):
            raise process
        return process


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def publishing(
    folder: Path, processes: Processes, *, pending: bool = False, clock: Clock | None = None
) -> tuple[GraphPublisher, SnapshotSchedule, WorkerMetrics]:
    schedule = SnapshotSchedule(
        idle_seconds=0.01,
        min_seconds=3_600,
        max_seconds=float("inf"),
        share=SHARE,
        idle_share=SHARE,
        is_pending=pending,
        **({} if clock is None else {"clock": clock}),
    )
    metrics = WorkerMetrics()
    publisher = GraphPublisher(
        schedule, Generation(folder, "g0001"), processes.start, metrics, is_due=lambda _: processes.are_due
    )
    return publisher, schedule, metrics


def counted(metrics: WorkerMetrics, outcome: str) -> float:
    value = metrics.registry.get_sample_value("thalweg_graph_publications_total", {"outcome": outcome})
    assert value is not None
    return value


async def test_each_snapshot_after_the_pause_is_published(tmp_path: Path) -> None:
    processes = Processes(FakeProcess(0))
    publisher, _, metrics = publishing(tmp_path, processes)
    running = asyncio.create_task(publisher.run())
    await asyncio.sleep(0)
    assert processes.started == 0
    publisher.changed()
    await eventually(lambda: counted(metrics, "done") == 1)
    publisher.changed()
    await eventually(lambda: counted(metrics, "done") == 2)
    running.cancel()


async def test_publication_waits_twenty_times_what_the_last_took(tmp_path: Path) -> None:
    clock = Clock()
    _, schedule, _ = publishing(tmp_path, Processes(FakeProcess(0)), pending=True, clock=clock)
    token = schedule.begin()
    clock.now = 500.0
    schedule.made(token)
    schedule.changed()
    assert schedule.due_in() == 10_000
    clock.now += 9_999
    schedule.changed()
    assert schedule.due_in() == pytest.approx(1.0)
    clock.now += 1
    assert schedule.due_in() == 0


async def test_snapshot_that_is_published_starts_no_process(tmp_path: Path) -> None:
    processes = Processes(FakeProcess(0), are_due=False)
    publisher, schedule, metrics = publishing(tmp_path, processes, pending=True)
    await publisher.make()
    assert not schedule.pending
    assert (processes.started, counted(metrics, "done")) == (0, 0)


@pytest.mark.parametrize("failure", [FakeProcess(1, "thalweg: no room"), OSError("no such program")])
async def test_failure_is_counted_and_next_snapshot_is_published(
    failure: FakeProcess | OSError, tmp_path: Path
) -> None:
    publisher, schedule, metrics = publishing(tmp_path, Processes(failure, FakeProcess(0)), pending=True)
    left = tmp_path / "generations" / "g0001" / "kuzu" / ".s1.part"
    left.mkdir(parents=True)
    await publisher.make()
    assert (counted(metrics, "failed"), counted(metrics, "done")) == (1, 0)
    assert not left.exists()
    assert not schedule.pending
    publisher.changed()
    await publisher.make()
    assert (counted(metrics, "failed"), counted(metrics, "done")) == (1, 1)


async def test_end_of_worker_ends_the_publishing_process(tmp_path: Path) -> None:
    endless = FakeProcess(None)
    processes = Processes(endless)
    publisher, _, _ = publishing(tmp_path, processes, pending=True)
    running = asyncio.create_task(publisher.run())
    await eventually(lambda: processes.started == 1)
    running.cancel()
    await asyncio.wait({running}, timeout=10)
    assert running.cancelled()
    assert endless.was_killed


async def test_damaged_graph_is_removed_and_due_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DERIVED_CHECK_SECONDS", 0.01)
    publisher, schedule, _ = publishing(tmp_path, Processes(FakeProcess(0)))
    damaged = tmp_path / "generations" / "g0001" / "kuzu" / "s1"
    damaged.mkdir(parents=True)
    checking = asyncio.create_task(publisher.check())
    await eventually(lambda: schedule.pending)
    assert not damaged.exists()
    checking.cancel()
