"""Searches whose first hits a model puts into another order: which hits, on which pages, and what when it fails."""

import threading
from concurrent.futures import Executor
from typing import Any

import pytest

from query_api.rerankers import RerankerUnavailable
from query_api.rerankers.reranker import ServedReranker
from query_api.retrieval.pipeline import wants_reranker
from query_api.retrieval.search_context import SearchSettings
from schemas.search import SearchRequest
from tests.support.fakes.reranker import StubReranker, served
from tests.support.fakes.text_stores import PATIENT, Page, world
from tests.unit.query_api.retrieval.asking import Answer, ask

RIVERS = [
    Page(f"r{at:02}", f"River {at}", [[f"The river has {at} bends.", f"Bend {at} is wide."]], metadata={"even": at % 2})
    for at in range(40)
]
QUESTION = "river bends"
DEPTH = 10


def settings(reranker: ServedReranker | None) -> SearchSettings:
    return SearchSettings(budgets=PATIENT, reranker=reranker)


def last_first(question: str, text: str) -> float:
    """The highest number in the title first."""
    return float(text.partition(".")[0].removeprefix("River "))


async def asked(executor: Executor, by: ServedReranker | None, q: str = QUESTION, **request: Any) -> Answer:
    return await ask(world(RIVERS), executor, q=q, settings=settings(by), **request)


def ids(answer: Answer) -> list[str]:
    return [hit.document_id for hit in answer.hits]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword", "graph"])
async def test_the_first_hits_stand_by_the_models_scores_and_the_rest_as_before(executor: Executor, mode: str) -> None:
    stub = StubReranker(last_first)
    question = "River 7 and River 3" if mode == "graph" else QUESTION
    plain = await asked(executor, None, question, mode=mode, k=30)
    answer = await asked(executor, served(stub, depth=DEPTH), question, mode=mode, k=30)
    read = min(DEPTH, len(plain.hits))
    assert read > 1
    assert ids(answer)[:read] == sorted(ids(plain)[:read], reverse=True) != ids(plain)[:read]
    assert ids(answer)[read:] == ids(plain)[read:]
    assert [hit.scores.get("rerank") for hit in answer.hits] == [
        *(float(name[1:]) for name in ids(answer)[:read]), *[None] * (len(answer.hits) - read)
    ]  # fmt: skip
    assert [hit.rank for hit in answer.hits] == list(range(1, len(answer.hits) + 1))
    assert answer.stages["rerank"].candidates == read
    assert answer.done.timings["rerank"] == answer.stages["rerank"].seconds
    assert answer.done.failed_channels == {}


async def test_it_reads_the_question_with_titles_and_passages_once(executor: Executor) -> None:
    stub = StubReranker(lambda question, text: 1.0)
    answer = await asked(executor, served(stub, depth=3), mode="keyword", k=3)
    [(question, texts)] = stub.asked
    assert question == QUESTION
    assert texts == [f"{hit.title}. {hit.parent_text}" for hit in answer.hits]
    assert len(texts) == 3


async def test_of_hits_that_are_chunks_it_reads_these(executor: Executor) -> None:
    stub = StubReranker(lambda question, text: "wide" in text)
    answer = await asked(executor, served(stub, depth=DEPTH), mode="vector", group="chunk", k=DEPTH)
    assert all(text.count(".") == 2 for text in stub.asked[0][1]), "a title and one sentence"
    assert "rerank" in answer.hits[0].scores
    answer = await asked(executor, served(stub, depth=80), q="wide", mode="vector", group="chunk", k=80)
    assert [hit.text.endswith("wide.") for hit in answer.hits] == [True] * 40 + [False] * 40


async def test_what_a_hit_said_before_stays_but_for_its_place(executor: Executor) -> None:
    def told(answer: Answer) -> dict[str, Any]:
        left_out = {"rank", "scores"}
        return {hit.document_id: hit.model_dump(exclude=left_out) for hit in answer.hits}

    stub = StubReranker(last_first)
    plain = await asked(executor, None, mode="vector", k=30, explain=True)
    answer = await asked(executor, served(stub, depth=DEPTH), mode="vector", k=30, explain=True)
    assert told(answer) == told(plain)


async def test_ties_stand_as_before_and_are_no_reason_to_move(executor: Executor) -> None:
    plain = await asked(executor, None, mode="keyword", k=20)
    best = plain.hits[4]
    stub = StubReranker(lambda question, text: text.startswith(f"{best.title}."))
    answer = await asked(executor, served(stub, depth=DEPTH), mode="keyword", k=20)
    others = [name for name in ids(plain) if name != best.document_id]
    assert ids(answer) == [best.document_id, *others] != ids(plain)


@pytest.mark.parametrize("group", ["passage", "document", "chunk"])
@pytest.mark.parametrize(
    "how", [{}, {"duplicates": "exact"}, {"diversity": "even", "max_per_value": 15}, {"min_confidence": 0.001}]
)
async def test_pages_are_one_long_page(executor: Executor, group: str, how: dict[str, Any]) -> None:
    stub = StubReranker(last_first)
    reranker = served(stub, depth=DEPTH)
    whole = await asked(executor, reranker, group=group, k=200, **how)
    assert len(whole.hits) > 20
    assert "rerank" in whole.hits[DEPTH - 1].scores
    pages: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        page = await asked(executor, reranker, group=group, k=7, offset=offset, **how)
        pages += [(hit.rank, hit.chunk_id, hit.scores, hit.confidence) for hit in page.hits]
        offset = page.done.next_offset
    assert pages == [(hit.rank, hit.chunk_id, hit.scores, hit.confidence) for hit in whole.hits]


