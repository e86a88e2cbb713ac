"""Batches are gathered from what comes: full behind a backlog, and one that waits for others is not held up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from streams.agents.batching import BURST, CommitPace, gather_batches
from tests.support.waiting import eventually

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
    assert [batch async for batch in gather_batches(topic.events(), 10, A_MOMENT)] == [[1, 2, 3]]


async def test_behind_a_backlog_batches_are_full_and_wait_for_nothing() -> None:
    topic = Topic(*range(7))
    async with aclosing(gather_batches(topic.events(), 3, FOR_EVER)) as batches:
        assert await anext(batches) == [0, 1, 2]
        await eventually(lambda: len(topic.read) == 6)
        assert await anext(batches) == [3, 4, 5]


async def test_while_a_batch_is_worked_on_no_more_than_another_one_is_read() -> None:
    topic = Topic(*range(9))
    async with aclosing(gather_batches(topic.events(), 2, A_MOMENT)) as batches:
        await anext(batches)
        await eventually(lambda: len(topic.read) >= 4)
        await asyncio.sleep(0)
        assert topic.read == [0, 1, 2, 3]


async def test_an_event_that_comes_later_makes_a_batch_of_its_own() -> None:
    topic = Topic(1)
    async with aclosing(gather_batches(topic.events(), 10, A_MOMENT)) as batches:
        assert await anext(batches) == [1]
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        assert not waiting.done()
        topic.put(2)
        assert await waiting == [2]


async def test_a_topic_that_fails_fails_whoever_waits_after_what_it_gave() -> None:
    topic = Topic(1)
    topic.put(OSError("the broker is gone"))
    async with aclosing(gather_batches(topic.events(), 10, A_MOMENT)) as batches:
        assert await anext(batches) == [1]
        with pytest.raises(OSError, match="the broker is gone"):
            await anext(batches)


async def test_who_leaves_reads_nothing_more() -> None:
    topic = Topic(1)
    async with aclosing(gather_batches(topic.events(), 10, A_MOMENT)) as batches:
        await anext(batches)
    topic.put(2)
    await asyncio.sleep(0)
    assert topic.read == [1]


class Clock:
    """A clock that only sleeping moves; `slept` are the pauses."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


async def commits_of(pace: CommitPace, clock: Clock, seconds: float, *, rate: float, took: float) -> int:
    """How many commits there are while updates come at a rate: each takes what has come since the one before."""
    until, taken, commits = clock.now + seconds, clock.now, 0
    while clock.now < until:
        await pace.wait()
        if clock.now - taken < 1 / rate:
            clock.now = taken + 1 / rate
        taken = clock.now
        clock.now += took
        pace.committed(took)
        commits += 1
    return commits


async def test_a_single_update_and_a_short_burst_wait_for_nothing() -> None:
    clock = Clock()
    pace = CommitPace(1.0, lambda: clock.now, clock.sleep)
    for _ in range(20):
        clock.now += 2.0
        assert await commits_of(pace, clock, 0.05, rate=1_000, took=0.06) == 1
    assert await commits_of(pace, clock, 2.0, rate=10, took=0.06) == pytest.approx(20, abs=2)
    assert clock.slept == []


async def test_a_steady_trickle_is_gathered_in_one_commit_a_second() -> None:
    clock = Clock()
    pace = CommitPace(1.0, lambda: clock.now, clock.sleep)
    assert await commits_of(pace, clock, 600.0, rate=10, took=0.06) <= 600 + BURST + 1
    assert await commits_of(pace, clock, 600.0, rate=10, took=0.06) == pytest.approx(600, abs=2)
    assert max(clock.slept) <= 1.0


async def test_commits_that_take_long_are_fewer_but_not_without_bound() -> None:
    clock = Clock()
    pace = CommitPace(1.0, lambda: clock.now, clock.sleep)
    await commits_of(pace, clock, 100.0, rate=10, took=0.3)
    assert await commits_of(pace, clock, 600.0, rate=10, took=0.3) == pytest.approx(400, abs=2), "a fifth of the time"
    assert await commits_of(pace, clock, 600.0, rate=10, took=1.2) == pytest.approx(300, abs=2), "2 s apart at most"


async def test_after_a_quiet_spell_updates_go_at_once_again() -> None:
    clock = Clock()
    pace = CommitPace(1.0, lambda: clock.now, clock.sleep)
    await commits_of(pace, clock, 100.0, rate=10, took=0.06)
    clock.now += 10.0
    clock.slept.clear()
    assert await commits_of(pace, clock, 1.0, rate=10, took=0.06) == pytest.approx(10, abs=1)
    assert clock.slept == []


async def test_nothing_is_gathered_on_request() -> None:
    clock = Clock()
    never = CommitPace(0.0, lambda: clock.now, clock.sleep)
    await commits_of(never, clock, 100.0, rate=10, took=0.06)
    assert clock.slept == []


async def test_what_came_meanwhile_gathers_during_a_rest_and_what_comes_later_waits_for_none() -> None:
    topic, rests = Topic(1), []

    async def rest() -> None:
        rests.append(list(topic.read))
        topic.put(4)
        await eventually(lambda: topic.read[-1] == 4)

    async with aclosing(gather_batches(topic.events(), 10, A_MOMENT, rest)) as batches:
        assert await anext(batches) == [1]
        waiting = asyncio.ensure_future(anext(batches))  # nothing came while the first was worked on
        await asyncio.sleep(0)
        topic.put(2)
        assert await waiting == [2]
        assert rests == []
        topic.put(3)
        await eventually(lambda: topic.read[-1] == 3)
        assert await anext(batches) == [3, 4]
        assert rests == [[1, 2, 3]]


async def test_many_commits_that_did_not_wait_make_the_next_one_wait_no_longer() -> None:
    clock = Clock()
    pace = CommitPace(1.0, lambda: clock.now, clock.sleep)
    for _ in range(200):
        clock.now += 0.1
        pace.committed(0.06)
    await pace.wait()
    assert clock.slept == [1.0]
