"""Channels that are late, broken or away: what the others answer, and what the answer says of it."""

import threading
from concurrent.futures import Executor
from typing import Any

import pytest

from indexer.errors import EncoderUnavailable
from query_api.retrieval.pipeline import search
from query_api.retrieval.search_context import SearchBudgets, SearchFailed, SearchSettings
from schemas.frames import Meta, Stage
from schemas.search import SearchRequest
from tests.support.fakes.text_stores import InMemoryText, Page, world
from tests.unit.query_api.retrieval.asking import PAGES, QUESTION, SIDE_BY_SIDE, ask


async def test_a_late_structured_channel_is_left_out_and_the_answer_says_so(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    made = world(PAGES)
    monkeypatch.setattr(InMemoryText, "leads", lambda *_: release.wait(10) and {})
    settings = SearchSettings(budgets=SearchBudgets(structured_seconds=0.02))
    made[1].pages = {page.key: page for page in [*PAGES, Page("pep-0007", "Seven", [["nothing"]])]}
    try:
        answer = await ask(made, executor, q="pep 7", settings=settings)
    finally:
        release.set()
    assert answer.done.failed_channels == {"structured": "no answer within 0.02 s"}


async def test_a_late_channel_is_left_out_and_said_so(executor: Executor) -> None:
    made = world(SIDE_BY_SIDE)
    release = threading.Event()
    made[1].hold["keyword_search"] = release
    settings = SearchSettings(budgets=SearchBudgets(keyword_seconds=0.05))
    try:
        answer = await ask(made, executor, q="film about trains", settings=settings)
    finally:
        release.set()
    assert answer.titles[0] == "Railways"
    assert answer.stages["keyword"].error == "no answer within 0.05 s"
    assert answer.done.failed_channels == {"keyword": "no answer within 0.05 s"}
    assert all("keyword" not in hit.scores for hit in answer.hits)


async def test_a_broken_channel_is_reported_and_the_others_answer(executor: Executor) -> None:
    made = world(PAGES)
    made[1].broken.add("vector_search")
    answer = await ask(made, executor, collection="wiki")
    assert answer.hits
    assert answer.done.failed_channels == {"vector": "Could not vector_search: the disk is gone"}
    assert answer.stages["vector"].error == "Could not vector_search: the disk is gone"


async def test_an_encoder_that_is_away_costs_the_vector_channel_only(executor: Executor) -> None:
    made = world(PAGES)
    made[2].broken = EncoderUnavailable("The embeddings endpoint cannot be reached.")
    answer = await ask(made, executor, collection="wiki")
    assert answer.titles[:1] == ["Alpha Film"]
    assert {"keyword", "graph"} <= {channel for hit in answer.hits for channel in hit.channels}
    assert answer.stages["embed"].error == "The embeddings endpoint cannot be reached."
    assert answer.done.failed_channels == {
        "vector": "The question was not embedded: The embeddings endpoint cannot be reached."
    }
    with pytest.raises(SearchFailed, match="cannot be reached"):
        await ask(made, executor, mode="vector", collection="wiki")


async def test_a_broken_graph_leaves_the_text_channels(executor: Executor) -> None:
    made = world(PAGES)
    release = threading.Event()
    text = made[1]
    keyword = text.keyword_search
    text.keyword_search = lambda query, limit, collection: (  # type: ignore[method-assign]
        keyword(query, limit, collection) if query == QUESTION else release.wait(10) and []
    )
    settings = SearchSettings(budgets=SearchBudgets(graph_seconds=0.05))
    try:
        answer = await ask(made, executor, settings=settings, collection="wiki")
    finally:
        release.set()
    assert answer.done.failed_channels == {"graph": "no answer within 0.05 s"}
    assert answer.hits
    assert all(not hit.path for hit in answer.hits)


async def test_when_every_channel_fails_the_search_fails(executor: Executor) -> None:
    made = world(PAGES)
    made[1].broken |= {"vector_search", "keyword_search", "passages"}
    with pytest.raises(SearchFailed, match=r"graph: .*keyword: .*vector: Could not vector_search: the disk is gone"):
        await ask(made, executor, collection="wiki")
    with pytest.raises(SearchFailed):
        await ask(made, executor, mode="vector", collection="wiki")


async def test_what_could_not_be_compared_is_ranked_as_it_was_found_and_the_answer_says_so(executor: Executor) -> None:
    made = world(PAGES)
    made[1].broken.add("compare_vectors")
    answer = await ask(made, executor, collection="wiki")
    assert answer.hits
    reason = "Could not compare_vectors: the disk is gone"
    assert answer.done.failed_channels == {
        "graph": f"What was found was not compared with the question: {reason}",
        "compare": reason,
    }
    assert answer.stages["graph"].error == answer.done.failed_channels["graph"]
    with pytest.raises(SearchFailed, match="not compared with the question"):
        await ask(made, executor, mode="graph", collection="wiki")


async def test_texts_that_cannot_be_read_fail_the_search(executor: Executor) -> None:
    made = world(PAGES)
    made[1].broken.add("chunks_of_passages")
    with pytest.raises(SearchFailed, match="texts of the hits"):
        await ask(made, executor, collection="wiki")


async def test_keyword_search_needs_no_encoder(executor: Executor) -> None:
    made = world(PAGES)
    made[2].broken = AssertionError("must not be called")
    answer = await ask(made, executor, q="trains", mode="keyword", collection="wiki")
    assert answer.titles == ["Beta Film"]
    assert set(answer.stages) == {"keyword"}


async def test_a_closed_search_waits_for_nothing(executor: Executor) -> None:
    made = world(PAGES)
    release = threading.Event()
    made[1].hold["keyword_search"] = release
    parts = search(SearchRequest(q=QUESTION), "r1", made[0], made[2], executor, SearchSettings())
    try:
        assert isinstance(await anext(parts), Meta)
        assert isinstance(await anext(parts), Stage)
        await parts.aclose()  # type: ignore[attr-defined]
        assert made[1].calls["passages"] == 0
    finally:
        release.set()


async def test_a_channel_that_breaks_while_a_page_is_deepened_is_reported(executor: Executor) -> None:
    one_long_document = Page("long", "Long", [[f"The river has bend {number}."] for number in range(80)])
    made = world([one_long_document])
    _, text, _ = made
    whole = text.keyword_search

    def first_only(query: str, limit: int, collection: str | None) -> Any:
        found = whole(query, limit, collection)
        text.broken.add("keyword_search")
        return found

    text.keyword_search = first_only  # type: ignore[method-assign]
    answer = await ask(made, executor, q="river", mode="keyword", group="document", k=5)
    assert [hit.document_id for hit in answer.hits] == ["long"]
    assert "the disk is gone" in answer.done.failed_channels["keyword"]
