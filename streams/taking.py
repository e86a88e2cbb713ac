"""Taking records from a topic: un-acknowledged, told as in hand, acknowledged when their work is done."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from streams.indexing.records import SourceRecord
from streams.progress.partitions import Progress

Taken = AsyncIterator[Sequence[Any]]  # batches of Faust events, unacknowledged
Work = Callable[[Sequence[SourceRecord]], Awaitable[None]]  # may be called again with the same records


async def gathered(events: AsyncIterable[Any], most: int, wait_seconds: float) -> AsyncGenerator[Sequence[Any]]:
    """Batches of what comes, up to `most` events each, in order.

    A batch waits for more from its first event on, half of `wait_seconds` or, while it grows, all of them. Another one
    gathers while it is worked on, so behind a backlog each is full. Without events nothing is done: Faust's own batches
    look for them every `wait_seconds`, for more than a hundredth of a core.
    """
    held: list[Any] = []
    changed, room = asyncio.Event(), asyncio.Event()

    async def read() -> None:
        try:
            async for event in events:
                held.append(event)
                changed.set()
                while len(held) >= most:
                    room.clear()
                    await room.wait()
        finally:
            changed.set()

    reading = asyncio.create_task(read())
    try:
        while True:
            while not held and not reading.done():
                changed.clear()
                await changed.wait()
            if not held:
                reading.result()
                return
            for _ in range(2):
                size = len(held)
                if size < most and not reading.done():
                    await asyncio.sleep(wait_seconds / 2)
                if len(held) == size:
                    break
            batch = held[:]
            held.clear()
            room.set()
            yield batch
    finally:
        reading.cancel()
        await asyncio.wait({reading})


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
