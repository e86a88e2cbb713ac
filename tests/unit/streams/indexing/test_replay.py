"""A part of the log applied again: what differs is repaired, and nothing is written where nothing does."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from schemas.curation import decode_curation
from schemas.ids import CANARY_COLLECTION, DocumentKey
from schemas.orders import REPLAY, OrderEvent, Replay, order_key
from streams.indexing.order_runner import OrderRunner, replay
from streams.indexing.reapply import Reapplier
from streams.kafka.records import SourceRecord
from streams.runtime.retry import Retrier
from tests.support.fakes.in_memory_log import InMemoryLog
from tests.support.fakes.worker import (
    GENERATION,
    NAMES,
    Bench,
    PowerCut,
    StoresInMemory,
    delete,
    failing_times,
    upsert,
)

ORDER = "0123456789ab"
A, B, C = (DocumentKey("default", name) for name in "abc")
LOG = [
    upsert(0, text="The first text."),
    upsert(1, text="The second text."),
    upsert(2, "default/b", "Another."),
    upsert(3, "default/c", "A third document."),
    delete(4, "default/c"),
]


@dataclass
class Story:
    """A worker that has indexed a log."""

    bench: Bench
    log: InMemoryLog
    lost: set[DocumentKey] = field(default_factory=set)
    orders: dict[bytes, OrderEvent] = field(default_factory=dict)
    snapshots: int = 0

    async def index(self, *records: SourceRecord) -> None:
        self.log.found += records
        await self.bench.indexer.index(records)

    async def current(self) -> None:
        """The orders are given."""

    async def make_snapshot(self) -> None:
        self.snapshots += 1

    async def replay(self, **order: object) -> Replay:
        """As far as it was told last."""
        self.orders = {order_key(REPLAY, ORDER): OrderEvent(REPLAY, ORDER, Replay(generation=GENERATION, **order))}
        bench = self.bench
        stores = StoresInMemory(bench.documents, bench.broker, self.lost)
        reapplier = Reapplier([self.log], bench.indexer, stores, self.make_snapshot, bench.commit_lock)
        retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
        work = partial(replay, reapplier)
        runner = OrderRunner(GENERATION, self, {REPLAY: work}, bench.producer, retrier, bench.commit_lock)
        await runner.process(REPLAY)
        events = [decode_curation(key, value) for key, value, _, _ in self.bench.broker.topics[NAMES.curation]]
        assert isinstance(events[-1], OrderEvent)
        assert isinstance(events[-1].order, Replay)
        return events[-1].order

    def written(self) -> tuple[int, int, int]:
        commits = self.bench.broker.commits()
        return len(self.bench.documents.writes), len(commits), len(self.bench.broker.receipts())


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    made = Story(Bench(), InMemoryLog())
    await made.index(*LOG)
    yield made
    made.bench.close()


def counts(replay: Replay) -> tuple[int, int, int, int, int]:
    assert (replay.state, replay.documents) == ("done", replay.of)
    return replay.records, replay.of, replay.changed, replay.kept, replay.failed


async def test_where_all_is_well_nothing_is_written(story: Story) -> None:
    before, encoded = story.written(), list(story.bench.encoder.encoded)
    assert counts(await story.replay(first="0:0")) == (5, 3, 0, 0, 0)
    assert (story.written(), story.bench.encoder.encoded, story.snapshots) == (before, encoded, 0)


async def test_what_differs_is_what_the_log_says_afterwards(story: Story) -> None:
    documents, expected = story.bench.documents, story.bench.state()
    documents.rows[C] = documents.rows.pop(A)
    documents.chunks[B] = ()
    assert counts(await story.replay(first="0:0")) == (5, 3, 3, 0, 0)
    assert (story.bench.state(), story.snapshots) == (expected, 1)
    assert counts(await story.replay(first="0:0")) == (5, 3, 0, 0, 0)


@pytest.mark.parametrize(
    ("order", "records", "repaired"),
    [
        ({"first": "0:2", "last": "0:2"}, 1, {B}),
        ({"first": "0:1", "last": "0:2"}, 2, {A, B}),
        ({"last": "0:0"}, 1, {A}),
        ({"since_ms": 1_002}, 3, {B}),
        ({"partition": 1}, 0, set()),
    ],
)
async def test_only_documents_with_a_record_in_the_range_are_looked_at(
    order: dict[str, object], records: int, repaired: set[DocumentKey], story: Story
) -> None:
    story.bench.documents.rows.clear()
    assert (await story.replay(**order)).records == records
    assert {key for key, row in story.bench.documents.rows.items() if row.live} == repaired


async def test_document_that_only_graph_has_otherwise_is_only_sent(story: Story) -> None:
    story.lost = {A}
    before = story.written()
    assert counts(await story.replay(first="0:0")) == (5, 3, 1, 0, 0)
    assert story.written() == (before[0], before[1] + 1, before[2])


async def test_a_dry_run_counts_and_writes_nothing(story: Story) -> None:
    del story.bench.documents.rows[A]
    story.lost = {A, B}
    before = story.written()
    assert counts(await story.replay(first="0:0", dry_run=True)) == (5, 3, 2, 0, 0)
    assert (story.written(), story.snapshots) == (before, 0)


async def test_what_is_written_meanwhile_stays(story: Story) -> None:
    del story.bench.documents.rows[B]
    story.log.between = partial(story.index, upsert(5, text="A third text."), upsert(6, "default/d", "New."))
    await story.replay(first="0:0", last="0:2")
    assert (story.bench.documents.rows[A].offset, story.bench.documents.rows[B].offset) == (5, 2)


async def test_canaries_and_what_is_no_document_are_passed_over(story: Story) -> None:
    await story.index(delete(5, f"{CANARY_COLLECTION}/0"), SourceRecord(0, 6, 1_006, b"\xff", b"{}"))
    assert counts(await story.replay(first="0:5")) == (1, 0, 0, 0, 0)


async def test_a_record_that_waits_to_be_indexed_is_left_to_that(story: Story) -> None:
    story.log.found.append(upsert(5, text="A third text."))
    assert counts(await story.replay(first="0:0", last="0:5")) == (5, 3, 0, 0, 0)


async def test_a_document_stays_where_compaction_took_what_it_came_from(story: Story) -> None:
    await story.index(upsert(5, version=9), upsert(6, version=3))
    story.log.found = [record for record in story.log.found if record.offset not in (0, 1, 5)]
    assert counts(await story.replay(first="0:6")) == (1, 1, 0, 1, 0)
    assert story.bench.documents.rows[A].version == 9


async def test_a_document_that_cannot_be_made_again_stays_and_the_others_are_made(story: Story) -> None:
    del story.bench.documents.rows[B]
    story.bench.documents.rows[A] = story.bench.documents.rows[C]
    story.bench.documents.failing = failing_times(3, "rewrite", ValueError("a bug of ours"))  # both, then each
    assert counts(await story.replay(first="0:0"))[2:] == (1, 0, 1)


async def test_one_that_is_cut_off_is_repeated_from_its_start(story: Story) -> None:
    expected = story.bench.state()
    story.bench.documents.rows.clear()
    story.bench.documents.failing = failing_times(1, "after replace", PowerCut())
    with pytest.raises(PowerCut):
        await story.replay(first="0:0")
    story.bench = story.bench.restarted()
    story.lost = {A, B}  # nothing was sent to it
    assert counts(await story.replay(first="0:0", state="running", records=5, of=3, documents=3)) == (5, 3, 2, 0, 0)
    assert story.bench.state()[1:] == expected[1:]
    assert len(story.bench.documents.rows) == 2  # without the tombstone, which the log still has
