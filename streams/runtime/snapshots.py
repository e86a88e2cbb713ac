"""When a snapshot of the graph is due."""

import asyncio
import time
from collections.abc import Callable
from typing import Self

from streams.settings import WorkerBlock

IDLE_SHARE = 0.25  # of the time, where changes come seldom: nothing else wants the processor then


class SnapshotSchedule:
    """Due when nothing has changed for a moment, or, while changes keep coming, at an interval that grows with the cost
    of a snapshot: making them then never takes more than a given share of the time."""

    def __init__(
        self,
        *,
        idle_seconds: float,
        min_seconds: float,
        max_seconds: float,
        share: float,
        pending: bool,
        more_is_coming: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`pending` says whether there is something unsnapshotted from the start; `more_is_coming`, whether changes are
        on their way, so that this is no quiet moment though none has come for a while."""
        self._idle_seconds = idle_seconds
        self._min_seconds = min_seconds
        self._max_seconds = max_seconds
        self._share = share
        self._more_is_coming = more_is_coming
        self._clock = clock
        now = clock()
        self._changes = 1 if pending else 0
        self._covered = 0
        self._first_pending = now
        self._last_change = now
        self._last_made = now
        self._began = now
        self._took = 0.0
        self._wake = asyncio.Event()

    @classmethod
    def of(cls, worker: WorkerBlock, *, pending: bool, more_is_coming: Callable[[], bool]) -> Self:
        """As the worker is set up."""
        return cls(
            idle_seconds=worker.snapshot_idle_seconds,
            min_seconds=worker.snapshot_min_seconds,
            max_seconds=worker.snapshot_max_seconds,
            share=worker.snapshot_share,
            pending=pending,
            more_is_coming=more_is_coming,
        )

    @property
    def pending(self) -> bool:
        """Whether something changed that no snapshot holds."""
        return self._changes > self._covered

    def changed(self) -> None:
        now = self._clock()
        if not self.pending:
            self._first_pending = now
        self._changes += 1
        self._last_change = now
        self._wake.set()

    def begin(self) -> int:
        """A snapshot is being made; what it returns is handed to `made`."""
        self._began = self._clock()
        return self._changes

    def made(self, token: int) -> float:
        """The snapshot begun is made and holds all changes up to then; the seconds it took."""
        self._last_made = self._clock()
        self._took = self._last_made - self._began
        self._covered = token
        self._first_pending = self._last_made
        return self._took

    def due_in(self) -> float | None:
        """Seconds until a snapshot is due, 0 when it is, None while nothing is pending."""
        if not self.pending:
            return None
        rest = min(self._took / self._share, self._max_seconds)
        quiet_since = self._clock() if self._more_is_coming() else self._last_change
        when_idle = max(quiet_since + self._idle_seconds, self._last_made + min(rest, self._took / IDLE_SHARE))
        when_busy = self._first_pending + min(max(rest, self._min_seconds), self._max_seconds)
        return max(0.0, min(when_idle, when_busy) - self._clock())

    async def until_due(self) -> None:
        """Returns when a snapshot is due."""
        while (wait_seconds := self.due_in()) != 0.0:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), wait_seconds)
            except TimeoutError:
                continue
