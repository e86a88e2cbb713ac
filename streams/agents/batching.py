"""Taking records from a topic: un-acknowledged, told as in hand, acknowledged when their work is done."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from streams.kafka.source_record import SourceRecord
from streams.runtime.progress import Progress

BURST = 30  # commits that go at once after a quiet spell
COMMIT_SHARE = 0.2  # of the time, at most, goes into small commits
MOST_GATHER_SECONDS = 2.0

Taken = AsyncIterator[Sequence[Any]]  # batches of Faust events, unacknowledged
Work = Callable[[Sequence[SourceRecord]], Awaitable[None]]  # may be called again with the same records


async def no_rest() -> None:
    """Take the next batch at once."""


async def gathered(
    events: AsyncIterable[Any], most: int, wait_seconds: float, rest: Callable[[], Awaitable[None]] = no_rest
) -> AsyncGenerator[Sequence[Any]]:
    """Batches of what comes, up to `most` events each, in order.

    A batch waits for more from its first event on, half of `wait_seconds` or, while it grows, all of them. Another one
    gathers while it is worked on, so behind a backlog each is full. Without events nothing is done: Faust's own batches
    look for them every `wait_seconds`, for more than a hundredth of a core.

    Where events came while a batch was worked on, but fewer than fill one, the next batch gathers during `rest` too: so
    a steady stream comes in fewer batches, and who waits for each of his events to be done before he sends the next
    waits for nothing.
    """
    waiting = _Waiting(most)
    reading = asyncio.create_task(waiting.read(events))
    try:
        while await waiting.first():
            await waiting.grow(wait_seconds)
            yield waiting.take()
            if 0 < len(waiting.events) < most:
                await rest()
        await reading
    finally:
        reading.cancel()
        await asyncio.wait({reading})


class _Waiting:
    """Events that came and are in no batch yet, at most so many."""

    def __init__(self, most: int) -> None:
        self.events: list[Any] = []
        self._most = most
        self._ended = False
        self._changed, self._room = asyncio.Event(), asyncio.Event()

    async def read(self, events: AsyncIterable[Any]) -> None:
        try:
            async for event in events:
                self.events.append(event)
                self._changed.set()
                while len(self.events) >= self._most:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._ended = True
            self._changed.set()

    async def first(self) -> bool:
        """Whether there is an event, once there is one or the last has come."""
        while not self.events and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        return bool(self.events)

    async def grow(self, wait_seconds: float) -> None:
        for _ in range(2):
            size = len(self.events)
            if size < self._most and not self._ended:
                await asyncio.sleep(wait_seconds / 2)
            if len(self.events) == size:
                break

    def take(self) -> Sequence[Any]:
        batch = self.events[:]
        self.events.clear()
        self._room.set()
        return batch


class CommitPace:
    """When the next small commit may begin: at once after a quiet spell, BURST of them; while they keep coming, one in
    `seconds`, or less often where commits take longer than COMMIT_SHARE of that (a token bucket).

    Each commit makes some twenty files that stay until no reader can want them, and every reader has to look at it: a
    steady stream of updates is gathered in fewer commits, and a single one waits for nothing.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """With 0 `seconds` nothing is gathered."""
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._spent_until = float("-inf")

    async def turn(self) -> None:
        """Returns when a commit may begin; what comes until then is part of it."""
        wait_seconds = self._spent_until - BURST * self._seconds - self._clock()
        if wait_seconds > 0:
            await self._sleep(wait_seconds)

    def committed(self, took_seconds: float) -> None:
        """A small commit is done, and took so long."""
        if self._seconds:
            wanted = min(max(self._seconds, took_seconds / COMMIT_SHARE), max(self._seconds, MOST_GATHER_SECONDS))
            spent_until = max(self._spent_until, self._clock() - took_seconds) + wanted
            self._spent_until = min(spent_until, self._clock() + BURST * self._seconds + wanted)  # one wait is owed


class Coming:
    """Batches one by one, of which the next may be seen before it is taken."""

    def __init__(self, batches: Taken) -> None:
        self._batches = batches
        self._next: asyncio.Task[Sequence[Any] | None] | None = None

    async def peek(self) -> Sequence[Any] | None:
        """The batch that `take` will give, None behind the last. Being cancelled leaves it to the next call."""
        if self._next is None:
            self._next = asyncio.create_task(self._one())
        return await asyncio.shield(self._next)

    async def take(self) -> Sequence[Any] | None:
        """The next batch, None behind the last."""
        events = await self.peek()
        self._next = None
        return events

    async def leave(self) -> None:
        """Wait for no other batch."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait({self._next})

    async def _one(self) -> Sequence[Any] | None:
        return await anext(self._batches, None)


def taken_in_hand(progress: Progress, stage: str, topic: str, events: Sequence[Any]) -> list[SourceRecord]:
    """The records of a batch."""
    records = [SourceRecord.of(event.message) for event in events]
    for record in records:
        progress.taken(stage, topic, record.partition, record.timestamp_ms)
    return records


async def work_off(
    batches: Taken,
    work: Work,
    progress: Progress,
    stage: str,
    topic: str,
    rest: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Do the work of each batch, and only then acknowledge it; rest before the next one is taken, so that it grows."""
    async for events in batches:
        records = taken_in_hand(progress, stage, topic, events)
        await work(records)
        for event in events:
            event.ack()
        report_done(progress, stage, topic, records, [])
        if rest is not None:
            await rest()


def report_done(
    progress: Progress, stage: str, topic: str, done: Sequence[SourceRecord], in_hand: Sequence[SourceRecord]
) -> None:
    """Tell how far each partition is done, and what of it is still in hand."""
    last = {record.partition: record for record in done}
    for partition, record in last.items():
        progress.done(stage, topic, partition, record.offset)
    for record in in_hand:
        progress.taken(stage, topic, record.partition, record.timestamp_ms)


def fatal_on_error(
    run: Callable[[Taken], Awaitable[None]], fail: Callable[[BaseException], None]
) -> Callable[[Taken], Awaitable[None]]:
    """The same agent, but an exception ends the worker: Faust would only log it and lose the batch's place."""

    async def guarded(batches: Taken) -> None:
        try:
            await run(batches)
        except Exception as error:  # the process edge of an agent
            fail(error)
            raise

    return guarded
