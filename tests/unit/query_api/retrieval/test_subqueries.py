"""Questions of several parts, each searched by itself and merged."""

from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any

import pytest

from query_api.retrieval.fusion import DEPTH, RankedPassage
from query_api.retrieval.search_context import SearchFailed
from query_api.retrieval.subqueries import merge, subquery_requests
from schemas.frames import Meta
from schemas.ids import DocumentKey
from schemas.search import SearchRequest
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import PAGES, ask

WATERS = [
    Page("weir", "Weir", [["A weir holds a river back."]], metadata={"kind": "wall"}),
    Page("dam", "Dam", [["A dam closes a valley."]], metadata={"kind": "wall"}),
    Page("both", "Walls", [["A weir is lower than a dam."]], metadata={"kind": "essay"}),
    *(Page(f"boat{at:03}", f"Boat {at}", [[f"A boat goes down river {at}."]]) for at in range(90)),
    *(Page(f"mill{at:03}", f"Mill {at}", [[f"A mill stands in valley {at}."]]) for at in range(90)),
]
QUESTION = "What is the difference between a weir on the river and a dam in the valley?"
PARTS = ["a weir on the river", "a dam in the valley"]


def order(names: Iterable[str]) -> list[RankedPassage]:
    return [RankedPassage(name, None, 1.0, {}, {}, DocumentKey("c", name)) for name in names]


def test_orders_are_merged_by_rank_with_a_bonus_for_what_several_parts_found() -> None:
    """c: (1/8 + 1/6) x 1.25 = .3646; a: 1/6 + 1/6 = .3333; b: 1/7 = .1429; d: 1/7, behind b by its name."""
    found = merge([order("a"), order("abc"), order("cd")])
    assert [(one.passage.passage_id, one.passage.score) for one in found] == [
        ("c", 1.0), ("a", pytest.approx(0.9143, abs=1e-4)), ("b", pytest.approx(0.3918, abs=1e-4)),
        ("d", pytest.approx(0.3918, abs=1e-4)),
    ]  # fmt: skip
    assert [(one.search, dict(one.ranks)) for one in found] == [
        (2, {1: 3, 2: 1}), (0, {0: 1, 1: 1}), (1, {1: 2}), (2, {2: 2}),
    ]  # fmt: skip


def test_what_two_of_three_parts_found_has_half_the_bonus_and_the_whole_question_is_no_part() -> None:
    """a: (1/6 + 1/6) x 1.125 = .375; c: 1/6 + 1/6 = .3333."""
    found = merge([order("c"), order("a"), order("a"), order("c")])
    assert [(one.passage.passage_id, one.passage.score) for one in found] == [("a", 1.0), ("c", pytest.approx(8 / 9))]


def test_what_is_no_answer_to_a_part_has_no_bonus_for_it() -> None:
    """Tenth in one part and first in the other: (1/15 + 1/6) x 1.25; eleventh: 1/16 + 1/6."""
    tenth, eleventh = (merge([[], order("bcdefghijklm"[:above] + "a"), order("a")])[0] for above in (9, 10))
    behind = [merge([[], order("bcdefghijklm"[:above] + "a"), order("a")])[1].passage.score for above in (9, 10)]
    assert (tenth.passage.passage_id, eleventh.passage.passage_id) == ("a", "a")
    assert behind == [
        pytest.approx((1 / 6) / ((1 / 15 + 1 / 6) * 1.25)), pytest.approx((1 / 6) / (1 / 16 + 1 / 6)),
    ]  # fmt: skip


def test_what_answers_a_part_best_stands_before_what_is_middling_for_all() -> None:
    """m, (1/7 + 1/7 + 1/7) x 1.25, is above a, 1/7 + 1/6, and b, 1/8 + 1/6, and stands behind them all the same."""
    found = merge([order("xmab"), order("am"), order("bm")])
    assert [one.passage.passage_id for one in found] == ["a", "b", "m", "x"]
    scores = [one.passage.score for one in found]
    assert scores == sorted(scores, reverse=True)


def test_longer_orders_only_append() -> None:
    one = [f"p{at:04}" for at in range(1_000)]
    other = [f"p{(at * 37) % 1_000:04}" for at in range(1_000)]
    orders = [order(one), order(other)]
    whole = merge([*orders, orders[0]])
    for depth in (DEPTH, 4 * DEPTH):
        short = merge([each[:depth] for each in [*orders, orders[0]]])
        assert short == whole[: len(short)]
    assert merge([[], [], []]) == []


