"""The provenance agent on a table in memory."""

from collections.abc import Iterator, Sequence

import pytest

from schemas.provenance import Feedback, Retrieval, encode_feedback, encode_retrieval
from streams.agents.provenance_agent import ProvenanceAgent
from streams.kafka.records import SourceRecord
from tests.support.fakes.worker import NAMES, Bench


class InMemoryRetrievals:
    def __init__(self) -> None:
        self.kept: dict[str, Retrieval] = {}
        self.said: list[tuple[Feedback, int]] = []

    def add_retrievals(self, retrievals: Sequence[tuple[str, Retrieval]]) -> None:
        if any(retrieval.query == "unstorable" for _, retrieval in retrievals):
            raise ValueError("no column for that")
        for retrieval_id, retrieval in retrievals:
            self.kept.setdefault(retrieval_id, retrieval)

    def put_feedback(self, said: Sequence[tuple[Feedback, int]]) -> None:
        self.said += said


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def record(offset: int, retrieval_id: str, query: str = "who?") -> SourceRecord:
    retrieval = Retrieval(
        retrieval_id=retrieval_id,
        query=query,
        collection=None,
        mode="hybrid",
        at_ms=0,
        snapshot={},
        parameters={},
        hits=[],
    )
    return SourceRecord(0, offset, 0, retrieval_id.encode(), encode_retrieval(retrieval))


def agent(bench: Bench, table: InMemoryRetrievals) -> ProvenanceAgent:
    return ProvenanceAgent(
        topic=NAMES.provenance, writer=table, thread=bench.thread, producer=bench.producer, progress=bench.progress
    )


async def test_a_retrieval_is_kept_once_however_often_it_is_delivered(bench: Bench) -> None:
    table = InMemoryRetrievals()
    records = [record(0, "r1"), record(1, "r2"), record(2, "r1")]
    await agent(bench, table).store(records)
    await agent(bench, table).store(records)
    assert sorted(table.kept) == ["r1", "r2"]


async def test_what_is_no_retrieval_or_cannot_be_kept_is_buried(bench: Bench) -> None:
    table = InMemoryRetrievals()
    tombstone = SourceRecord(0, 3, 0, b"r9", None)
    foreign = SourceRecord(0, 1, 0, b"r2", b"[]")
    await agent(bench, table).store([record(0, "r1"), foreign, record(2, "r3", "unstorable"), tombstone])
    assert sorted(table.kept) == ["r1"]
    assert [one["thalweg.reason"] for one in bench.broker.letters()] == ["bad_retrieval", "failed"]


def said(offset: int, comment: str = "") -> SourceRecord:
    feedback = Feedback(
        retrieval_id="r1", chunk_id="c", collection="a", document_id="d", rank=1, rating=0.5, at_ms=1, comment=comment
    )
    return SourceRecord(0, offset, 0, b"r1", encode_feedback(feedback))


async def test_feedback_is_kept_beside_retrievals_with_its_place_in_the_log(bench: Bench) -> None:
    table = InMemoryRetrievals()
    await agent(bench, table).store([said(0, "first"), record(1, "r1"), said(2, "second")])
    assert sorted(table.kept) == ["r1"]
    assert [(feedback.comment, offset) for feedback, offset in table.said] == [("first", 0), ("second", 2)]
    assert bench.broker.letters() == []


@pytest.mark.parametrize(
    "value",
    [
        b'{"type": "feedback"}',
        b'{"type": "rumour"}',
        b'{"type": 7}',
        said(0).value.replace(b"0.5", b"1.5"),
        said(0).value.replace(b"0.5", b'"good"'),
        said(0).value.replace(b'"rank"', b'"place":1,"rank"'),
        said(0, "x" * 2_001).value,
    ],
)
async def test_feedback_of_another_shape_is_buried(bench: Bench, value: bytes) -> None:
    table = InMemoryRetrievals()
    await agent(bench, table).store([SourceRecord(0, 0, 0, b"r1", value)])
    assert table.said == []
    assert [one["thalweg.reason"] for one in bench.broker.letters()] == ["bad_retrieval"]
