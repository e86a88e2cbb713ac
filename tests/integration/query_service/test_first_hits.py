"""The first hit of a clear question over a real socket: it is at the client while the graph is still to be followed."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from query_api.channels.graph import graph_channel
from query_api.reading.snapshot import Snapshot
from query_api.searching import following
from query_api.searching.engine import SearchPart
from query_api.searching.search import search
from query_api.searching.steps import SearchSettings
from query_api.settings import SearchBudgetSettings
from schemas.search_request import SearchRequest
from tests.integration.query_service.stage import EVENTS, serving, settings_for
from tests.unit.query_api.in_memory_text import world
from tests.unit.query_api.scripted_engine import ScriptedEngine, make_generation
from tests.unit.query_api.searching.asking import PAGES, QUESTION
from tests.waiting import eventually

DEADLINE_SECONDS = 10.0


class WorldEngine(ScriptedEngine):
    """Searches one small world whose texts are at hand, so that steps run on the event loop."""

    async def search(
        self,
        request: SearchRequest,
        retrieval_id: str,
        snapshot: Snapshot,
        encoder: Any,
        executor: Executor,
        budgets: SearchBudgetSettings,
    ) -> AsyncGenerator[SearchPart, None]:
        of_world, _, words = world(PAGES)
        at_hand = replace(of_world, at_hand=True)
        async for part in search(request, retrieval_id, at_hand, words, executor, SearchSettings()):
            yield part


def frames_in_a_thread(url: str, first_hit: threading.Event) -> list[tuple[str, Any]]:
    """The frames of one stream, as a client gets them that has a processor of its own."""
    frames: list[tuple[str, Any]] = []
    with httpx.stream("GET", url, params={"q": QUESTION}, headers=EVENTS, timeout=30, trust_env=False) as answer:
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                frames.append((name, json.loads(line.removeprefix("data: "))))
                if name == "hit":
                    first_hit.set()
    return frames


async def test_the_first_hit_is_read_before_the_graph_is_followed_and_all_ways_to_ask_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph's step holds up the event loop until the client says that it has the hit."""
    first_hit = threading.Event()
    in_time: list[bool] = []

    def patient(*asked: Any, **how: Any) -> Any:
        in_time.append(first_hit.wait(DEADLINE_SECONDS))
        return graph_channel(*asked, **how)

    make_generation(tmp_path)
    settings = settings_for("127.0.0.1:1", "none.", tmp_path, provenance_flush_seconds=0)
    async with serving(settings, load=WorldEngine) as (http, app):
        await eventually(lambda: app.state.service.readiness().ready)
        with monkeypatch.context() as while_streaming:
            while_streaming.setattr(following, "graph_channel", patient)
            url = f"{http.base_url}/v1/search"
            frames = await asyncio.to_thread(frames_in_a_thread, url, first_hit)
        assert in_time == [True]
        names = [body["name"] if name == "stage" else name for name, body in frames]
        assert names.index("hit") < names.index("graph")
        streamed = [body for name, body in frames if name == "hit"]
        assert [hit["rank"] for hit in streamed] == list(range(1, len(streamed) + 1))
        assert len(streamed) > 2

        whole = (await http.get("/v1/search", params={"q": QUESTION})).json()
        assert whole["hits"] == streamed
        again = [body async for body in pages(http)]
        assert again == streamed


async def pages(http: httpx.AsyncClient) -> Any:
    """The hits of pages of two, from cursor to cursor."""
    cursor: str | None = None
    while True:
        params: dict[str, Any] = {"q": QUESTION, "k": 2} | ({} if cursor is None else {"cursor": cursor})
        page = (await http.get("/v1/search", params=params)).json()
        for hit in page["hits"]:
            yield hit
        cursor = page["next_cursor"]
        if cursor is None:
            return
