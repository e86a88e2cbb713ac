"""The same question by each way through the graph."""

from concurrent.futures import Executor
from typing import get_args

import pytest

from schemas.choices import GraphMethod
from schemas.errors import MalformedFilter
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import PAGES, ask

METHODS = get_args(GraphMethod)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mode", ["graph", "hybrid", "graph_rerank"])
async def test_each_leads_to_the_answer_and_tells_its_way(executor: Executor, mode: str, method: str) -> None:
    answer = await ask(world(PAGES), executor, mode=mode, collection="wiki", graph_method=method)
    jane = next(hit for hit in answer.hits if hit.title == "Jane Doe")
    assert {hit.collection for hit in answer.hits} == {"wiki"}
    assert jane.scores["graph"] > 0
    assert jane.path[0].source == "question"
    assert jane.path[-1].target == "Jane Doe"
    assert answer.stages["graph"].candidates
    assert not answer.done.failed_channels


@pytest.mark.parametrize("method", METHODS)
async def test_a_filter_holds_by_each(executor: Executor, method: str) -> None:
    answer = await ask(
        world(PAGES), executor, mode="graph", collection="wiki", graph_method=method, filter=["document!=alpha"]
    )
    assert "Alpha Film" not in answer.titles
    assert "Jane Doe" in answer.titles


PROPOSALS = [
    Page(
        "1",
        "PEP 1",
        [["How proposals are made."]],
        facts=[("PEP 1", "requires", "PEP 2"), ("PEP 1", "is_a", "PEP 3")],
    ),
    Page("2", "PEP 2", [["Nothing but rivers."]]),
    Page("3", "PEP 3", [["Nothing but lakes."]]),
    Page("4", "Kept", [["How proposals are kept."]]),
    Page("5", "Read", [["How proposals are read."]]),
]


@pytest.mark.parametrize(
    ("edges", "found"),
    [
        ("statement", {"PEP 2", "PEP 3"}),
        ("requires", {"PEP 2"}),
        ("is_a", {"PEP 3"}),
        (["requires", "is_a,link"], {"PEP 2", "PEP 3"}),
        ("link", set()),
    ],
)
@pytest.mark.parametrize("method", METHODS)
async def test_statements_of_the_predicates_that_are_asked_for_are_followed(
    executor: Executor, method: str, edges: str | list[str], found: set[str]
) -> None:
    answer = await ask(
        world(PROPOSALS), executor, "How are proposals made?", mode="graph", graph_method=method, edges=edges
    )
    assert {hit.title for hit in answer.hits} & {"PEP 2", "PEP 3"} == found


async def test_an_edge_that_is_not_there_is_refused_with_those_that_are(executor: Executor) -> None:
    with pytest.raises(MalformedFilter, match=r"'need' is neither a kind .* takes named, .* is_a, requires"):
        await ask(world(PROPOSALS), executor, edges="need")
    with pytest.raises(MalformedFilter, match="of statements none yet"):
        await ask(world(PAGES), executor, edges="need")


@pytest.mark.parametrize("method", ["hop", "pagerank"])
async def test_edges_between_chunks_are_refused_where_they_are_not_followed(executor: Executor, method: str) -> None:
    with pytest.raises(MalformedFilter, match="'similar_to' is followed by graph_method=expansion alone"):
        await ask(world(PROPOSALS), executor, graph_method=method, edges="link,similar_to")


@pytest.mark.parametrize("method", METHODS)
async def test_without_any_passage_to_begin_at_nothing_is_found(executor: Executor, method: str) -> None:
    answer = await ask(world(PAGES), executor, mode="graph", collection="nobody", graph_method=method)
    assert answer.hits == []
