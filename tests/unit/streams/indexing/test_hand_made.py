"""Nodes and edges that people make go through the commit as documents: versions, deletes, refusals, receipts."""

from collections.abc import Iterator

import msgspec
import pytest

from schemas.graph_delta import Contribution, decode_contribution
from schemas.graph_documents import EDGE_TYPE, NODE_TYPE
from schemas.ids import DocumentKey
from streams.kafka.records import SourceRecord
from tests.support.fakes.worker import NAMES, Bench, delete, upsert

PETREL = "default/node:petrel"
OWNS = "default/edge:owns"


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def node(offset: int, label: str, text: str = "", version: int | None = None) -> SourceRecord:
    content = msgspec.json.encode({"label": label, "text": text}).decode()
    return upsert(offset, PETREL, content, content_type=NODE_TYPE, version=version)


def edge(offset: int, **fields: object) -> SourceRecord:
    content = {"source": "petrel", "target": "heron", "predicate": "owns"} | fields
    return upsert(offset, OWNS, msgspec.json.encode(content).decode(), content_type=EDGE_TYPE)


def contributed(bench: Bench, key: str) -> Contribution:
    return decode_contribution(bench.broker.graph()[key])


async def test_node_with_text_is_indexed_and_is_a_node(bench: Bench) -> None:
    await bench.indexer.index([node(1, "Team Petrel", "It owns heron.")])
    row = bench.documents.rows[DocumentKey("default", "node:petrel")]
    assert (row.title, row.content_type, row.chunks) == ("Team Petrel", NODE_TYPE, 1)
    assert [each.name for each in contributed(bench, PETREL).nodes] == ["petrel"]
    [receipt] = bench.broker.receipts()
    assert (receipt.outcome, receipt.chunks) == ("indexed", 1)


async def test_node_without_text_and_edge_have_no_chunks(bench: Bench) -> None:
    await bench.indexer.index([node(1, "Team Petrel"), edge(2)])
    assert [(each.outcome, each.chunks) for each in bench.broker.receipts()] == [("indexed", 0), ("indexed", 0)]
    assert bench.encoder.encoded == []
    assert [(each.source, each.target) for each in contributed(bench, OWNS).relations] == [("petrel", "heron")]


async def test_of_two_versions_the_greater_wins_and_both_answer(bench: Bench) -> None:
    await bench.indexer.index([node(1, "Newer", version=8)])
    await bench.indexer.index([node(2, "Older", version=7)])
    assert [each.outcome for each in bench.broker.receipts()] == ["indexed", "superseded"]
    assert contributed(bench, PETREL).nodes[0].label == "Newer"


async def test_text_that_is_taken_away_leaves_the_node(bench: Bench) -> None:
    await bench.indexer.index([node(1, "Petrel", "It owns heron.")])
    await bench.indexer.index([node(2, "Petrel")])
    assert contributed(bench, PETREL).chunks == []
    assert bench.documents.chunks[DocumentKey("default", "node:petrel")] == ()
    await bench.indexer.index([delete(3, PETREL)])
    assert PETREL not in bench.broker.graph()


async def test_same_edge_again_is_unchanged(bench: Bench) -> None:
    await bench.indexer.index([edge(1)])
    await bench.indexer.index([edge(2)])
    assert [each.outcome for each in bench.broker.receipts()] == ["indexed", "unchanged"]


async def test_malformed_edge_becomes_a_dead_letter_with_a_sentence(bench: Bench) -> None:
    await bench.indexer.index([edge(1, weight=3), node(2, "Petrel")])
    assert len(bench.broker.topics[NAMES.dead_letters]) == 1
    refused, indexed = bench.broker.receipts()
    assert (refused.outcome, refused.reason) == ("dead_lettered", "wrong_type")
    assert refused.message == "The edge does not fit: weight: Input should be less than or equal to 1."
    assert indexed.outcome == "indexed"


async def test_document_of_text_becomes_a_node_of_the_same_key(bench: Bench) -> None:
    await bench.indexer.index([upsert(1, PETREL, "It owns heron.", content_type="text/plain", version=5)])
    await bench.indexer.index([node(2, "Team Petrel", "It owns heron.", version=5)])
    assert [each.outcome for each in bench.broker.receipts()] == ["indexed", "indexed"]
    assert contributed(bench, PETREL).nodes[0].label == "Team Petrel"
