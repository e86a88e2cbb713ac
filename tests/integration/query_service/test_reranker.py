"""A service that asks a re-ranker over HTTP: pages by cursor agree, and searches go on when it goes away."""

from pathlib import Path
from typing import Any

from tests.integration.query_service.live_service import EVENTS, LiveService, frames_of, live_service
from tests.support.fakes.model_endpoints import BROKEN, reranking_endpoint
from tests.support.waiting import eventually

DEPTH = 6
QUESTION = "which mill grinds rye and barley by the river"
GRAIN = ["rye", "rye and barley", "oats", "oats and rye", "wheat", "barley", "rye and wheat", "millet", "spelt"]


async def filled(live: LiveService) -> str:
    """Nine mills; the token that shows all of them."""
    written = [await live.put(f"{at}.md", f"# Mill {at}\n\nIt grinds {of}.") for at, of in enumerate(GRAIN)]
    return ",".join(written)


async def pages(live: LiveService) -> list[dict[str, Any]]:
    """The hits of all pages, by cursor."""
    hits: list[dict[str, Any]] = []
    cursor: str | None = None
    while cursor is not None or not hits:
        page = await live.search(QUESTION, k=4, cache=False, **({"cursor": cursor} if cursor else {}))
        assert page["failed_channels"] == {}
        hits += page["hits"]
        cursor = page["next_cursor"]
    return hits


async def test_reranker_orders_first_hits_and_its_failure_costs_order(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    with reranking_endpoint(key="sk-reader") as endpoint:
        settings = endpoint.settings(depth=DEPTH)
        async with live_service(kafka, topic_prefix, tmp_path, settings) as live:
            reranker = live.service.reranker
            await eventually(lambda: reranker.name)
            token = await filled(live)
            answer = await live.search(QUESTION, k=9, after=token)
            scores = [hit["scores"].get("rerank") for hit in answer["hits"]]
            assert None not in scores[:DEPTH]
            assert scores[:DEPTH] == sorted(scores[:DEPTH], reverse=True)
            assert scores[DEPTH:] == [None] * 3
            [body] = endpoint.bodies
            assert (body["query"], body["top_n"], len(body["documents"])) == (QUESTION, DEPTH, DEPTH)
            assert endpoint.headers[0]["authorization"] == "Bearer sk-reader"

            assert await pages(live) == answer["hits"]
            params = {"q": QUESTION, "k": 9, "cache": False}
            async with live.http.stream("GET", "/v1/search", params=params, headers=EVENTS) as stream:
                frames = [frame async for frame in frames_of(stream)]
            assert [body["name"] for name, _, body in frames if name == "stage"][-1] == "rerank"
            assert [body for name, _, body in frames if name == "hit"] == answer["hits"]

            asked = len(endpoint.bodies)
            plain = await live.search(QUESTION, k=9, reranker=False)
            assert len(endpoint.bodies) == asked
            endpoint.otherwise = BROKEN
            without = await live.search(QUESTION, k=9, cache=False)
            assert "failed (500)" in without["failed_channels"]["rerank"]
            for hits in (plain["hits"], without["hits"]):
                assert {hit["document_id"] for hit in hits} == {f"{at}.md" for at in range(len(GRAIN))}
                assert all("rerank" not in hit["scores"] for hit in hits)
