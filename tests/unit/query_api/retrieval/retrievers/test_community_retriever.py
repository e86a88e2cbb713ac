"""Global questions: communities by their relevance, and the passages that the best ones cite."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import pytest

from indexer.errors import EncoderFailure
from query_api.index.curation_follower import CollectionEdits, Curation, Placed
from query_api.index.search_snapshot import Snapshot
from query_api.retrieval.retrievers.community_retriever import MIN_RELEVANCE, REDUCED, with_mode_of_intent
from query_api.retrieval.search_context import SearchFailed
from schemas.graph_edits import EntityEdit
from schemas.ids import entity_id
from schemas.search import SearchRequest
from tests.support.fakes.text_stores import InMemoryText, Page, WordCounts, world
from tests.support.fixtures.communities import ENGINES, RIVERS, two_themes, view_of
from tests.unit.query_api.retrieval.asking import Answer, ask

STARS = [
    Page("stars", "Binary star", [["A binary star is a system of two stars."], ["They orbit a common centre."]]),
    Page("sirius", "Sirius", [["Sirius is the nearest binary star with a white dwarf."]], ["Sirius"]),
    Page("star", "Star", [["A star is a system of gas that shines by itself."]], ["Star"]),
    Page("code", "Binary code", [["A binary code has two signs, as a system of switches does."]]),
]
VALLEYS = [[f"River {valley}{end}" for end in "xyz"] for valley in "ABCDEFGHIJKL"]
RING = [
    page
    for at, (first, second, third) in enumerate(VALLEYS)
    for next_valley in [VALLEYS[(at + 1) % len(VALLEYS)]]
    for page in (
        Page(f"valley/{at}", f"Valley {at}", [[f"The {first}, the {second} and the {third} meet here."]], VALLEYS[at]),
        Page(f"pass/{at}", f"Pass {at}", [[f"The {first} is near the {next_valley[1]}."]], [first, next_valley[1]]),
    )
]
"""Three rivers a valley, and passes from each to the next: coarse communities hold several."""
THEMES = "What are the main themes of this collection?"
World = tuple[Snapshot, InMemoryText, WordCounts]


def with_communities(pages: Sequence[Page]) -> World:
    snapshot, text, encoder = world(pages)
    return replace(snapshot, communities=view_of(pages)), text, encoder


@pytest.fixture
def themes() -> World:
    return with_communities([*two_themes("a"), *two_themes("b")])


async def asked(themes: World, executor: Executor, q: str, **request: Any) -> Answer:
    return await ask(themes, executor, q, mode="global", **request)


async def test_themes_of_a_collection_are_its_communities_in_turn(themes: World, executor: Executor) -> None:
    answer = await asked(themes, executor, THEMES, collection="a")
    named = [hit.community for hit in answer.hits]
    assert all(each is not None and MIN_RELEVANCE < each.relevance <= 10 for each in named)
    assert {hit.collection for hit in answer.hits} == {"a"}
    first_two = {hit.document_id.split("/")[0] for hit in answer.hits[:2]}
    assert first_two == {"rivers", "engines"}
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert answer.hits[0].channels == ["global"]


async def test_each_hit_holds_the_sentence_that_the_summary_cites(themes: World, executor: Executor) -> None:
    for hit in (await asked(themes, executor, THEMES)).hits:
        assert hit.community is not None
        assert hit.community.sentence in hit.parent_text


@pytest.mark.parametrize(("q", "names", "theme"), [
    ("Summarise everything about the Elbe", RIVERS, "rivers"),
    ("Tell me everything about Wankel", ENGINES, "engines"),
])  # fmt: skip
async def test_a_topic_brings_its_own_communities(
    themes: World, executor: Executor, q: str, names: tuple[str, ...], theme: str
) -> None:
    answer = await asked(themes, executor, q, collection="b")
    first = answer.hits[0]
    assert first.community is not None
    assert first.document_id.startswith(theme)
    assert any(name in first.community.title for name in names)
    assert len({hit.community.id for hit in answer.hits if hit.community}) <= REDUCED


async def test_hits_on_a_topic_are_the_nearest_passages_of_each_community(themes: World, executor: Executor) -> None:
    hits = (await asked(themes, executor, "Everything about the Elbe and the Otto", collection="a", k=50)).hits
    by_community: dict[str, list[str]] = {}
    for hit in hits:
        assert hit.community is not None
        assert hit.community.level in ("coarse", "medium")
        by_community.setdefault(hit.community.title, []).append(hit.document_id.split("/")[0])
    assert sorted(set(map(tuple, map(set, by_community.values())))) == [("engines",), ("rivers",)]
    assert len({hit.passage_id for hit in hits}) == len(hits)


async def test_where_levels_agree_the_coarser_community_stands_for_both(executor: Executor) -> None:
    pages = [replace(page, types=dict.fromkeys(RIVERS, "place")) for page in two_themes("a")]
    snapshot, text, encoder = world(pages)
    view = view_of(pages)
    assert view.rows("a", "medium") == []
    themes = replace(snapshot, communities=view), text, encoder
    hits = (await asked(themes, executor, "Tell me everything about the Elbe")).hits
    assert {hit.document_id.split("/")[0] for hit in hits} == {"rivers"}
    assert {hit.community.level for hit in hits if hit.community} == {"coarse"}


@pytest.mark.parametrize("q", ["Everything about binary stars", "Tell me all about the binary star"])
async def test_topic_in_a_title_brings_what_is_about_it_alone(executor: Executor, q: str) -> None:
    answer = await asked(with_communities(STARS), executor, q)
    assert answer.hits[0].document_id == "stars"
    assert {hit.document_id for hit in answer.hits} == {"stars", "sirius"}
    paths = {hit.document_id: hit.path for hit in answer.hits}
    assert [(step.edge, step.target) for step in paths["stars"]] == [("names", "Binary star")]
    assert paths["sirius"][-1].target == "Sirius"
    assert paths["sirius"][-1].evidence == "Sirius is the nearest binary star with a white dwarf."


async def test_alias_of_a_topic_brings_what_mentions_it(executor: Executor) -> None:
    pages = [*two_themes("wiki"), Page("lock", "Locks", [["A lock is cut. The Elbe has none of them."]], ["Elbe"])]
    snapshot, text, encoder = with_communities(pages)
    edits = CollectionEdits(entities={entity_id("wiki", "elbe"): Placed(EntityEdit(name="Labe"), 0)})
    called = replace(snapshot, curation=Curation({"wiki": edits}))
    hits = (await asked((called, text, encoder), executor, "Everything about the Labe")).hits
    assert {hit.document_id for hit in hits} == {"lock", "rivers/0", "rivers/1", "rivers/2"}
    path = next(hit.path for hit in hits if hit.document_id == "lock")
    assert [(step.edge, step.target) for step in path] == [("names", "Elbe"), ("mentioned_in", "Locks")]
    assert path[-1].evidence == "The Elbe has none of them."


@pytest.mark.parametrize(("q", "mode"), [
    ("What are the main themes?", "global"),
    ("Give me an overview", "global"),
    ("Summarise the points of disagreement", "global"),
    ("Summarise what is known of Wankel", "hybrid"),
    ("the whole collection, all areas", "global"),
    ("cleaning of machines", "hybrid"),
    ("the", "hybrid"),
])  # fmt: skip
async def test_question_that_names_nothing_special_is_global(themes: World, q: str, mode: str) -> None:
    assert (await with_mode_of_intent(SearchRequest(q=q), themes[0])).mode == mode
    assert (await with_mode_of_intent(SearchRequest(q=q, mode="vector"), themes[0])).mode == "vector"
    assert (await with_mode_of_intent(SearchRequest(q=q), replace(themes[0], communities=None))).mode == "hybrid"


async def test_themes_go_on_with_those_of_finer_levels(executor: Executor) -> None:
    hits = (await asked(with_communities(RING), executor, THEMES, k=20)).hits
    levels = [hit.community.level for hit in hits if hit.community]
    assert levels[0] == "coarse"
    assert set(levels) > {"coarse"}


async def test_topic_without_a_concept_begins_with_what_holds_its_words(executor: Executor) -> None:
    pages = [
        *two_themes("wiki"),
        Page("oars", "Boats", [["Sharp knives rest beside the oars."], ["Sharpening knives takes a stone."]]),
    ]
    hits = (await asked(with_communities(pages), executor, "Everything about sharpening knives")).hits
    assert hits[0].text == "Sharpening knives takes a stone."
    assert hits[0].community is None
    assert [(step.edge, step.evidence) for step in hits[0].path] == [("matches", "Sharpening knives takes a stone.")]


async def test_filters_hold_for_a_topic(executor: Executor) -> None:
    answer = await asked(
        with_communities(STARS), executor, "Everything about binary stars", filter=("document=sirius",)
    )
    assert [hit.document_id for hit in answer.hits] == ["sirius"]


async def test_filters_hold(themes: World, executor: Executor) -> None:
    answer = await asked(themes, executor, THEMES, filter=("document=rivers/1",))
    assert {hit.document_id for hit in answer.hits} == {"rivers/1"}


async def test_pages_make_one_order(themes: World, executor: Executor) -> None:
    whole = [hit.passage_id for hit in (await asked(themes, executor, THEMES, k=6)).hits]
    second = await asked(themes, executor, THEMES, k=3, offset=3)
    assert [hit.passage_id for hit in second.hits] == whole[3:]
    assert [hit.rank for hit in second.hits] == [4, 5, 6][: len(second.hits)]


async def test_words_decide_where_the_question_was_not_embedded(themes: World, executor: Executor) -> None:
    snapshot, text, _ = themes
    answer = await asked((snapshot, text, BrokenEncoder()), executor, "Everything about the Elbe")  # type: ignore[arg-type]
    assert answer.hits[0].document_id.startswith("rivers")
    assert "vector" in answer.done.failed_channels


async def test_without_communities_the_search_fails_with_the_reason(themes: World, executor: Executor) -> None:
    snapshot, text, encoder = themes
    with pytest.raises(SearchFailed, match="no communities are found yet"):
        await asked((replace(snapshot, communities=None), text, encoder), executor, THEMES)


class BrokenEncoder:
    def encode_queries(self, texts: object) -> object:
        raise EncoderFailure("it is down")
