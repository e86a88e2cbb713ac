"""Stored documents linked again, beside documents that arrive meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.linking import LinkingRules
from schemas.curation import decode_curation
from schemas.graph_delta import decode_contribution
from schemas.ids import DocumentKey
from schemas.orders import RELINK, OrderEvent, Relinking, relink_key
from streams.indexing.order_runner import OrderRunner, relink
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
    upsert,
)

A = DocumentKey("default", "a")
EVERYTHING_ALIKE = LinkingRules(similar_above=0.0, similar=0.5)
TEXT = " ".join(f"Sentence {number} says that the river {number} flows to the sea in its bed." for number in range(30))


@dataclass
class OrdersInMemory:
    """The curation topic of a bench: orders stand in it until the worker has said that they are done."""

    bench: Bench
    given: list[OrderEvent] = field(default_factory=list)
    orders: Mapping[bytes, OrderEvent] = field(default_factory=dict)

    async def current(self) -> None:
        done = {event.id for event in told(self.bench) if event.order and event.order.state == "done"}
        self.orders = {relink_key(each.collection, each.id): each for each in self.given if each.id not in done}


class LoggedBench(Bench):
    """A bench with the log that it has indexed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.log = InMemoryLog()

    async def index(self, *records: SourceRecord) -> None:
        self.log.found += records
        await self.indexer.index(records)

    def sent(self) -> int:
        """So many documents' contributions."""
        return sum(len(commit.in_graph) for commit in self.broker.commits())


@pytest.fixture
async def bench() -> AsyncIterator[LoggedBench]:
    made = LoggedBench()
    yield made
    made.close()


def told(bench: Bench) -> list[OrderEvent]:
    events = [decode_curation(key, value) for key, value, _, _ in bench.broker.topics[NAMES.curation]]
    return [event for event in events if isinstance(event, OrderEvent)]


async def no_snapshot() -> None:
    """Relinking leaves them to their schedule."""


async def relinked(bench: LoggedBench, orders: OrdersInMemory) -> None:
    """All that is ordered, by a worker that has just started."""
    stores = StoresInMemory(bench.documents, bench.broker)
    retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
    reapplier = Reapplier([bench.log], bench.indexer, stores, no_snapshot, bench.commit_lock)
    work = partial(relink, reapplier, partial(bench.thread.run, bench.documents.live_positions))
    runner = OrderRunner(GENERATION, orders, {RELINK: work}, bench.producer, retrier, bench.commit_lock)
    await runner.read()
    await runner.process(RELINK)


def order(bench: Bench, collection: str = "default") -> OrdersInMemory:
    return OrdersInMemory(bench, [OrderEvent(RELINK, "a1", Relinking(), collection)])


def similar(bench: Bench, key: str) -> list[float]:
    return [edge.weight for edge in decode_contribution(bench.broker.graph()[key]).edges if edge.kind == "similar_to"]


async def test_other_rules_reach_stored_documents_without_encoder(bench: LoggedBench) -> None:
    await bench.index(upsert(0, text=TEXT), upsert(1, "other/a", text=TEXT))
    before, embedded, written = bench.broker.graph(), len(bench.encoder.encoded), list(bench.documents.writes)
    bench.linking["default"] = EVERYTHING_ALIKE
    await relinked(bench, order(bench))
    assert len(similar(bench, "default/a")) == len(bench.documents.chunks[next(iter(bench.documents.chunks))]) - 1
    assert bench.broker.graph()["other/a"] == before["other/a"], "another collection is left alone"
    assert (len(bench.encoder.encoded), bench.documents.writes) == (embedded, written)
    assert told(bench)[-1].order == Relinking(state="done", documents=1, of=1, changed=1)


async def test_relinked_document_is_what_it_would_be_indexed_as(bench: LoggedBench) -> None:
    await bench.index(upsert(0, text=TEXT))
    bench.linking["default"] = EVERYTHING_ALIKE
    await relinked(bench, order(bench))
    other = Bench(linking=bench.linking)
    await other.indexer.index([upsert(0, text=TEXT)])
    assert other.broker.graph() == bench.broker.graph()
    other.close()


async def test_relinking_by_unchanged_rules_sends_nothing(bench: LoggedBench) -> None:
    await bench.index(*(upsert(number, f"default/{number}", text=TEXT) for number in range(70)))
    sent = bench.sent()
    await relinked(bench, order(bench))
    assert bench.sent() == sent
    states = [event.order for event in told(bench)]
    assert [(state.state, state.documents, state.changed) for state in states if isinstance(state, Relinking)] == [
        ("running", 0, 0),
        ("running", 50, 0),
        ("running", 70, 0),
        ("done", 70, 0),
    ]


