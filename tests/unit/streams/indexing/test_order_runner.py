"""The runner of orders: read once for all kinds, one long order holds up none of another kind."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field

import pytest

from schemas.curation import decode_curation
from schemas.orders import RELINK, REPLAY, OrderEvent, Relinking, Replay, order_key
from streams.indexing.order_runner import OrderRunner
from streams.runtime.retry import Retrier
from tests.support.fakes.worker import GENERATION, NAMES, Bench, failing_times
from tests.support.waiting import eventually

REPLAY_ID = "0123456789ab"


@dataclass
class OrderTopicInMemory:
    """One order to relink and one to replay, found when the topic is read."""

    orders: Mapping[bytes, OrderEvent] = field(default_factory=dict)

    async def current(self) -> None:
        events = (
            OrderEvent(RELINK, "a1", Relinking(), "seas"),
            OrderEvent(REPLAY, REPLAY_ID, Replay(generation=GENERATION)),
        )
        self.orders = {order_key(each.kind, each.id, each.collection): each for each in events}


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.close()


def published(bench: Bench) -> list[tuple[str, str]]:
    events = [decode_curation(key, value) for key, value, _, _ in bench.broker.topics[NAMES.curation]]
    return [(each.kind, each.order.state) for each in events if isinstance(each, OrderEvent) and each.order]


async def test_long_order_holds_up_none_of_another_kind(bench: Bench) -> None:
    go_on, begun = asyncio.Event(), list[str]()

    async def slow(collection: str, order: Relinking) -> AsyncGenerator[Relinking, None]:
        begun.append(collection)
        yield order.model_copy(update={"state": "running"})
        await go_on.wait()

    async def quick(collection: str, order: Replay) -> AsyncGenerator[Replay, None]:
        begun.append(collection)
        yield order.model_copy(update={"state": "running"})

    retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
    work = {RELINK: slow, REPLAY: quick}
    runner = OrderRunner(GENERATION, OrderTopicInMemory(), work, bench.producer, retrier, bench.commit_lock)
    await runner.read()
    tasks = [asyncio.create_task(loop()) for loop in runner.loops()]
    await eventually(lambda: (REPLAY, "done") in published(bench))
    assert (RELINK, "done") not in published(bench)
    go_on.set()
    await eventually(lambda: (RELINK, "done") in published(bench))
    assert sorted(begun) == ["*", "seas"], "each is carried out once, though the topic still names it"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_order_that_fails_for_a_moment_is_repeated(bench: Bench) -> None:
    fail = failing_times(1, "work", OSError("the broker is away"))

    async def work(_collection: str, order: Replay) -> AsyncGenerator[Replay, None]:
        yield order.model_copy(update={"state": "running"})
        fail("work")

    retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
    topic = OrderTopicInMemory()
    runner = OrderRunner(GENERATION, topic, {REPLAY: work}, bench.producer, retrier, bench.commit_lock)
    await runner.read()
    await runner.process(REPLAY)
    assert published(bench) == [(REPLAY, "running"), (REPLAY, "running"), (REPLAY, "done")]
