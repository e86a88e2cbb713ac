"""A first place that leads by its text: told before the graph is followed, and the same however it is asked for."""

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import pytest

from query_api.channels.graph import graph_channel
from query_api.searching import following
from query_api.searching.fusing import Place
from query_api.searching.results.leading import LEAD, leading_place, text_may_decide
from query_api.searching.steps import SearchSettings
from schemas.api import Hit
from schemas.frames import Stage
from schemas.ids import DocumentKey
from schemas.search_request import SearchRequest
from tests.unit.query_api.in_memory_text import Page, world
from tests.unit.query_api.searching.asking import PAGES, QUESTION, SIDE_BY_SIDE, Answer, ask

WITHOUT = SearchSettings(lead=None)
ALL = {"vector", "keyword", "structured", "graph"}


def by_text(*scores: float) -> list[Place]:
    return [Place(f"p{at}", None, score, {}, {}, DocumentKey("c", f"d{at}")) for at, score in enumerate(scores)]


def before_the_graph(answer: Answer) -> list[int]:
    """The ranks of the hits that came before the stage of the graph."""
    parts = answer.parts
    [graph] = [at for at, part in enumerate(parts) if isinstance(part, Stage) and part.name == "graph"]
    return [part.rank for part in parts[:graph] if isinstance(part, Hit)]


@pytest.mark.parametrize(
    ("scores", "leads"),
    [
        ((1.0, 0.89), True),
        ((1.0, 0.91), False),
        ((0.5,), False),
        ((0.0, 0.0), False),
        ((-0.1, -0.5), False),
        ((), False),
    ],
)
def test_a_lead_is_a_tenth_of_the_first_score(scores: tuple[float, ...], leads: bool) -> None:
    found = by_text(*scores)
    assert leading_place(found, LEAD) == (found[0] if leads else None)


@pytest.mark.parametrize(
    "asked",
    [
        {"mode": "graph"},
        {"mode": "rerank"},
        {"mode": "vector"},
        {"fusion": "rrf"},
        {"fusion": "weighted"},
        {"graph_weight": 2.0},
    ],
)
def test_only_what_was_measured_is_decided_by_text(asked: dict[str, Any]) -> None:
    assert text_may_decide(SearchRequest(q=QUESTION), ALL, set())
    assert not text_may_decide(SearchRequest(q=QUESTION, **asked), ALL, set())


@pytest.mark.parametrize("missing", ["vector", "keyword", "compare"])
def test_nothing_is_decided_by_half_of_the_text(missing: str) -> None:
    assert not text_may_decide(SearchRequest(q=QUESTION), ALL, {missing})
    assert text_may_decide(SearchRequest(q=QUESTION), ALL, {"structured", "graph"})
    if missing != "compare":
        assert not text_may_decide(SearchRequest(q=QUESTION), ALL - {missing}, set())


@pytest.mark.parametrize("at_hand", [True, False])
async def test_the_first_hit_of_a_clear_question_comes_before_the_graph_and_tells_of_its_text_alone(
    executor: Executor, at_hand: bool
) -> None:
    snapshot, text, words = world(PAGES)
    answer = await ask((replace(snapshot, at_hand=at_hand), text, words), executor, collection="wiki")
    assert before_the_graph(answer) == [1]
    first, second = answer.hits[:2]
    assert (first.title, first.path, first.channels) == ("Alpha Film", [], ["vector", "keyword"])
    assert first.score == pytest.approx(first.scores["vector"] + 0.0136 * first.scores["keyword"])
    assert first.confidence is not None
    assert "graph" in second.channels
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


async def test_where_two_are_as_good_by_text_all_hits_wait_for_the_graph(executor: Executor) -> None:
    answer = await ask(world(SIDE_BY_SIDE), executor, q="is there a film")
    assert len(answer.hits) == 2
    assert before_the_graph(answer) == []


async def test_the_others_stand_as_they_would_without_it(executor: Executor) -> None:
    made = world(PAGES)
    led, unled = await ask(made, executor), await ask(made, executor, settings=WITHOUT)
    first = led.hits[0].passage_id
    assert before_the_graph(led) == [1]
    assert before_the_graph(unled) == []
    without_it = [[hit.passage_id for hit in each.hits if hit.passage_id != first] for each in (led, unled)]
    assert without_it[0] == without_it[1]


