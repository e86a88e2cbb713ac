"""The cache of results: the same answer again, each time a retrieval of its own, and never an old one."""

from pathlib import Path
from typing import Any

from indexer.errors import EncoderUnavailable
from tests.support.fakes.service import Running, events
from tests.support.fakes.text_stores import Page
from tests.unit.query_api.routes.library import change, found, library, note


async def statistics(running: Running) -> dict[str, Any]:
    told: dict[str, Any] = (await running.get("/v1/cache")).json()
    return told


def searches(running: Running) -> int:
    started: int = running.engine.started
    return started


async def test_the_same_question_is_answered_again_without_a_search_as_a_retrieval_of_its_own(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        first, second = await found(running), await found(running)
        assert searches(running) == 1
        assert (first["cached"], second["cached"]) == (False, True)
        assert second["hits"] == first["hits"]
        assert second["retrieval_id"] != first["retrieval_id"]
        assert list(second["timings"]) == ["total"]
        record = (await running.get(f"/v1/retrievals/{second['retrieval_id']}")).json()
        assert record["cached"] is True
        assert [hit["chunk_id"] for hit in record["hits"]] == [hit["chunk_id"] for hit in first["hits"]]
        assert await statistics(running) | {"bytes": 0} == {
            "entries": 1, "max_entries": 100, "bytes": 0, "max_bytes": 33554432, "max_age_seconds": 300.0,
            "hits": 1, "misses": 1, "evictions": 0,
        }  # fmt: skip
        text = (await running.get("/metrics")).text
        assert "thalweg_search_cache_hits_total 1.0" in text
        assert "thalweg_search_cache_entries 1.0" in text


async def test_streams_and_json_share_it_and_the_frames_come_in_the_same_order(tmp_path: Path) -> None:
    params: dict[str, Any] = {"q": "river", "mode": "keyword", "k": 3}
    headers = {"Accept": "text/event-stream"}
    async with library(tmp_path) as running:
        told = events(await running.http.get("/v1/search", params=params, headers=headers))
        again = events(await running.http.get("/v1/search", params=params, headers=headers))
        assert [name for name, _, _ in again] == [name for name, _, _ in told]
        assert [body for name, _, body in again if name == "hit"] == [body for name, _, body in told if name == "hit"]
        assert [stream[0][2]["cached"] for stream in (told, again)] == [False, True]
        assert again[0][2]["retrieval_id"] == again[-1][2]["retrieval_id"] != told[0][2]["retrieval_id"]
        assert (await found(running))["cached"] is True
        assert searches(running) == 1


async def test_what_is_answered_from_the_cache_is_never_stale(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        before = await found(running, k=100)
        await change(running, note(50), offset=8)
        after = await found(running, k=100, after="0:8")
        assert (after["cached"], len(after["hits"])) == (False, len(before["hits"]) + 1)
        assert (await found(running, k=100, after="0:8"))["cached"] is True


async def test_another_page_length_or_question_is_another_answer(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        await found(running)
        for other in ({"k": 4}, {"offset": 1}, {"q": "high"}, {"group": "document"}, {"collection": "a"}):
            assert (await found(running, **other))["cached"] is False
        page = await found(running)
        assert (await found(running, cursor=page["next_cursor"]))["cached"] is False
        assert (await found(running, offset=3))["cached"] is True


async def test_it_can_be_passed_by_and_cleared(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        await found(running, cache=False)
        assert (await statistics(running))["entries"] == 0
        await found(running)
        assert (await found(running, cache=False))["cached"] is False
        assert (await running.http.delete("/v1/cache")).json() == {"removed": 1}
        assert (await found(running))["cached"] is False


async def test_an_answer_that_a_channel_is_missing_from_is_not_kept(tmp_path: Path) -> None:
    async with library(tmp_path) as running:
        running.engine.encoder.failure = EncoderUnavailable("The endpoint cannot be reached.")
        for _ in range(2):
            answer = await found(running, mode="hybrid")
            assert "vector" in answer["failed_channels"]
            assert answer["cached"] is False
        assert (await statistics(running))["entries"] == 0


async def test_a_cursor_from_the_cache_is_as_good_as_the_first_one(tmp_path: Path) -> None:
    async with library(tmp_path, constants={"query_api.service_context.CURSOR_SNAPSHOTS": 1}) as running:
        await found(running)
        again = await found(running)
        assert again["cached"] is True
        await change(running, Page("new", "New", [["A new river."]], collection="a"), offset=8)
        page = await found(running, cursor=again["next_cursor"])
        assert [hit["rank"] for hit in page["hits"]] == [4, 5, 6]
        assert page["snapshot"]["positions"] == "0:7"
