"""An agent's batches of unacknowledged records: gathered, marked in flight, acknowledged when their work is done."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import faust

from streams.kafka.records import SourceRecord
from streams.runtime.partition_progress import Progress

BATCH_RECORDS = 1_000
BATCH_WAIT_SECONDS = 0.02  # for more records; part of every document's latency
LATER_BATCH_WAIT_SECONDS = 1.0  # of the graph and of provenance, for which nobody waits: larger batches
GATHER_SECONDS = 1.0  # updates that keep coming are gathered in one commit for so long
BURST = 30  # commits that go at once after a quiet spell
COMMIT_SHARE = 0.2  # of the time, at most, goes into small commits
MOST_GATHER_SECONDS = 2.0

Batches = AsyncIterator[Sequence[Any]]  # of Faust events, unacknowledged
Work = Callable[[Sequence[SourceRecord]], Awaitable[None]]  # may be called again with the same records


async def no_pause() -> None:
    """Take the next batch at once."""


def attach_agent(
    app: faust.App,
    name: str,
    topic: str,
    run: Callable[[Batches], Awaitable[None]],
    batch_records: int,
    batch_wait_seconds: float,
    *,
    fail: Callable[[BaseException], None],
    pause: Callable[[], Awaitable[None]] = no_pause,
) -> None:
    """Start an agent on a topic: `run` gets raw Faust events in batches, and acknowledges them itself.

    What it raises goes to `fail` too: Faust would only log it and lose the batch.
    """
    channel = app.topic(topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def take(stream: Any) -> None:
        try:
            async with aclosing(
                gather_batches(stream.noack().events(), batch_records, batch_wait_seconds, pause)
            ) as batches:
                await run(batches)
        except Exception as error:  # the process edge of an agent
            fail(error)
            raise

    take.__name__ = name
    app.agent(channel, name=name, concurrency=1)(take)


async def gather_batches(
    events: AsyncIterable[Any], most: int, wait_seconds: float, pause: Callable[[], Awaitable[None]] = no_pause
) -> AsyncGenerator[Sequence[Any]]:
    """Batches of up to `most` events, in order.

    A batch waits from its first event on, half of `wait_seconds` or, while it grows, all of them. The next one is
    buffered while it is processed, so in a backlog each is full. Without events nothing runs: Faust's own batches poll
    every `wait_seconds`, for more than a hundredth of a core.

    Where fewer events than fill a batch arrived while one was processed, the next one also gathers during `pause`: a
    steady stream makes fewer batches, and a producer that waits for each event is not slowed down.
    """
    buffer = _Buffer(most)
    reading = asyncio.create_task(buffer.read(events))
    try:
        while await buffer.first():
            await buffer.grow(wait_seconds)
            yield buffer.take()
            if 0 < len(buffer.events) < most:
                await pause()
        await reading
    finally:
        reading.cancel()
        await asyncio.wait({reading})


class _Buffer:
    """Events that are in no batch yet, at most `most`."""

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


@dataclass(eq=False)
class CommitPace:
    """A token bucket for small commits: BURST of them at once after a quiet spell, then one in `seconds`, or fewer
    where commits take longer than COMMIT_SHARE of that.

    Each commit writes some twenty files, and every reader has to look at them: a steady stream of updates is gathered
    in fewer commits, and a single update waits for nothing. With 0 `seconds` nothing is gathered.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _spent_until: float = float("-inf")

    async def wait(self) -> None:
        """Returns when a commit may begin; what comes until then is part of it."""
        wait_seconds = self._spent_until - BURST * self.seconds - self.clock()
        if wait_seconds > 0:
            await self.sleep(wait_seconds)

    def committed(self, took_seconds: float) -> None:
        """A small commit is done, and took so long."""
        if self.seconds:
            wanted = min(max(self.seconds, took_seconds / COMMIT_SHARE), max(self.seconds, MOST_GATHER_SECONDS))
            spent_until = max(self._spent_until, self.clock() - took_seconds) + wanted
            self._spent_until = min(spent_until, self.clock() + BURST * self.seconds + wanted)  # one wait is owed


def mark_in_flight(progress: Progress, stage: str, topic: str, events: Sequence[Any]) -> list[SourceRecord]:
    """The records of a batch."""
    records = [SourceRecord.from_message(event.message) for event in events]
    for record in records:
        progress.taken(stage, topic, record.partition, record.offset)
    return records


def mark_done(progress: Progress, stage: str, topic: str, records: Sequence[SourceRecord]) -> None:
    for partition, offset in {record.partition: record.offset for record in records}.items():
        progress.done(stage, topic, partition, offset)


async def process(
    batches: Batches,
    work: Work,
    progress: Progress,
    stage: str,
    topic: str,
    pause: Callable[[], Awaitable[None]] = no_pause,
) -> None:
    """Do the work of each batch, and only then acknowledge it; pause before the next one, so that it grows."""
    async for events in batches:
        records = mark_in_flight(progress, stage, topic, events)
        await work(records)
        for event in events:
            event.ack()
        mark_done(progress, stage, topic, records)
        await pause()