def test_only_a_question_that_falls_into_parts_is_searched_part_by_part() -> None:
    asked = SearchRequest(q=QUESTION, decompose=True, k=7, offset=20, max_per_document=1, duplicates="exact")
    parts = subquery_requests(asked, PARTS)
    assert [(each.q, each.offset, each.max_per_document, each.duplicates) for each in parts] == [
        (question, 0, None, "keep") for question in (QUESTION, *PARTS)
    ]
    assert subquery_requests(asked, []) == []
    assert subquery_requests(asked, ["the same", "the same"]) == []
    assert subquery_requests(SearchRequest(q=QUESTION), PARTS) == []


async def test_each_part_is_answered_and_hits_tell_which_part_found_them(executor: Executor) -> None:
    answer = await ask(world(WATERS), executor, q=QUESTION, decompose=True, k=3)
    assert {hit.document_id for hit in answer.hits} == {"weir", "dam", "both"}
    (both,) = (hit for hit in answer.hits if hit.document_id == "both")
    assert set(both.parts) == set(PARTS)
    by_document = {hit.document_id: hit for hit in answer.hits}
    assert by_document["weir"].parts[PARTS[0]] == 1
    assert by_document["dam"].parts[PARTS[1]] == 1
    assert [hit.rank for hit in answer.hits] == [1, 2, 3]
    assert answer.done.failed_channels == {}
    meta = answer.parts[0]
    assert isinstance(meta, Meta)
    assert meta.understanding is not None
    assert (meta.understanding.decomposed, list(meta.understanding.parts)) == (True, PARTS)
    assert set(answer.stages) == {"embed", "vector", "keyword", "structured", "graph"}


async def test_unless_asked_and_for_a_question_of_one_piece_nothing_changes(executor: Executor) -> None:
    made = world(PAGES)
    whole, asked = await ask(made, executor), await ask(made, executor, decompose=True)
    assert [hit.model_dump() for hit in asked.hits] == [hit.model_dump() for hit in whole.hits]
    assert asked.parts[0].understanding.decomposed is False
    plain = await ask(world(WATERS), executor, q=QUESTION, k=3)
    assert [hit.parts for hit in plain.hits] == [{}, {}, {}]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"group": "document"},
        {"duplicates": "exact"},
        {"max_per_document": 1, "mode": "keyword"},
        {"diversity": "kind", "max_per_value": 1, "mode": "vector"},
    ],
)
async def test_pages_are_one_long_page(executor: Executor, how: dict[str, Any]) -> None:
    made = world(WATERS)
    whole = await ask(made, executor, q=QUESTION, decompose=True, k=300, **how)
    assert len(whole.hits) > 100
    pages = []
    offset: int | None = 0
    while offset is not None:
        page = await ask(made, executor, q=QUESTION, decompose=True, k=35, offset=offset, **how)
        pages += [(hit.rank, hit.chunk_id, hit.score, hit.parts, hit.confidence) for hit in page.hits]
        offset = page.done.next_offset
    assert pages == [(hit.rank, hit.chunk_id, hit.score, hit.parts, hit.confidence) for hit in whole.hits]
    assert whole.done.next_offset is None


async def test_limits_hold_over_all_parts_together(executor: Executor) -> None:
    answer = await ask(
        world(WATERS),
        executor,
        q=QUESTION,
        decompose=True,
        diversity="kind",
        max_per_value=1,
        filter=["kind=wall|essay"],
    )
    assert sorted(hit.metadata["kind"] for hit in answer.hits) == ["essay", "wall"]


async def test_a_channel_that_fails_is_told_with_the_part(executor: Executor) -> None:
    snapshot, text, encoder = world(WATERS)
    text.broken = {"vector_search"}
    answer = await ask((snapshot, text, encoder), executor, q=QUESTION, decompose=True)
    assert answer.hits
    assert answer.done.failed_channels["vector"].startswith("For 'What is the difference between")
    text.broken = {"vector_search", "keyword_search"}
    with pytest.raises(SearchFailed):
        await ask((snapshot, text, encoder), executor, q=QUESTION, decompose=True, channels="vector,keyword")
