"""Batches are gathered from what comes: full behind a backlog, and one that waits for others is not held up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from streams.taking import gathered
from tests.waiting import eventually

A_MOMENT = 0.001
FOR_EVER = 3600.0


class Topic:
    """Hands out numbers as they are put in; `read` are those that were taken from it."""

    def __init__(self, *numbers: int) -> None:
        self.read: list[int] = []
        self._coming: asyncio.Queue[int | Exception | None] = asyncio.Queue()
        self.put(*numbers)

    def put(self, *numbers: int | Exception | None) -> None:
        for number in numbers:
            self._coming.put_nowait(number)

    async def events(self) -> AsyncIterator[int]:
        while (number := await self._coming.get()) is not None:
            if isinstance(number, Exception):
                raise number
            self.read.append(number)
            yield number


async def test_what_comes_together_is_a_batch_and_nothing_is_lost_at_the_end() -> None:
    topic = Topic(1, 2, 3)
    topic.put(None)
    assert [batch async for batch in gathered(topic.events(), 10, A_MOMENT)] == [[1, 2, 3]]


async def test_behind_a_backlog_batches_are_full_and_wait_for_nothing() -> None:
    topic = Topic(*range(7))
    async with aclosing(gathered(topic.events(), 3, FOR_EVER)) as batches:
        assert await anext(batches) == [0, 1, 2]
        await eventually(lambda: len(topic.read) == 6)
        assert await anext(batches) == [3, 4, 5]


async def test_while_a_batch_is_worked_on_no_more_than_another_one_is_read() -> None:
    topic = Topic(*range(9))
    async with aclosing(gathered(topic.events(), 2, A_MOMENT)) as batches:
        await anext(batches)
        await eventually(lambda: len(topic.read) >= 4)
        await asyncio.sleep(0)
        assert topic.read == [0, 1, 2, 3]


async def test_an_event_that_comes_later_makes_a_batch_of_its_own() -> None:
    topic = Topic(1)
    async with aclosing(gathered(topic.events(), 10, A_MOMENT)) as batches:
        assert await anext(batches) == [1]
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        assert not waiting.done()
        topic.put(2)
        assert await waiting == [2]


async def test_a_topic_that_fails_fails_whoever_waits_after_what_it_gave() -> None:
    topic = Topic(1)
    topic.put(OSError("the broker is gone"))
    async with aclosing(gathered(topic.events(), 10, A_MOMENT)) as batches:
        assert await anext(batches) == [1]
        with pytest.raises(OSError, match="the broker is gone"):
            await anext(batches)


async def test_who_leaves_reads_nothing_more() -> None:
    topic = Topic(1)
    async with aclosing(gathered(topic.events(), 10, A_MOMENT)) as batches:
        await anext(batches)
    topic.put(2)
    await asyncio.sleep(0)
    assert topic.read == [1]
