"""The worker as the service sees it: by the file it writes into the data directory, and by the room that is left there.

Both may run on machines of their own, so no process is looked for, and no clock is believed but for the first look.
"""

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation, current_generation, read_build
from indexer.integrity.noted_damage import read_damage
from schemas.api import Healing, WorkerStatus
from schemas.generations import Build
from schemas.runtime import WorkerState, read_state

LOOK_SECONDS = 1.0
SILENT_SECONDS = 10.0
LOOP_CRASHES = 3
LOOP_SECONDS = 600.0
LOW_DISK_BYTES = 64 * 1024 * 1024
MIB = 1024 * 1024


@dataclass(eq=False)
class WorkerMonitor:
    """Looks once a second; `status` and `notes` report what was seen."""

    data_dir: Path
    clock: Callable[[], float] = time.monotonic
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    disk_free_bytes: int | None = None
    healing: Healing | None = None
    _state: WorkerState | None = None
    _heard_at: float = 0.0

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Read the file, the progress of healing, and ask for the room that is left."""
        state = read_state(self.data_dir)
        if state is not None and state != self._state:
            age = 0.0 if self._state is not None else max(0, self.now_ms() - state.at_ms) / 1000
            self._state, self._heard_at = state, self.clock() - age
        try:
            self.healing = self._healing()
            self.disk_free_bytes = shutil.disk_usage(self.data_dir).free
        except OSError:
            self.disk_free_bytes = None

    def _healing(self) -> Healing | None:
        try:
            live = current_generation(self.data_dir)
        except DamagedStore:
            return None
        noted = None if live is None else read_damage(live)
        if noted is None or noted.refused:
            return None
        seconds = max(0.0, (self.now_ms() - noted.since_ms) / 1000) if noted.since_ms else None
        found = Healing(generation=noted.successor, seconds=seconds, message="")
        build = read_build(Generation(self.data_dir, noted.successor))
        if build is not None:
            of = {"records": build.records, "of_records": build.of_records, "seconds_left": build.seconds_left}
            found = found.model_copy(update=of)
        return found.model_copy(update={"message": _healing_message(found, build)})

    def status(self) -> WorkerStatus:
        state = self._state
        if state is None:
            return WorkerStatus(state="never_seen")
        silent = self.clock() - self._heard_at
        alive = state.phase in ("starting", "running")
        return WorkerStatus(
            state="silent" if alive and silent > SILENT_SECONDS else state.phase,
            heard_seconds_ago=round(silent, 1),
            missing=list(state.missing),
            waiting_for=state.waiting_for,
            crashes_in_ten_minutes=sum(self.now_ms() - at < LOOP_SECONDS * 1000 for at in state.crashes_ms),
            last_failure=state.last_failure,
            metrics_url=state.metrics_url or None,
        )

    def notes(self) -> list[str]:
        """What a person has to know of the worker; searches run all the same."""
        status = self.status()
        healing = self.healing.message if self.healing is not None else None
        notes = [note for note in (healing, _absence(status), _loop(status)) if note]
        if status.state in ("starting", "running") and self._state is not None:
            notes += self._state.notes
        if status.state == "starting" and status.missing:
            notes.append(f"The worker is starting; it waits for: {', '.join(status.missing)}.")
        if status.state in ("starting", "running"):
            notes += [
                f"The worker waits for {name} and continues automatically; nothing is lost. {failure}"
                for name, failure in status.waiting_for.items()
            ]
        if self.disk_free_bytes is not None and self.disk_free_bytes < LOW_DISK_BYTES:
            notes.append(
                f"The disk of {self.data_dir} is full: {self.disk_free_bytes / MIB:,.0f} MiB are left. Make room; "
                "what comes meanwhile stays in the log and is indexed then."
            )
        return notes


def _healing_message(healing: Healing, build: Build | None) -> str:
    since = "" if healing.seconds is None else f" for {healing.seconds:,.0f} s now"
    what = f"Healing{since}: generation {healing.generation} is made from the log, and takes over automatically"
    if build is None:
        return f"{what}; it has not begun yet."
    if build.state == "failed":
        return f"Healing has stopped: {build.problem} Once that is put right, 'thalweg rebuild' makes the stores again."
    if build.state == "ready":
        return f"{what}; it is complete."
    left = "" if healing.seconds_left is None else f", about {max(1.0, healing.seconds_left):,.0f} s left"
    problem = f" {build.problem}" if build.problem else ""
    read = f"has read {healing.records:,} of {healing.of_records:,} records" if healing.of_records else "is starting"
    return f"{what}; it {read}{left}.{problem}"


def _absence(status: WorkerStatus) -> str | None:
    so_far = "Searches go on, on what is indexed so far."
    if status.state == "never_seen":
        return "No worker has run on this data directory yet: start one with 'thalweg worker' or 'thalweg up'."
    ago = f"{status.heard_seconds_ago:,.0f} s ago"
    if status.state == "silent":
        return f"The worker is gone or hangs: its last sign of life was {ago}. {so_far}"
    if status.state == "failed":
        return f"The worker ended {ago}: {status.last_failure} {so_far}"
    if status.state == "stopped":
        return f"No worker runs: the last one was stopped {ago}. {so_far}"
    return None


def _loop(status: WorkerStatus) -> str | None:
    if status.crashes_in_ten_minutes < LOOP_CRASHES:
        return None
    return (
        f"The worker crashed {status.crashes_in_ten_minutes} times in ten minutes. The last time: "
        f"{status.last_failure} Its log says more."
    )
