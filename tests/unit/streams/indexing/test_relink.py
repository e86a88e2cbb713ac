"""Stored documents linked again, beside documents that arrive meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from indexer.linking import DEFAULT_RULES, LinkingRules
from schemas.curation import RelinkEvent, Relinking, decode_curation
from schemas.graph_delta import decode_contribution
from streams.indexing.relink import Relinker
from streams.kafka.records import SourceRecord
from streams.runtime.retry import Retrier
from tests.support.fakes.worker import GENERATION, NAMES, Bench, InMemoryBroker, PowerCut, delete, upsert

EVERYTHING_ALIKE = LinkingRules(similar_above=0.0, similar=0.5)
TEXT = " ".join(f"Sentence {number} says that the river {number} flows to the sea in its bed." for number in range(30))


@dataclass
class OrdersInMemory:
    """The curation topic of a bench: orders stand in it until the worker has said that they are done."""

    bench: Bench
    given: list[RelinkEvent] = field(default_factory=list)
    orders: Sequence[RelinkEvent] = ()

    async def current(self) -> None:
        done = {
            (event.collection, event.id) for event in told(self.bench) if event.state and event.state.state == "done"
        }
        self.orders = [order for order in self.given if (order.collection, order.id) not in done]

    def linking_of(self, collection: str) -> LinkingRules:
        return self.bench.linking.get(collection, DEFAULT_RULES)


@dataclass
class ContributedInMemory:
    """The graph topic of a broker. `between` is called once, before the first record is read."""

    broker: InMemoryBroker
    between: Callable[[], object] | None = None

    async def newest(self, collection: str) -> Mapping[bytes, int]:
        found: dict[bytes, int] = {}
        for offset, (key, value, _, _) in enumerate(self.broker.topics[NAMES.graph(GENERATION)]):
            assert key is not None
            if key.startswith(f"{collection}/".encode()):
                found.pop(key, None)
                if value is not None:
                    found[key] = offset
        return found

    async def read(self, offsets: Mapping[bytes, int]) -> AsyncIterator[SourceRecord]:
        log = list(self.broker.topics[NAMES.graph(GENERATION)])
        if self.between is not None:
            await self.between()
            self.between = None
        for offset, (key, value, _, _) in enumerate(log):
            if key is not None and offsets.get(key) == offset:
                yield SourceRecord(0, offset, 0, key, value)


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def told(bench: Bench) -> list[RelinkEvent]:
    events = [decode_curation(key, value) for key, value, _, _ in bench.broker.topics[NAMES.curation]]
    return [event for event in events if isinstance(event, RelinkEvent)]


def relinker(bench: Bench, orders: OrdersInMemory, between: Callable[[], object] | None = None) -> Relinker:
    return Relinker(
        collection_settings=orders,
        graph_topic=ContributedInMemory(bench.broker, between),
        writer=bench.documents,
        thread=bench.thread,
        producer=bench.producer,
        retrier=Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001),
        commit_lock=bench.commit_lock,
        max_contribution_bytes=bench.max_contribution_bytes,
    )


def order(bench: Bench, collection: str = "default") -> OrdersInMemory:
    return OrdersInMemory(bench, [RelinkEvent(collection, "a1", Relinking())])


def similar(bench: Bench, key: str) -> list[float]:
    return [edge.weight for edge in decode_contribution(bench.broker.graph()[key]).edges if edge.kind == "similar_to"]


async def test_other_rules_reach_what_is_stored_and_nothing_is_embedded(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, text=TEXT), upsert(1, "other/a", text=TEXT)])
    before, embedded = bench.broker.graph(), len(bench.encoder.encoded)
    bench.linking["default"] = EVERYTHING_ALIKE
    await relinker(bench, order(bench)).process_orders()
    assert len(similar(bench, "default/a")) == len(bench.documents.chunks[next(iter(bench.documents.chunks))]) - 1
    assert bench.broker.graph()["other/a"] == before["other/a"], "another collection is left alone"
    assert len(bench.encoder.encoded) == embedded
    assert told(bench)[-1].state == Relinking(state="done", documents=1, of=1, changed=1)


async def test_what_was_linked_again_is_what_the_document_would_be_indexed_as(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, text=TEXT)])
    bench.linking["default"] = EVERYTHING_ALIKE
    await relinker(bench, order(bench)).process_orders()
    anew = Bench(linking=bench.linking)
    await anew.indexer.index([upsert(0, text=TEXT)])
    assert anew.broker.graph() == bench.broker.graph()
    anew.close()


async def test_by_unchanged_rules_nothing_is_sent(bench: Bench) -> None:
    await bench.indexer.index([upsert(number, f"default/{number}", text=TEXT) for number in range(70)])
    sent = len(bench.broker.topics[NAMES.graph(GENERATION)])
    await relinker(bench, order(bench)).process_orders()
    assert len(bench.broker.topics[NAMES.graph(GENERATION)]) == sent
    states = [event.state for event in told(bench)]
    assert [(state.state, state.documents, state.changed) for state in states if state] == [
        ("running", 0, 0),
        ("running", 64, 0),
        ("running", 70, 0),
        ("done", 70, 0),
    ]


async def test_an_order_is_carried_out_once_and_again_only_where_it_was_cut_off(bench: Bench) -> None:
    await bench.indexer.index([upsert(number, f"default/{number}", text=TEXT) for number in range(3)])
    bench.linking["default"] = EVERYTHING_ALIKE
    given = order(bench)

    def cut(topic: str, value: bytes | None) -> None:
        if topic == NAMES.curation and b"running" in (value or b"") and b'"documents":3' in (value or b""):
            raise PowerCut

    bench.broker.failing = cut
    with pytest.raises(PowerCut):
        await relinker(bench, given).process_orders()
    bench.broker.failing = lambda _topic, _value: None
    linked = bench.broker.graph()
    await relinker(bench, given).process_orders()
    assert bench.broker.graph() == linked
    assert told(bench)[-1].state == Relinking(state="done", documents=3, of=3, changed=0)
    records = len(bench.broker.topics[NAMES.curation])
    await relinker(bench, given).process_orders()
    assert len(bench.broker.topics[NAMES.curation]) == records


async def test_a_document_replaced_or_deleted_meanwhile_stays_as_it_then_is(bench: Bench) -> None:
    await bench.indexer.index(
        [upsert(0, text=TEXT), upsert(1, "default/b", text=TEXT), upsert(2, "default/c", text=TEXT)]
    )
    bench.linking["default"] = EVERYTHING_ALIKE
    changes = [upsert(3, text="Other words. " + TEXT), delete(4, "default/b")]
    await relinker(bench, order(bench), lambda: bench.indexer.index(changes)).process_orders()
    row = bench.documents.rows[next(key for key in bench.documents.rows if key.document_id == "a")]
    assert decode_contribution(bench.broker.graph()["default/a"]).revision == row.revision
    assert set(bench.broker.graph()) == {"default/a", "default/c"}
    assert told(bench)[-1].state == Relinking(state="done", documents=3, of=3, changed=1, skipped=2)


async def test_while_documents_are_committed_nothing_is_linked(bench: Bench) -> None:
    await bench.commit_lock.acquire()
    working = relinker(bench, order(bench))
    task = asyncio.create_task(working.process_orders())
    for _ in range(20):
        await asyncio.sleep(0)
    assert told(bench) == []
    bench.commit_lock.release()
    await task
    assert told(bench)[-1].state == Relinking(state="done")


async def test_edges_too_many_for_the_graph_are_left_out(bench: Bench) -> None:
    await bench.indexer.index([upsert(0, text=TEXT)])
    before = bench.broker.graph()
    bench.linking["default"] = EVERYTHING_ALIKE
    bench.max_contribution_bytes = len(before["default/a"])
    await relinker(bench, order(bench)).process_orders()
    assert bench.broker.graph() == before
    assert told(bench)[-1].state == Relinking(state="done", documents=1, of=1, skipped=1)
