"""The worker's sign of life in the data directory: that it runs, what it waits for, how often it crashed."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from schemas.runtime import BEAT_SECONDS, Phase, WorkerState, read_state, write_state
from streams.metrics import Health
from streams.runtime.progress import Progress

KILLED = "It ended without a word: killed from outside, or for want of memory."


class Heartbeat:
    """Writes `schemas.runtime.WorkerState` while the worker lives. Only for the holder of the worker's lock.

    A file that cannot be written is no reason to stop: it is logged once, and tried again.
    """

    def __init__(
        self, data_dir: Path, health: Health, progress: Progress, now_ms: Callable[[], int] | None = None
    ) -> None:
        """Reads how the worker before ended."""
        self._data_dir = data_dir
        self._health = health
        self._progress = progress
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._failure: str | None = None
        self._crashes_ms: tuple[int, ...] = ()
        self._phase: Phase = "starting"
        self._could_write = True
        before = read_state(data_dir)
        if before is not None:
            self._failure, self._crashes_ms = before.last_failure, before.crashes_ms
            if before.phase != "stopped":
                self._crashes_ms = (*before.crashes_ms, before.at_ms)
            if before.phase in ("starting", "running"):
                self._failure = KILLED

    async def keep(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.to_thread(self.beat)
            await asyncio.sleep(BEAT_SECONDS)

    def beat(self) -> None:
        missing = tuple(self._health.missing())
        if self._phase == "starting" and not missing:
            self._phase = "running"
        self._write(missing)

    def failed(self, why: str) -> None:
        """The worker ends, and not because it was told to; the first reason counts."""
        if self._phase != "failed":
            self._phase, self._failure = "failed", why
            self._write()

    def stopped(self) -> None:
        """The worker ends as it was told to, unless it had failed before."""
        if self._phase != "failed":
            self._phase = "stopped"
            self._write()

    def _write(self, missing: tuple[str, ...] = ()) -> None:
        state = WorkerState(
            at_ms=self._now_ms(),
            phase=self._phase,
            missing=missing,
            waiting_for=dict(self._progress.waiting_for),
            crashes_ms=self._crashes_ms,
            last_failure=self._failure,
        )
        try:
            write_state(self._data_dir, state)
        except OSError as error:
            if self._could_write:
                structlog.get_logger("thalweg.worker").warning(
                    "the worker's state cannot be written; the query service cannot tell it", error=str(error)
                )
            self._could_write = False
        else:
            self._could_write = True
