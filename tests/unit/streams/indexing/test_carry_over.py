"""Nodes and edges of the curation topic become documents once, whenever the worker is killed meanwhile."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from schemas.graph_delta import decode_contribution
from streams.indexing.carry_over import CarryOver
from streams.kafka.records import SourceRecord
from tests.support.fakes.in_memory_log import InMemoryLog
from tests.support.fakes.worker import NAMES, Bench, PowerCut
from tests.unit.streams.indexing.test_settings_reader import settings_on

PETREL = {"label": "Team Petrel", "type": "team", "text": "It owns heron."}
OWNS = {"source": "petrel", "target": "heron", "predicate": "owns"}


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def earlier_edits() -> InMemoryLog:
    """Two nodes, an edge, a merge, and a node that was deleted."""
    curation = InMemoryLog()
    curation.append("a/node/petrel", json.dumps({"label": "Petrel"}).encode())
    curation.append("a/node/petrel", json.dumps(PETREL).encode())
    curation.append("a/node/heron", json.dumps({"label": "heron"}).encode())
    curation.append("a/node/gone", json.dumps({"label": "Gone"}).encode())
    curation.append("a/node/gone", None)
    curation.append("a/edge/owns", json.dumps(OWNS).encode())
    curation.append("a/merge/m", json.dumps({"entities": ["0" * 32, "1" * 32]}).encode())
    return curation


def sent(bench: Bench) -> list[SourceRecord]:
    """What stands in the documents topic."""
    records = enumerate(bench.broker.topics[NAMES.documents])
    return [SourceRecord(0, offset, 1_000 + offset, key, value) for offset, (key, value, *_) in records]


async def carry_over(bench: Bench, curation: InMemoryLog) -> None:
    """As a worker that starts and reads both topics."""
    curation.read = 0
    taken_back = bench.broker.topics[NAMES.curation]
    settings = settings_on(curation, bench)
    await settings.current()
    begun = len(taken_back)
    try:
        await CarryOver(settings, bench.producer, lambda _key: 0).process()
    finally:
        for key, value, *_ in taken_back[begun:]:
            curation.append((key or b"").decode(), value)


async def test_earlier_edits_become_documents(bench: Bench) -> None:
    curation = earlier_edits()
    await carry_over(bench, curation)
    await bench.indexer.index(sent(bench))
    graph = {key: decode_contribution(value) for key, value in bench.broker.graph().items()}
    assert set(graph) == {"a/node:petrel", "a/node:heron", "a/edge:owns"}
    assert [(each.label, each.type) for each in graph["a/node:petrel"].nodes] == [("Team Petrel", "team")]
    assert [(each.source, each.predicate) for each in graph["a/edge:owns"].relations] == [("petrel", "owns")]
    await carry_over(bench, curation)
    assert len(sent(bench)) == 3, "they were taken back, and nothing is sent twice"


@pytest.mark.parametrize("topic", [NAMES.documents, NAMES.curation])
async def test_carry_over_cut_off_is_repeated_without_change(bench: Bench, topic: str) -> None:
    curation, left = earlier_edits(), [2]

    def cut(to: str, _value: bytes | None) -> None:
        if to == topic:
            left[0] -= 1
            if not left[0]:
                raise PowerCut

    bench.broker.failing = cut
    with pytest.raises(PowerCut):
        await carry_over(bench, curation)
    bench.broker.failing = lambda _topic, _value: None
    await bench.indexer.index(sent(bench))
    before = len(sent(bench))
    await carry_over(bench, curation)
    await bench.indexer.index(sent(bench)[before:])
    assert set(bench.broker.graph()) == {"a/node:petrel", "a/node:heron", "a/edge:owns"}
    outcomes = Counter(bench.broker.outcomes())
    assert outcomes == {"indexed": 3, "unchanged": len(sent(bench)) - 3}
    assert outcomes["unchanged"] > 0