@pytest.mark.parametrize("group", ["passage", "document", "chunk"])
async def test_pages_agree_on_what_leads(executor: Executor, group: str) -> None:
    made = world(PAGES)
    whole = await ask(made, executor, group=group)
    assert before_the_graph(whole) == [1]
    one_by_one = [await ask(made, executor, group=group, k=1, offset=at) for at in range(len(whole.hits))]
    assert [hit for page in one_by_one for hit in page.hits] == whole.hits
    assert [before_the_graph(page) for page in one_by_one] == [[1], *([[]] * (len(whole.hits) - 1))]


async def test_passages_of_one_document_keep_each_other_from_leading_unless_documents_are_asked_for(
    executor: Executor,
) -> None:
    made = world(
        [
            Page("weir", "Weir", [["A weir holds the river back."], ["A weir holds the river back again."]]),
            Page("boat", "Boat", [["A boat is on the river."]]),
        ]
    )
    question = "what holds the river back"
    assert before_the_graph(await ask(made, executor, q=question)) == []
    answer = await ask(made, executor, q=question, group="document")
    assert before_the_graph(answer) == [1]
    assert [hit.document_id for hit in answer.hits] == ["weir", "boat"]


async def test_long_pages_and_short_ones_see_the_same_lead_where_one_document_fills_the_first_candidates(
    executor: Executor,
) -> None:
    """The second document is found only by the deeper lists of a long page."""
    long = Page("long", "Rivers", [[f"A river, part {part}."] for part in range(70)])
    made = world([long, Page("brook", "Brook", [["Water between banks, and little of it."]])])
    short = await ask(made, executor, q="a river", group="document")
    whole = await ask(made, executor, q="a river", group="document", k=100)
    assert (before_the_graph(short), before_the_graph(whole)) == ([], [])
    assert short.hits == whole.hits


class ByWay:
    """Says of what leads by its text one thing, of all others another."""

    def __init__(self, led: float, others: float) -> None:
        self._led, self._others = led, others

    def probabilities(self, way: str, features: Any) -> Any:
        return features[:, 0] * 0 + (self._led if way == "led" else self._others)


async def test_what_is_not_likely_enough_by_its_text_is_left_to_the_graph(executor: Executor) -> None:
    made = world(PAGES)
    likely = await ask(made, executor, settings=SearchSettings(judge=ByWay(0.9, 0.1)), min_confidence=0.5)
    assert (before_the_graph(likely), [hit.rank for hit in likely.hits]) == ([1], [1])
    unlikely = await ask(made, executor, settings=SearchSettings(judge=ByWay(0.1, 0.9)), min_confidence=0.5)
    usual = await ask(made, executor, settings=WITHOUT)
    assert before_the_graph(unlikely) == []
    assert [hit.passage_id for hit in unlikely.hits] == [hit.passage_id for hit in usual.hits]


async def test_where_duplicates_go_the_first_hit_waits_for_those_it_has_to_tell_of(executor: Executor) -> None:
    copies = [*PAGES, Page("copy", "River", [["Lisbon lies on the river Tagus."]])]
    kept = await ask(world(copies), executor)
    answer = await ask(world(copies), executor, duplicates="exact")
    assert before_the_graph(kept) == [1]
    assert before_the_graph(answer) == []
    assert answer.hits[0] == kept.hits[0]
    assert sum(len(hit.duplicates) for hit in answer.hits) == 1


async def test_the_first_hit_is_explained_and_shown_in_its_context(executor: Executor) -> None:
    snapshot, text, words = world(PAGES)
    made = replace(snapshot, at_hand=True), text, words
    answer = await ask(made, executor, explain=True, context="section", collection="wiki")
    assert before_the_graph(answer) == [1]
    factors = answer.hits[0].factors
    assert factors is not None
    assert (factors.entity, factors.relationship) == (1.0, 0.0), "the question names it; no graph was followed"
    assert answer.hits[0].context_text


async def test_a_graph_that_fails_afterwards_takes_nothing_back(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world(PAGES)
    whole = await ask(made, executor)

    def broken(*asked: object, **how: object) -> object:
        made[1].broken.add("compare_words")
        return graph_channel(*asked, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(following, "graph_channel", broken)
    answer = await ask(made, executor)
    assert "graph" in answer.done.failed_channels
    assert answer.hits[0] == whole.hits[0]
    assert sorted(hit.rank for hit in answer.hits) == list(range(1, len(answer.hits) + 1))


async def test_parts_of_a_question_are_merged_as_if_nothing_led(executor: Executor) -> None:
    made = world(PAGES)
    question = "Where was Jane Doe born, and where does Lisbon lie?"
    led = await ask(made, executor, q=question, decompose=True)
    unled = await ask(made, executor, q=question, decompose=True, settings=WITHOUT)
    assert led.hits == unled.hits
    assert led.hits[0].parts