async def test_order_is_carried_out_again_only_where_it_was_cut_off(bench: LoggedBench) -> None:
    await bench.index(*(upsert(number, f"default/{number}", text=TEXT) for number in range(3)))
    bench.linking["default"] = EVERYTHING_ALIKE
    given = order(bench)

    def cut(topic: str, value: bytes | None) -> None:
        if topic == NAMES.curation and b"running" in (value or b"") and b'"documents":3' in (value or b""):
            raise PowerCut

    bench.broker.failing = cut
    with pytest.raises(PowerCut):
        await relinked(bench, given)
    bench.broker.failing = lambda _topic, _value: None
    linked, sent = bench.broker.graph(), bench.sent()
    await relinked(bench, given)
    assert (bench.broker.graph(), bench.sent()) == (linked, sent)
    assert told(bench)[-1].order == Relinking(state="done", documents=3, of=3, changed=0)
    records = len(bench.broker.topics[NAMES.curation])
    await relinked(bench, given)
    assert len(bench.broker.topics[NAMES.curation]) == records


async def test_document_replaced_or_deleted_meanwhile_stays_so(bench: LoggedBench) -> None:
    await bench.index(upsert(0, text=TEXT), upsert(1, "default/b", text=TEXT), upsert(2, "default/c", text=TEXT))
    bench.linking["default"] = EVERYTHING_ALIKE
    changes = [upsert(3, text="Other words. " + TEXT), delete(4, "default/b")]
    bench.log.between = partial(bench.index, *changes)
    await relinked(bench, order(bench))
    row = bench.documents.rows[A]
    assert (row.offset, decode_contribution(bench.broker.graph()["default/a"]).revision) == (3, row.revision)
    assert set(bench.broker.graph()) == {"default/a", "default/c"}
    assert told(bench)[-1].order == Relinking(state="done", documents=3, of=3, changed=1, skipped=2)


async def test_nothing_is_linked_during_a_commit(bench: LoggedBench) -> None:
    await bench.commit_lock.acquire()
    task = asyncio.create_task(relinked(bench, order(bench)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert told(bench) == []
    bench.commit_lock.release()
    await task
    assert told(bench)[-1].order == Relinking(state="done")


@pytest.mark.parametrize("first", [0, 2], ids=["taken by compaction", "cut short"])
async def test_document_that_log_no_longer_holds_is_skipped(first: int, bench: LoggedBench) -> None:
    await bench.index(upsert(0, text=TEXT), upsert(1, "default/b", text=TEXT), upsert(2, "default/c", text=TEXT))
    before = bench.broker.graph()
    bench.linking["default"] = EVERYTHING_ALIKE
    bench.log.found, bench.log.first = bench.log.found[2:], first
    await relinked(bench, order(bench))
    after = bench.broker.graph()
    assert {key for key in before if after[key] == before[key]} == {"default/a", "default/b"}
    assert told(bench)[-1].order == Relinking(state="done", documents=3, of=3, changed=1, skipped=2)


async def test_other_chunking_cuts_again_and_keeps_what_row_knows(bench: LoggedBench) -> None:
    await bench.index(upsert(0, text="Older.", version=9), upsert(1, text=TEXT, version=9))
    bench.documents.rows[A] = replace(bench.documents.rows[A], version=12, other_partitions=(3,))
    bench.choices.chunking["default"] = ChunkingParameters(chunk_characters=200)
    await relinked(bench, order(bench))
    row = bench.documents.rows[A]
    assert (row.version, row.other_partitions, row.offset) == (12, (3,), 1)
    assert decode_contribution(bench.broker.graph()["default/a"]).revision == row.revision
    assert len(bench.documents.chunks[A]) == row.chunks > 10
    assert told(bench)[-1].order == Relinking(state="done", documents=1, of=1, changed=1)


async def test_incomplete_graph_gets_what_it_lacks_and_loses_the_rest(bench: LoggedBench) -> None:
    await bench.index(upsert(0, text=TEXT), upsert(1, "default/b"))
    await bench.index(delete(2, "default/b"), upsert(3, "default/c"))
    whole = bench.broker.graph()
    topic = bench.broker.topics[NAMES.contributions(GENERATION)]
    topic[:] = [next(each for each in topic if each[0] == key) for key in (b"default/b", None)]
    stores = StoresInMemory(bench.documents, bench.broker)
    encoded = list(bench.encoder.encoded)
    reapplier = Reapplier([bench.log], bench.indexer, stores, no_snapshot, bench.commit_lock)
    await reapplier.complete_graph()
    assert (bench.broker.graph(), bench.encoder.encoded) == (whole, encoded)
    sent = bench.sent()
    await reapplier.complete_graph()
    assert bench.sent() == sent == 4
