"""Global questions: communities by their relevance, and the passages that the best ones cite."""

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import pytest

from indexer.errors import EncoderFailure
from query_api.index.search_snapshot import Snapshot
from query_api.retrieval.retrievers.community_retriever import MIN_RELEVANCE, REDUCED
from query_api.retrieval.search_context import SearchFailed
from tests.support.fakes.text_stores import InMemoryText, WordCounts, world
from tests.support.fixtures.communities import ENGINES, RIVERS, two_themes, view_of
from tests.unit.query_api.retrieval.asking import Answer, ask

THEMES = "What are the main themes of this collection?"
World = tuple[Snapshot, InMemoryText, WordCounts]


@pytest.fixture
def themes() -> World:
    pages = [*two_themes("a"), *two_themes("b")]
    snapshot, text, encoder = world(pages)
    return replace(snapshot, communities=view_of(pages)), text, encoder


async def asked(themes: World, executor: Executor, q: str, **request: Any) -> Answer:
    return await ask(themes, executor, q, mode="global", **request)


async def test_themes_of_a_collection_are_its_communities_in_turn(themes: World, executor: Executor) -> None:
    answer = await asked(themes, executor, THEMES, collection="a")
    named = [hit.community for hit in answer.hits]
    assert all(each is not None and each.level == "coarse" and MIN_RELEVANCE < each.relevance <= 10 for each in named)
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
