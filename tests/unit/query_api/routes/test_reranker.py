"""A service with a re-ranker, and one without: what is asked of it, and what is said where there is none."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from query_api import service_context as service_module
from query_api.rerankers import RerankerRefused
from query_api.rerankers.reranker import ServedReranker
from query_api.service_health import readiness
from query_api.settings import RerankerSettings
from tests.support.fakes.engine import SearchingEngine, make_generation
from tests.support.fakes.model_endpoints import RerankingEndpoint, reranking_endpoint
from tests.support.fakes.reranker import StubReranker
from tests.support.fakes.service import Running, events, problem, service_over
from tests.support.waiting import eventually
from tests.unit.query_api.routes.library import found, library, note

NOTES = [note(1, "The river is high."), note(2, "River, river, river."), note(3, "High water in the river is high.")]


@pytest.fixture
def endpoint() -> Iterator[RerankingEndpoint]:
    with reranking_endpoint() as running:
        yield running


@asynccontextmanager
async def reranking(data_dir: Path, endpoint: RerankingEndpoint) -> AsyncIterator[Running]:
    make_generation(data_dir)
    engine = SearchingEngine()
    engine.reader.put(*NOTES, p0=(7, -1))
    async with service_over(data_dir, engine, reranker=endpoint.settings()) as running:
        assert running.service.reranker is not None
        reranker = running.service.reranker
        await eventually(lambda: reranker.name)
        yield running


async def test_where_there_is_none_asking_for_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        for accept in ("application/json", "text/event-stream"):
            refused = await running.http.get(
                "/v1/search", params={"q": "river", "reranker": True}, headers={"Accept": accept}
            )
            assert refused.status_code == 422
            assert problem(refused)["detail"].startswith(
                "No re-ranker is configured: set THALWEG_RERANKER__PROVIDER to `cross-encoder` or `endpoint`"
            )
        assert (await found(running, reranker=False))["failed_channels"] == {}


async def test_where_there_is_one_it_orders_the_first_hits_unless_told_not_to(
    tmp_path: Path, endpoint: RerankingEndpoint
) -> None:
    async with reranking(tmp_path, endpoint) as running:
        answer = await found(running, q="is the river high in water")
        plain = await found(running, q="is the river high in water", reranker=False)
        assert [hit["document_id"] for hit in answer["hits"]] == [f"notes/0{at}.md" for at in (3, 1, 2)]
        assert [hit["scores"]["rerank"] for hit in answer["hits"]] == [6.0, 4.0, 1.0]
        assert "rerank" in answer["timings"]
        assert all("rerank" not in hit["scores"] for hit in plain["hits"])
        assert len(endpoint.bodies) == 1


async def test_its_stage_is_streamed_before_the_first_hit(tmp_path: Path, endpoint: RerankingEndpoint) -> None:
    async with reranking(tmp_path, endpoint) as running:
        response = await running.http.get(
            "/v1/search", params={"q": "river", "mode": "keyword"}, headers={"Accept": "text/event-stream"}
        )
        told = [(name, body.get("name")) for name, _, body in events(response)]
        assert told == [("meta", None), ("stage", "keyword"), ("stage", "rerank"), *[("hit", None)] * 3, ("done", None)]


async def test_answers_of_one_that_is_away_are_given_and_not_kept(tmp_path: Path) -> None:
    with reranking_endpoint() as endpoint:
        pass
    async with reranking(tmp_path, endpoint) as running:
        for _ in range(2):
            answer = await found(running)
            assert len(answer["hits"]) == 3
            assert "cannot be reached" in answer["failed_channels"]["rerank"]
            assert not answer["cached"]
        [note] = [each for each in readiness(running.service).notes if "re-ranker" in each]
        assert note.endswith("broke off. Searches keep the order they have without it.")
        assert readiness(running.service).ready


async def test_searches_are_answered_while_it_is_being_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_load = threading.Event()

    def load(_: RerankerSettings) -> StubReranker:
        may_load.wait(10)
        return StubReranker()

    monkeypatch.setattr(service_module, "ServedReranker", lambda settings: ServedReranker(settings, load))
    try:
        async with library(tmp_path, reranker=RerankerSettings(provider="cross-encoder", model="slow")) as running:
            early = await found(running, q="river high")
            may_load.set()
            reranker = running.service.reranker
            assert reranker is not None
            await eventually(lambda: reranker.name)
            late = await found(running, q="river high")
    finally:
        may_load.set()
    assert early["failed_channels"] == {"rerank": "The re-ranker is being loaded."}
    assert (late["failed_channels"], late["cached"]) == ({}, False)
    assert late["hits"][0]["scores"]["rerank"] == 2.0


async def test_one_that_cannot_be_loaded_costs_its_order_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: RerankerSettings) -> StubReranker:
        raise RerankerRefused("There is no such model.")

    monkeypatch.setattr(service_module, "ServedReranker", lambda settings: ServedReranker(settings, load))
    async with library(tmp_path, reranker=RerankerSettings(provider="cross-encoder", model="none")) as running:
        reranker = running.service.reranker
        assert reranker is not None
        await eventually(lambda: reranker.problem == "There is no such model.")
        assert (await found(running))["failed_channels"] == {"rerank": "There is no such model."}
        assert readiness(running.service).ready
