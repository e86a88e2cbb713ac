"""A collection that chose a language model, through the whole commit, with the model behind a real HTTP server."""

from collections.abc import Iterator

import pytest

from indexer.extraction.language_model import LanguageModel
from schemas.graph_delta import Contribution, decode_contribution
from streams.indexing import extract
from streams.indexing.extract import open_extractors, outdated_note, versions_of
from streams.runtime.partition_progress import Progress
from streams.settings import WorkerSettings
from streams.worker_metrics import WorkerMetrics
from tests.support.fakes.model_endpoints import BROKEN, CUT, Answer, ChatEndpoint, chat_endpoint
from tests.support.fakes.worker import Bench, delete, upsert

SENTENCE = "Brightling hums at Zorf."
SAID = {
    "entities": [
        {"name": "Brightling", "type": "product", "definition": None},
        {"name": "Zorf", "type": "place", "definition": None},
        {"name": "Atlantis", "type": "place", "definition": None},
    ],
    "statements": [{"subject": "Brightling", "predicate": "hums_at", "object": "Zorf", "sentence": SENTENCE}],
}


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint(says={"Brightling": SAID}) as running:
        yield running


@pytest.fixture
async def bench(endpoint: ChatEndpoint) -> Iterator[Bench]:
    model = LanguageModel(endpoint.settings())
    made = Bench(extractor=model)
    made.choices.extractors = {"asked": model.version}
    yield made
    made.close()


def contribution(bench: Bench, key: str = "asked/a") -> Contribution:
    return decode_contribution(bench.broker.graph()[key])


async def test_its_entities_and_statements_reach_the_graph_with_its_version(
    bench: Bench, endpoint: ChatEndpoint
) -> None:
    await bench.indexer.index([upsert(0, "asked/a", SENTENCE), upsert(1, "default/a", SENTENCE)])
    found = contribution(bench)
    assert {one.surface: one.entity_type for one in found.mentions if one.entity_type} == {
        "Brightling": "product",
        "Zorf": "place",
    }
    (statement,) = (one for one in found.statements if one.predicate == "hums_at")
    assert statement.extractor == "language_model:reader:1"
    assert len(endpoint.bodies) == 1, "the other collection is not sent"
    assert "hums_at" not in {one.predicate for one in contribution(bench, "default/a").statements}
    by_key = {receipt.key: receipt for receipt in bench.broker.receipts()}
    assert any("1 names" in note for note in by_key["asked/a"].notes)
    assert by_key["default/a"].notes == ()
    assert not bench.progress.waiting_for


async def test_what_passes_is_asked_again(bench: Bench, endpoint: ChatEndpoint) -> None:
    endpoint.script = [BROKEN, CUT, Answer(429)]
    await bench.indexer.index([upsert(0, "asked/a", SENTENCE)])
    assert len(endpoint.bodies) == 4
    assert "hums_at" in {one.predicate for one in contribution(bench).statements}


@pytest.mark.parametrize("bad", [BROKEN, CUT, Answer(401), Answer(instead=b"x" * 10_000_000)])
async def test_where_it_fails_for_good_the_default_extractor_is_taken_and_the_receipt_says_so(
    bench: Bench, endpoint: ChatEndpoint, bad: Answer
) -> None:
    endpoint.otherwise = bad
    text = "Dr. Ann Lee teaches at the University of Basel."
    await bench.indexer.index([upsert(0, "asked/a", text), upsert(1, "default/a", text)])
    assert bench.broker.outcomes() == ["indexed", "indexed"]
    assert contribution(bench).mentions == contribution(bench, "default/a").mentions
    assert [one.predicate for one in contribution(bench).statements] == [
        one.predicate for one in contribution(bench, "default/a").statements
    ]
    (note,) = bench.broker.receipts()[0].notes
    assert note.startswith("1 of 1 chunks have the entities of the default extractor: The language model at ")


async def test_a_document_that_it_did_not_answer_for_is_read_again_when_it_is_sent_again(
    bench: Bench, endpoint: ChatEndpoint
) -> None:
    endpoint.script = [CUT] * 4
    await bench.indexer.index([upsert(0, "asked/a", SENTENCE)])
    assert "hums_at" not in {one.predicate for one in contribution(bench).statements}
    await bench.indexer.index([upsert(1, "asked/a", SENTENCE)])
    assert "hums_at" in {one.predicate for one in contribution(bench).statements}
    await bench.indexer.index([upsert(2, "asked/a", SENTENCE)])
    assert bench.broker.outcomes() == ["indexed", "indexed", "unchanged"]


async def test_choosing_it_makes_another_revision_and_deleting_leaves_nothing(bench: Bench) -> None:
    chosen = dict(bench.choices.extractors)
    bench.choices.extractors.clear()
    await bench.indexer.index([upsert(0, "asked/a", SENTENCE)])
    bench.choices.extractors = chosen
    await bench.indexer.index([upsert(1, "asked/a", SENTENCE)])
    await bench.indexer.index([upsert(2, "asked/a", SENTENCE)])
    assert bench.broker.outcomes() == ["indexed", "indexed", "unchanged"]
    await bench.indexer.index([delete(3, "asked/a")])
    assert bench.broker.graph() == {}


async def test_what_is_prefetched_before_the_choice_is_read_again_after_it(bench: Bench) -> None:
    chosen = dict(bench.choices.extractors)
    bench.choices.extractors.clear()
    records = [upsert(0, "asked/a", SENTENCE)]
    prefetched = await bench.indexer.prefetch(records)
    bench.choices.extractors = chosen
    await bench.indexer.index(records, prefetched)
    assert "hums_at" in {one.predicate for one in contribution(bench).statements}


def test_another_model_than_before_offers_the_rebuild(endpoint: ChatEndpoint) -> None:
    settings = WorkerSettings(language_model=endpoint.settings())
    assert outdated_note({"sentence", "language_model:reader:1"}, settings) is None
    note = outdated_note({"sentence", "language_model:reader:1", "language_model:old:1"}, settings)
    assert note is not None
    assert "language_model:old:1" in note
    assert "thalweg rebuild" in note
    assert outdated_note({"language_model:old:1"}, WorkerSettings()) is None


async def test_only_extractors_that_are_set_up_are_opened(
    endpoint: ChatEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "spacy_version", lambda: None)
    bare = WorkerSettings()
    assert versions_of(bare) == {} == open_extractors(bare, WorkerMetrics(), Progress())
    settings = WorkerSettings(language_model=endpoint.settings())
    opened = open_extractors(settings, WorkerMetrics(), Progress())
    assert list(opened) == list(versions_of(settings).values()) == ["language_model:reader:1"]
    monkeypatch.setattr(extract, "spacy_version", lambda: "spacy:3:3")
    both = open_extractors(settings, WorkerMetrics(), Progress())
    assert list(both) == list(versions_of(settings).values()) == ["language_model:reader:1", "spacy:3:3"]
    for each in (*opened.values(), *both.values()):
        each.close()
