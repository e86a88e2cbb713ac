"""The same question by each way through the graph."""

from concurrent.futures import Executor
from typing import get_args

import pytest

from schemas.search_request import GraphMethod
from tests.unit.query_api.in_memory_text import world
from tests.unit.query_api.searching.asking import PAGES, ask

METHODS = get_args(GraphMethod)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mode", ["graph", "hybrid", "rerank"])
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


@pytest.mark.parametrize("method", METHODS)
async def test_without_any_passage_to_begin_at_nothing_is_found(executor: Executor, method: str) -> None:
    answer = await ask(world(PAGES), executor, mode="graph", collection="nobody", graph_method=method)
    assert answer.hits == []
