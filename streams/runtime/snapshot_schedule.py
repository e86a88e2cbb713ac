"""Snapshots of the graph: when one is due, and making it."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import ClassVar

from indexer.graph.snapshots import GraphSnapshot
from indexer.graph.store import GraphStore
from indexer.runtime.resources import trim_memory
from streams.runtime.store_thread import StoreThread
from streams.worker_log import log
from streams.worker_metrics import WorkerMetrics

SNAPSHOT_IDLE_SECONDS = 1.0  # without a change, until one is made
SNAPSHOT_MIN_SECONDS = 30.0  # between two under changes: nobody waits, but a start after a crash reads as much again
SNAPSHOT_MAX_SECONDS = 300.0
SNAPSHOT_SHARE = 0.05  # of the time, at most, while changes keep coming
CHECK_SECONDS = 15.0
DERIVED_CHECK_SECONDS = 60.0
CHECK_PAUSE_FACTOR = 50  # reading snapshots takes two hundredths of one core at most
IDLE_SHARE = 0.25  # of the time, where changes are rare: nothing else needs the processor then


@dataclass(eq=False, kw_only=True)
class SnapshotSchedule:
    """Due when nothing has changed for a moment; while changes keep coming, at an interval that grows with the cost of
    a snapshot, so that it never takes more than a given share of the time.

    `is_pending`: no snapshot holds everything at the start; `idle_share`: the share where changes are rare; `is_busy`:
    whether changes are on their way, so that this is not an idle moment though none came for a while.
    """

    idle_seconds: float
    min_seconds: float
    max_seconds: float
    share: float
    is_pending: InitVar[bool]
    idle_share: float = IDLE_SHARE
    is_busy: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    _covered: int = 0
    _took: float = 0.0
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self, is_pending: bool) -> None:
        self._changes = int(is_pending)
        self._first_pending = self._last_change = self._last_made = self._began = self.clock()

    @property
    def pending(self) -> bool:
        """Whether something changed that no snapshot holds."""
        return self._changes > self._covered

    def changed(self) -> None:
        now = self.clock()
        if not self.pending:
            self._first_pending = now
        self._changes += 1
        self._last_change = now
        self._wake.set()

    def begin(self) -> int:
        """A snapshot is being made; the token is for `made`."""
        self._began = self.clock()
        return self._changes

    def made(self, token: int) -> float:
        """The snapshot begun is made; returns the seconds it took."""
        self._last_made = self.clock()
        self._took = self._last_made - self._began
        self._covered = token
        self._first_pending = self._last_made
        return self._took

    def due_in(self) -> float | None:
        """Seconds until a snapshot is due, 0 when it is, None while nothing is pending."""
        if not self.pending:
            return None
        interval = min(self._took / self.share, self.max_seconds)
        quiet_since = self.clock() if self.is_busy() else self._last_change
        when_idle = max(quiet_since + self.idle_seconds, self._last_made + min(interval, self._took / self.idle_share))
        when_busy = self._first_pending + min(max(interval, self.min_seconds), self.max_seconds)
        return max(0.0, min(when_idle, when_busy) - self.clock())

    async def until_due(self) -> None:
        """Returns when a snapshot is due."""
        while (wait_seconds := self.due_in()) != 0.0:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), wait_seconds)
            except TimeoutError:
                continue


async def check_periodically(check: Callable[[], Awaitable[None]], seconds: float, pause_factor: float = 0.0) -> None:
    """At once, and again until cancelled: `seconds` after each check, or that many times as long as it took."""
    while True:
        began = time.monotonic()
        await check()
        await asyncio.sleep(max(seconds, pause_factor * (time.monotonic() - began)))


@dataclass(eq=False)
class MadeOfSnapshots(ABC):
    """Made when its schedule says so, and again where it is damaged: snapshots, and what is made of the newest one."""

    pause_factor: ClassVar[float] = 0.0
    schedule: SnapshotSchedule

    @abstractmethod
    async def make(self) -> None:
        """Make it now, where it is not there; returns when that is done, or has failed."""

    @abstractmethod
    async def remove_damaged(self) -> bool:
        """Whether there was any."""

    def changed(self) -> None:
        """There is something to make it of."""
        self.schedule.changed()

    async def run(self) -> None:
        """Until cancelled, which ends what is being made."""
        while True:
            await self.schedule.until_due()
            await self.make()

    async def check(self) -> None:
        """At once, and periodically until cancelled: remove what is damaged, and have it made again."""
        await check_periodically(self.check_once, DERIVED_CHECK_SECONDS, self.pause_factor)

    async def check_once(self) -> None:
        if await self.remove_damaged():
            self.schedule.changed()


@dataclass(eq=False, kw_only=True)
class Snapshots(MadeOfSnapshots):
    """Makes snapshots of the graph when they are due, in a thread beside the store's. Each of `published` is called
    after each snapshot."""

    writer: GraphStore
    thread: StoreThread
    beside: StoreThread
    metrics: InitVar[WorkerMetrics]
    newest: GraphSnapshot | None
    published: Sequence[Callable[[], None]] = ()
    now_seconds: Callable[[], float] = time.time
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)  # an order may ask for one while another is being made

    def __post_init__(self, metrics: WorkerMetrics) -> None:
        metrics.snapshot_age.set_function(self._age_seconds)

    async def check(self) -> None:
        """At once, and every 15 s until cancelled."""
        await check_periodically(self.check_once, CHECK_SECONDS, CHECK_PAUSE_FACTOR)

    async def remove_damaged(self) -> bool:
        damage = await self.beside.run(self.writer.set_aside_damaged)
        for each in damage:
            log.error("a damaged snapshot of the graph is set aside", path=each.path, what=each.what)
        return bool(damage)

    async def make(self) -> None:
        """Make one now, if anything changed since the last."""
        async with self._making:
            if not self.schedule.pending:
                return
            token = self.schedule.begin()
            changes = await self.thread.run(self.writer.changes)
            snapshot = await self.beside.run(self.writer.publish, changes)
            await self.beside.run(trim_memory)
            took = self.schedule.made(token)
        self.newest = snapshot
        log.info(
            "snapshot made",
            name=snapshot.name,
            graph_position=snapshot.graph_position,
            documents=snapshot.rows("documents"),
            changed=len(changes.newest),
            bytes=snapshot.content_bytes,
            seconds=round(took, 4),
        )
        for inform in self.published:
            inform()

    def _age_seconds(self) -> float:
        if self.newest is None or not self.schedule.pending:
            return 0.0
        return max(0.0, self.now_seconds() - self.newest.made_at_ms / 1000)
