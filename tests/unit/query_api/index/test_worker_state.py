"""What the service tells of the worker it shares a data directory with."""

from pathlib import Path
from typing import Any

import pytest

from indexer.generation_folders import Generation, open_generation, write_build
from indexer.integrity.noted_damage import Damaged, write_damage
from query_api.index.worker_state import WorkerMonitor
from schemas.generations import Build
from schemas.runtime import WORKER_FILE, WorkerState, write_state
from tests.support.fixtures.manifest import MANIFEST

MINUTE_MS = 60_000


class Scene:
    """A service's clock and a worker's; `now` is in seconds on both, unless `ahead` sets the worker's off."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.now = 10_000.0
        self.ahead = 0.0
        self.watch = WorkerMonitor(data_dir, lambda: self.now, lambda: int(self.now * 1000))

    def write(self, **state: Any) -> None:
        at_ms = int((self.now + self.ahead) * 1000)
        write_state(self.data_dir, WorkerState(**{"at_ms": at_ms, "phase": "running", **state}))

    def after(self, seconds: float) -> list[str]:
        self.now += seconds
        self.watch.look()
        return self.watch.notes()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_worker_that_writes_needs_no_note(scene: Scene) -> None:
    for _ in range(20):
        scene.write()
        assert scene.after(2) == []
    assert scene.watch.status().state == "running"


def test_where_no_worker_has_run_it_is_said_how_to_start_one(scene: Scene) -> None:
    assert "thalweg up" in scene.after(0)[0]
    assert scene.watch.status().state == "never_seen"


def test_a_worker_that_falls_silent_is_missing(scene: Scene) -> None:
    scene.write()
    assert scene.after(9) == []
    assert scene.after(2) == [
        "The worker is gone or hangs: its last sign of life was 11 s ago. Searches go on, on what is indexed so far."
    ]
    scene.write()
    assert scene.after(0) == []


def test_a_service_that_has_just_started_knows_since_when(scene: Scene) -> None:
    scene.write()
    assert "300 s ago" in scene.after(300)[0]


@pytest.mark.parametrize("ahead", [-3_600.0, 3_600.0])
def test_a_clock_that_differs_is_believed_for_the_first_look_only(scene: Scene, ahead: float) -> None:
    scene.ahead = ahead
    scene.write()
    scene.after(1)
    scene.write()
    assert scene.after(1) == []


def test_how_the_last_one_ended_is_told(scene: Scene) -> None:
    scene.write(phase="stopped")
    assert "was stopped 5 s ago" in scene.after(5)[0]
    scene.write(phase="failed", last_failure="The model is not there.")
    scene.after(0)
    assert "The worker ended 5 s ago: The model is not there." in scene.after(5)[0]


def test_a_loop_of_crashes_is_told_until_ten_minutes_after(scene: Scene) -> None:
    now_ms = int(scene.now * 1000)
    crashes = tuple(now_ms - minutes * MINUTE_MS for minutes in (30, 9, 2, 1))
    scene.write(crashes_ms=crashes[:3], last_failure="torn")
    assert scene.after(0) == []
    scene.write(crashes_ms=crashes, last_failure="torn")
    assert scene.after(0) == ["The worker crashed 3 times in ten minutes. The last time: torn Its log says more."]
    scene.now += 600
    scene.write(crashes_ms=crashes, last_failure="torn")
    assert scene.after(0) == []


def test_what_the_worker_waits_for_is_told(scene: Scene) -> None:
    scene.write(waiting_for={"lance": "OSError: No space left on device"})
    assert scene.after(0) == [
        "The worker waits for lance and continues automatically; nothing is lost. OSError: No space left on device"
    ]
    scene.write(phase="starting", missing=("encoder",))
    assert scene.after(0) == ["The worker is starting; it waits for: encoder."]


def test_a_full_disk_is_told(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.write()
    monkeypatch.setattr("query_api.index.worker_state.LOW_DISK_BYTES", 1 << 62)
    assert "is full" in scene.after(0)[0]


def test_a_file_that_is_torn_leaves_what_was_read_before(scene: Scene) -> None:
    scene.write()
    scene.after(0)
    (scene.data_dir / WORKER_FILE).write_bytes(b'{"at_ms": 1, "pha')
    assert scene.after(1) == []
    assert scene.watch.status().state == "running"


def test_healing_reports_since_when_and_how_long_it_takes(scene: Scene) -> None:
    live, successor = open_generation(scene.data_dir, MANIFEST), Generation(scene.data_dir, "g0002-bbbbbb")
    scene.write()
    noted = Damaged("Damaged on disk: a file.", successor.name, since_ms=int(scene.now * 1000))
    write_damage(live, noted)
    assert "for 1 s now: generation g0002-bbbbbb is made from the log" in scene.after(1)[0]
    assert "has not begun yet" in scene.after(0)[0]
    write_build(successor, Build(state="building", seconds=10, records=250, of_records=1_000))
    assert "it has read 250 of 1,000 records, about 30 s left" in scene.after(9)[0]
    assert scene.watch.healing is not None
    assert (scene.watch.healing.seconds, scene.watch.healing.seconds_left) == (10.0, 30.0)
    write_build(successor, Build(state="failed", problem="There is no room."))
    assert "There is no room. Once that is put right, 'thalweg rebuild'" in scene.after(1)[0]
    write_damage(live, Damaged("Damaged on disk: a file.", successor.name, refused="The log is another one."))
    scene.write()
    assert scene.after(1) == []
    assert scene.watch.healing is None


@pytest.mark.parametrize("note", [b"", b"{", b"\x00"])
def test_damage_note_that_cannot_be_read_is_left_out(scene: Scene, note: bytes) -> None:
    open_generation(scene.data_dir, MANIFEST).damage_path.write_bytes(note)
    scene.write()
    assert scene.after(1) == []
