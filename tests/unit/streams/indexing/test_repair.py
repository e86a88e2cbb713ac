"""Documents made again from the log as ordered, on stores in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from schemas.curation import decode_curation
from schemas.ids import DocumentKey
from schemas.orders import REPAIR, OrderEvent, Repair, order_key
from streams.errors import StartAgain
from streams.indexing.order_runner import OrderRunner, repair
from streams.indexing.reapply import Reapplier
from streams.runtime.retry import Retrier
from tests.support.fakes.in_memory_log import InMemoryLog
from tests.support.fakes.worker import GENERATION, NAMES, Bench, StoresInMemory, failing_times, upsert

ORDER = "0123456789ab"
A, B = DocumentKey("default", "a"), DocumentKey("default", "b")
LOG = [upsert(0), upsert(1, "default/b", "Another text.")]


@dataclass
class Story:
    """A worker that has indexed a log."""

    bench: Bench
    log: InMemoryLog
    orders: dict[bytes, OrderEvent] = field(default_factory=dict)
    remakes: int = 0
    snapshots: int = 0

    def __post_init__(self) -> None:
        bench = self.bench
        stores = StoresInMemory(bench.documents, bench.broker)
        reapplier = Reapplier([self.log], bench.indexer, stores, self.make_snapshot, bench.commit_lock)
        retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
        work = partial(repair, reapplier, self.begin_graph)
        self.runner = OrderRunner(GENERATION, self, {REPAIR: work}, bench.producer, retrier, bench.commit_lock)

    async def current(self) -> None:
        """The orders are given."""

    def begin_graph(self) -> None:
        self.remakes += 1

    async def make_snapshot(self) -> None:
        self.snapshots += 1

    async def repair(self, *documents: DocumentKey, **order: object) -> Repair | None:
        """As it was told last; None where nothing was."""
        named = {"generation": GENERATION, "documents": [str(each) for each in documents]}
        self.orders = {order_key(REPAIR, ORDER): OrderEvent(REPAIR, ORDER, Repair(**(named | order)))}
        await self.runner.process(REPAIR)
        return self.told()[-1] if self.told() else None

    def told(self) -> list[Repair]:
        events = [decode_curation(key, value) for key, value, _, _ in self.bench.broker.topics[NAMES.curation]]
        return [each.order for each in events if isinstance(each, OrderEvent) and isinstance(each.order, Repair)]

    def lose(self, key: DocumentKey) -> None:
        self.bench.documents.rows.pop(key)
        self.bench.documents.chunks.pop(key)


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    made = Story(Bench(), InMemoryLog(list(LOG)))
    await made.bench.indexer.index(LOG)
    yield made
    made.bench.close()


def counts(repair: Repair | None) -> tuple[str, int, int, int]:
    assert repair is not None
    return repair.state, repair.repaired, repair.kept, repair.failed


async def test_what_the_stores_have_lost_comes_back_once(story: Story) -> None:
    before = story.bench.state()
    story.lose(A)
    assert counts(await story.repair(A, DocumentKey("default", "never"))) == ("done", 1, 0, 0)
    assert story.bench.state() == before
    told = len(story.told())
    await story.runner.process(REPAIR)  # the order is still there until the topic is read again
    assert (len(story.told()), story.snapshots) == (told, 1)


async def test_of_a_log_that_was_cut_short_nothing_is_deleted(story: Story) -> None:
    before = story.bench.state()
    story.log.first = 1
    assert counts(await story.repair(A, B)) == ("done", 1, 1, 0)
    assert story.bench.state() == before


async def test_what_cannot_be_made_again_is_left_and_the_rest_is_repaired(story: Story) -> None:
    before = story.bench.state()
    story.lose(B)
    story.bench.documents.failing = failing_times(2, "rewrite", ValueError("a row that no table takes"))
    assert counts(await story.repair(A, B)) == ("done", 1, 0, 1)
    assert story.bench.state() == before


async def test_an_order_of_another_generation_is_left_to_its_worker(story: Story) -> None:
    assert await story.repair(A, generation="g0009") is None
    assert story.bench.encoder.encoded == ["a. Some text.", "b. Another text."]


async def test_the_graph_is_made_again_by_the_next_start_which_ends_the_order(story: Story) -> None:
    with pytest.raises(StartAgain):
        await story.repair(graph=True)
    assert (story.remakes, counts(story.told()[-1])) == (1, ("running", 0, 0, 0))
    assert counts(await story.repair(graph=True, state="running")) == ("done", 0, 0, 0)
    assert (story.remakes, story.snapshots) == (1, 1)
