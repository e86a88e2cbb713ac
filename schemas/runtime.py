"""Small files by which the processes on one data directory find each other: `running.json` and `worker.json`."""

import os
from pathlib import Path
from typing import Literal

import msgspec

RUNNING_FILE = "running.json"
WORKER_FILE = "worker.json"
BEAT_SECONDS = 2.0  # between two writes of the worker's state
MAX_CRASHES = 20
_WORKER_FILE_BYTES = 4_096
_MAX_CHARACTERS = 300
_MAX_NOTE_CHARACTERS = 700
_MAX_NOTES = 2


class Running(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What runs on this data directory or is starting: Kafka answers, worker and service soon do. A hint: the file may
    outlive a killed process."""

    pid: int
    kafka: str
    service_url: str


def announce(data_dir: Path, running: Running) -> None:
    """Write the file atomically."""
    data_dir.mkdir(parents=True, exist_ok=True)
    temporary = data_dir / f".{RUNNING_FILE}.{os.getpid()}"
    temporary.write_bytes(msgspec.json.encode(running))
    temporary.replace(data_dir / RUNNING_FILE)


def withdraw(data_dir: Path) -> None:
    (data_dir / RUNNING_FILE).unlink(missing_ok=True)


def find_running(data_dir: Path) -> Running | None:
    """What the file says, or None when there is no readable file or its process is gone."""
    try:
        running = msgspec.json.decode((data_dir / RUNNING_FILE).read_bytes(), type=Running)
        os.kill(running.pid, 0)
    except PermissionError:  # alive, and someone else's
        return running
    except (OSError, msgspec.DecodeError):
        return None
    return running


Phase = Literal["starting", "running", "stopped", "failed"]


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """The worker's own report at `at_ms`. A worker that was killed leaves the phase it was in.

    `missing` is what it needs before it works, `notes` what the operator should know and do, `waiting_for` {what is
    being retried: the failure}, `crashes_ms` the times of earlier crashes on this directory, the latest last,
    `last_failure` the message of the latest.
    """

    at_ms: int
    phase: Phase
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metrics_url: str = ""
    waiting_for: dict[str, str] = {}
    crashes_ms: tuple[int, ...] = ()
    last_failure: str | None = None


def write_state(data_dir: Path, state: WorkerState) -> None:
    """In place and in one write, so that it needs no room on a full disk. Raises OSError."""
    short = msgspec.structs.replace(
        state,
        notes=tuple(note[:_MAX_NOTE_CHARACTERS] for note in state.notes[:_MAX_NOTES]),
        waiting_for={name: text[:_MAX_CHARACTERS] for name, text in state.waiting_for.items()},
        last_failure=state.last_failure and state.last_failure[:_MAX_CHARACTERS],
        crashes_ms=state.crashes_ms[-MAX_CRASHES:],
    )
    file = os.open(data_dir / WORKER_FILE, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.pwrite(file, msgspec.json.encode(short).ljust(_WORKER_FILE_BYTES), 0)
    finally:
        os.close(file)


def read_state(data_dir: Path) -> WorkerState | None:
    """None when there is no file, or none that can be read just now."""
    try:
        return msgspec.json.decode((data_dir / WORKER_FILE).read_bytes(), type=WorkerState)
    except (OSError, msgspec.DecodeError):
        return None