async def test_a_page_behind_all_that_is_read_needs_no_model(executor: Executor) -> None:
    stub = StubReranker(last_first)
    answer = await asked(executor, served(stub, depth=DEPTH), k=5, offset=DEPTH)
    assert len(answer.hits) == 5
    assert stub.asked == []
    assert "rerank" not in answer.stages


async def test_of_fewer_hits_than_it_may_read_all_are_read(executor: Executor) -> None:
    stub = StubReranker(last_first)
    answer = await asked(executor, served(stub), q="7 8", mode="keyword")
    assert ids(answer) == ["r08", "r07"]
    assert answer.stages["rerank"].candidates == 2
    nothing = await asked(executor, served(stub), q="quokka", mode="keyword")
    assert nothing.hits == []
    assert nothing.done.failed_channels == {}
    assert nothing.stages["rerank"].candidates == 0


async def test_a_question_of_several_parts_is_re_ordered_once_they_are_merged(executor: Executor) -> None:
    question = "What is the difference between River 7 and River 31?"
    stub = StubReranker(last_first)
    answer = await asked(executor, served(stub, depth=DEPTH), question, decompose=True, k=20)
    assert answer.parts[0].understanding.decomposed
    [(read_with, _)] = stub.asked
    assert read_with == question
    assert ids(answer)[:DEPTH] == sorted(ids(answer)[:DEPTH], reverse=True)
    assert {"r07", "r31"} <= set(ids(answer)[:DEPTH])
    assert all("rerank" in hit.scores for hit in answer.hits[:DEPTH])
    assert answer.hits[ids(answer).index("r31")].parts


@pytest.mark.parametrize("score", [float("nan"), None], ids=repr)
async def test_what_is_no_score_leaves_the_order_and_is_told(executor: Executor, score: Any) -> None:
    plain = await asked(executor, None, mode="vector")
    answer = await asked(executor, served(StubReranker(lambda question, text: score)), mode="vector")
    assert [hit.model_dump() for hit in answer.hits] == [hit.model_dump() for hit in plain.hits]
    reason = "The re-ranker gave something other than a number for each of 30 texts."
    assert answer.done.failed_channels == {"rerank": reason}
    assert answer.stages["rerank"].error == reason


async def test_a_late_model_leaves_the_order_and_is_told(executor: Executor) -> None:
    stub = StubReranker(last_first)
    stub.hold = threading.Event()
    plain = await asked(executor, None, mode="vector")
    try:
        answer = await asked(executor, served(stub, budget_seconds=0.02), mode="vector")
    finally:
        stub.hold.set()
    assert ids(answer) == ids(plain)
    assert answer.done.failed_channels == {"rerank": "no answer within 0.02 s"}


async def test_a_broken_model_and_one_that_is_being_loaded_cost_nothing_else(executor: Executor) -> None:
    plain = await asked(executor, None, mode="vector", decompose=True)
    away = StubReranker()
    away.failure = RerankerUnavailable("It is away.")
    for reranker, reason in (
        (served(away), "It is away."),
        (served(StubReranker(), loaded=False), "The re-ranker is being loaded."),
    ):
        answer = await asked(executor, reranker, mode="vector", decompose=True)
        assert ids(answer) == ids(plain)
        assert answer.done.failed_channels == {"rerank": reason}


async def test_texts_that_cannot_be_read_for_it_leave_the_order(executor: Executor) -> None:
    made = world(RIVERS)
    _, text, _ = made
    read, read_before = text.passages, []

    def broken_at_first(passage_ids: Any) -> Any:
        read_before.append(passage_ids)
        text.broken = {"passages"} if len(read_before) == 1 else set()
        return read(passage_ids)

    text.passages = broken_at_first  # type: ignore[method-assign]
    answer = await ask(made, executor, q=QUESTION, mode="vector", settings=settings(served(StubReranker())))
    assert len(answer.hits) == 10
    assert answer.done.failed_channels == {"rerank": "Could not passages: the disk is gone"}


async def test_what_failed_besides_is_told_beside_it(executor: Executor) -> None:
    made = world(RIVERS)
    made[1].broken.add("vector_search")
    stub = StubReranker(lambda question, text: float("nan"))
    answer = await ask(made, executor, q=QUESTION, settings=settings(served(stub)))
    assert set(answer.done.failed_channels) == {"vector", "rerank"}


async def test_it_is_used_where_there_is_one_unless_the_request_says_otherwise(executor: Executor) -> None:
    reranker = served(StubReranker(last_first), budget_seconds=7.0)
    plain = await asked(executor, None)
    for wanted, used in ((None, True), (True, True), (False, False)):
        answer = await asked(executor, reranker, reranker=wanted)
        assert ("rerank" in answer.stages) is used
        assert answer.parts[0].budget_seconds == PATIENT.total_seconds + (7.0 if used else 0.0)
    assert [hit.model_dump() for hit in answer.hits] == [hit.model_dump() for hit in plain.hits]


def test_modes_that_have_an_order_of_their_own_do_without() -> None:
    for mode, used in {"hybrid": True, "vector": True, "keyword": True, "graph": True, "graph_rerank": False}.items():
        assert wants_reranker(SearchRequest(q="?", mode=mode)) is used  # type: ignore[arg-type]
        assert not wants_reranker(SearchRequest(q="?", mode=mode, reranker=False))  # type: ignore[arg-type]
    assert not wants_reranker(SearchRequest(q="?", mode="structured"))


async def test_where_a_model_is_to_read_the_first_hits_none_is_sent_before(executor: Executor) -> None:
    """Without it the first hit may stand by its text alone, and come before the graph is followed."""
    answer = await asked(executor, served(StubReranker(last_first)), q="river 7")
    kinds = [type(part).__name__ for part in answer.parts]
    assert kinds.index("Hit") > max(at for at, kind in enumerate(kinds) if kind == "Stage")
    assert list(answer.stages)[-1] == "rerank"
