"""How the worker is, for whoever shares its data directory: a small file that it writes every two seconds."""

import os
from pathlib import Path
from typing import Literal

import msgspec

FILE_NAME = "worker.json"
BEAT_SECONDS = 2.0
MOST_CRASHES = 20
_FILE_BYTES = 4_096
_MOST_TEXT = 300

Phase = Literal["starting", "running", "stopped", "failed"]


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker said of itself at `at_ms`. A worker that was killed leaves the phase it was in.

    `missing` is what it needs before it works, `waiting_for` what fails for now and is tried again, with the failure;
    `crashes_ms` is when earlier workers on this directory ended without being told to, the latest last, `last_failure`
    what the latest of them, or this one, said of it.
    """

    at_ms: int
    phase: Phase
    missing: tuple[str, ...] = ()
    waiting_for: dict[str, str] = {}
    crashes_ms: tuple[int, ...] = ()
    last_failure: str | None = None


def write_state(data_dir: Path, state: WorkerState) -> None:
    """In place and in one write, so that it needs no room on a full disk. Raises OSError."""
    short = msgspec.structs.replace(
        state,
        waiting_for={name: text[:_MOST_TEXT] for name, text in state.waiting_for.items()},
        last_failure=state.last_failure and state.last_failure[:_MOST_TEXT],
        crashes_ms=state.crashes_ms[-MOST_CRASHES:],
    )
    file = os.open(data_dir / FILE_NAME, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.pwrite(file, msgspec.json.encode(short).ljust(_FILE_BYTES), 0)
    finally:
        os.close(file)


def read_state(data_dir: Path) -> WorkerState | None:
    """None when there is no file, or none that can be read just now."""
    try:
        return msgspec.json.decode((data_dir / FILE_NAME).read_bytes(), type=WorkerState)
    except (OSError, msgspec.DecodeError):
        return None
