"""The documents agent: batches are committed in order and acknowledged last; the next ones are prepared meanwhile."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.agents.batching import CommitPace
from streams.agents.documents_agent import DocumentsAgent
from streams.errors import StoreFailure
from streams.kafka.records import SourceRecord
from tests.support.fakes.worker import GENERATION, NAMES, Bench, delete, upsert
from tests.support.waiting import eventually, wait_until

AT_ONCE = CommitPace(0.0)


@dataclass
class TakenRecord:
    """A Faust event: the record as a message, and whether it was acknowledged."""

    record: SourceRecord
    acknowledged: bool = False
    log: list[str] = field(default_factory=list)

    @property
    def message(self) -> Any:
        record = self.record
        return SimpleNamespace(
            partition=record.partition,
            offset=record.offset,
            timestamp=record.timestamp_ms / 1000,
            key=record.key,
            value=record.value,
            headers=record.headers,
        )

    def ack(self) -> None:
        self.acknowledged = True
        self.log.append(f"ack {self.record.offset}")


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


async def run(bench: Bench, *batches: Sequence[TakenRecord], commit_documents: int = 1) -> None:
    async def take() -> AsyncIterator[Sequence[TakenRecord]]:
        for batch in batches:
            yield batch

    agent = DocumentsAgent(NAMES.documents, bench.indexer, bench.progress, commit_documents, 1_000_000, AT_ONCE)
    await agent.run(take())


@pytest.mark.parametrize("sizes", [(3,), (2, 1)], ids=["of a batch", "of the next batch"])
async def test_while_a_batch_is_stored_the_next_one_is_parsed_and_acknowledged_after_it(
    bench: Bench, sizes: Sequence[int]
) -> None:
    events = [TakenRecord(upsert(number, f"default/{number}"), log=bench.documents.writes) for number in range(3)]
    parsed_meanwhile: list[list[str]] = []
    waited = threading.Event()

    def wait_for_the_next(call: str) -> None:
        if call == "replace":
            stored = bench.documents.writes.count("replace") + 1
            for _ in range(500):
                if len(bench.preparer.prepared) > min(stored, 2):
                    break
                waited.wait(0.01)
            parsed_meanwhile.append(list(bench.preparer.prepared))

    bench.documents.failing = wait_for_the_next
    await run(bench, events[: sizes[0]], *([events[sizes[0] :]] if sizes[1:] else []))
    assert all(len(parsed) >= expected for parsed, expected in zip(parsed_meanwhile, (2, 3, 3), strict=True))
    assert bench.documents.writes == ["replace", "ack 0", "replace", "ack 1", "replace", "ack 2"]
    assert bench.preparer.prepared == ["default/0", "default/1", "default/2"]


async def test_while_a_batch_is_confirmed_the_next_one_is_encoded_once_and_counted_in_its_own_receipt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [TakenRecord(upsert(number, f"default/{number}", f"The text number {number}.")) for number in range(3)]
    encoded_meanwhile: list[int] = []
    send = bench.broker.send

    async def confirmed_late(topic: str, key: bytes | None, *rest: Any) -> Awaitable[Any]:
        confirmed = await send(topic, key, *rest)
        is_mark = topic == NAMES.contributions(GENERATION) and key is None
        return once_the_next_is_encoded(confirmed) if is_mark else confirmed

    async def once_the_next_is_encoded(confirmed: Awaitable[Any]) -> Any:
        following = min(len(encoded_meanwhile) + 2, 3)
        with suppress(TimeoutError):
            await eventually(lambda: len(bench.encoder.encoded) >= following, 5)
        encoded_meanwhile.append(len(bench.encoder.encoded))
        return await confirmed

    monkeypatch.setattr(bench.broker, "send", confirmed_late)
    await run(bench, events)
    assert all(encoded >= expected for encoded, expected in zip(encoded_meanwhile, (2, 3, 3), strict=True))
    assert len(bench.encoder.encoded) == len(set(bench.encoder.encoded)) == 3
    assert [receipt.embedded for receipt in bench.broker.receipts()] == [1, 1, 1]


async def test_the_next_batch_is_asked_for_early_in_a_backlog_only_so_that_it_grows(bench: Bench) -> None:
    texts = [(0,), (1,), (2, 3), (4,), (5,)]
    stored_when_asked: list[int] = []

    async def take() -> AsyncIterator[Sequence[TakenRecord]]:
        for batch in texts:
            stored_when_asked.append(bench.documents.writes.count("replace"))
            yield [TakenRecord(upsert(number, f"default/{number}")) for number in batch]

    await DocumentsAgent(NAMES.documents, bench.indexer, bench.progress, 2, 1_000_000, AT_ONCE).run(take())
    assert stored_when_asked == [0, 1, 2, 2, 4]


async def test_an_agent_that_is_stopped_waits_for_no_other_batch(bench: Bench) -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def take() -> AsyncIterator[Sequence[TakenRecord]]:
        yield [TakenRecord(upsert(0))]
        try:
            asked.set()
            await asyncio.Event().wait()
        finally:
            left.set()

    agent = DocumentsAgent(NAMES.documents, bench.indexer, bench.progress, 10, 1_000_000, AT_ONCE)
    running = asyncio.create_task(agent.run(take()))
    await asked.wait()
    assert bench.broker.outcomes() == ["indexed"]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert left.is_set()


async def test_a_text_that_chokes_the_encoder_early_buries_its_document_in_its_turn(bench: Bench) -> None:
    texts = ("a good text", "poison", "another good text")
    await run(bench, [TakenRecord(upsert(number, f"default/{number}", text)) for number, text in enumerate(texts)])
    assert bench.broker.outcomes() == ["indexed", "dead_lettered", "indexed"]


async def test_a_store_that_fails_acknowledges_nothing_more_and_leaves_nothing_under_way(bench: Bench) -> None:
    events = [TakenRecord(upsert(0)), TakenRecord(upsert(1, "default/b")), TakenRecord(upsert(2, "default/c", "slow"))]

    def fail_the_second(call: str) -> None:
        if call == "replace" and bench.documents.writes:
            wait_until(lambda: "default/c" in bench.preparer.prepared, "the third is prepared meanwhile", 20)
            raise RuntimeError("half-way")

    bench.documents.failing = fail_the_second
    with pytest.raises(StoreFailure):
        await run(bench, events)
    assert [event.acknowledged for event in events] == [True, False, False]
    await eventually(lambda: bench.preparer.cancelled == ["default/c"])
    bench = bench.restarted()
    bench.documents.failing = lambda _call: None
    await run(bench, [TakenRecord(upsert(1, "default/b")), TakenRecord(upsert(2, "default/c", "quick"))])
    assert sorted(key.document_id for key in bench.documents.rows) == ["a", "b", "c"]
    bench.close()


async def test_what_the_batch_before_makes_needless_is_not_stored_and_refuses_nothing(bench: Bench) -> None:
    """The later batches are prepared before the first one is stored, by a prediction that is wrong."""
    same = upsert(0, version=2).value
    again = SourceRecord(0, 1, 1_001, b"default/a", same)
    older = upsert(2, version=1, text="unparsable")
    await run(bench, [TakenRecord(upsert(0, version=2)), TakenRecord(again), TakenRecord(older)])
    assert bench.broker.outcomes() == ["indexed", "unchanged", "superseded"]
    assert bench.broker.letters() == []


async def test_a_text_of_the_batch_before_is_not_encoded_again_though_it_is_not_stored_yet(bench: Bench) -> None:
    texts = ("The same words.", "The same words.", "Other words.")
    records = [upsert(number, f"default/{number}", text, title="T") for number, text in enumerate(texts)]
    await run(bench, [TakenRecord(record) for record in records])
    assert len(bench.encoder.encoded) == 2
    assert [receipt.embedded for receipt in bench.broker.receipts()] == [1, 0, 1]


TEXTS = ("one", "two", "unparsable", "a bug", None)
histories = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(TEXTS)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=40)
@given(histories, st.integers(1, 3))
async def test_preparing_ahead_changes_nothing_that_is_stored_or_sent(
    history: list[tuple[str, str | None]], commit_documents: int
) -> None:
    records = [
        delete(offset, f"default/{document}") if text is None else upsert(offset, f"default/{document}", text)
        for offset, (document, text) in enumerate(history)
    ]
    ahead, one_by_one = Bench(), Bench()
    await run(ahead, [TakenRecord(record) for record in records], commit_documents=commit_documents)
    for start in range(0, len(records), commit_documents):
        await one_by_one.indexer.index(records[start : start + commit_documents])
    assert ahead.state() == one_by_one.state()
    assert ahead.broker.outcomes() == one_by_one.broker.outcomes()
    assert ahead.documents.stored == one_by_one.documents.stored
    ahead.close()
    one_by_one.close()


async def test_small_batches_are_charged_to_the_pace_and_those_of_a_backlog_are_not(bench: Bench) -> None:
    class Noted(CommitPace):
        commits = 0

        def committed(self, took_seconds: float) -> None:
            self.commits += 1

    async def take() -> AsyncIterator[Sequence[TakenRecord]]:
        for batch in ((0,), (1, 2, 3, 4), (5, 6), (7,)):
            yield [TakenRecord(upsert(number, f"default/{number}")) for number in batch]

    pace = Noted(1.0)
    await DocumentsAgent(NAMES.documents, bench.indexer, bench.progress, 2, 1_000_000, pace).run(take())
    assert pace.commits == 2
