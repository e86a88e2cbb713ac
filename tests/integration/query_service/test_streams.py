"""Searches as they stream: resumed, kept alive, stopped, and recorded on the topic."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from query_api.service_health import readiness
from schemas.receipts import Receipt
from schemas.topics import TopicNames
from tests.integration.query_service.live_service import (
    EVENTS,
    GENERATION,
    LiveService,
    frames_of,
    serving,
    settings_for,
)
from tests.support.fakes.engine import ScriptedEngine, make_hit
from tests.support.fakes.engine import make_generation as make_scripted_generation
from tests.support.fakes.service import QUICK
from tests.support.kafka import read_all
from tests.support.waiting import eventually


async def test_a_stream_that_is_cut_off_goes_on_where_it_stopped(live: LiveService) -> None:
    tokens = [
        await live.put(f"{number}.md", f"# Lock {number}\n\nThe lock keeper writes of lock {number}.")
        for number in range(6)
    ]
    params = {"q": "lock keeper", "k": 6, "after": ",".join(tokens)}
    first: list[tuple[str, str, Any]] = []
    async with live.http.stream("GET", "/v1/search", params=params, headers=EVENTS) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        async with aclosing(frames_of(response)) as frames:  # type: ignore[type-var]
            async for frame in frames:
                first.append(frame)
                if frame[0] == "hit":
                    break
    await eventually(lambda: live.service.streams.reading == 0)
    again = {**EVENTS, "Last-Event-ID": first[-1][1]}
    async with live.http.stream("GET", "/v1/search", params=params, headers=again) as response:
        rest = [frame async for frame in frames_of(response)]
    whole = first + rest
    retrieval_id = first[0][2]["retrieval_id"]
    assert [identifier for _, identifier, _ in whole] == [f"{retrieval_id}.{seq}" for seq in range(len(whole))]
    assert [body["rank"] for name, _, body in whole if name == "hit"] == [1, 2, 3, 4, 5, 6]
    assert whole[-1][0] == "done"


async def test_a_silent_stream_is_kept_alive_by_comments(tmp_path: Path) -> None:
    make_scripted_generation(tmp_path)
    engine = ScriptedEngine(hits=[make_hit(1)], hold_at=0)
    settings = settings_for("127.0.0.1:1", "none.", tmp_path)
    quick = {**QUICK, "query_api.service_context.KEEP_ALIVE_SECONDS": 0.05}
    async with serving(settings, quick, stores=engine, engine=engine, load_encoder=engine.load_encoder) as (http, app):
        live = LiveService(http, app, TopicNames("none."), "127.0.0.1:1", tmp_path)
        await eventually(lambda: readiness(live.service).ready)
        async with http.stream("GET", "/v1/search", params={"q": "river"}, headers=EVENTS) as response:
            lines = []
            async for line in response.aiter_lines():
                lines.append(line)
                if line.startswith(":"):
                    engine.go_on.set()
        assert ": keep-alive" in lines
        assert "event: done" in lines


async def test_a_document_that_is_followed_in_silence_is_kept_alive_by_comments(tmp_path: Path) -> None:
    make_scripted_generation(tmp_path)
    engine = ScriptedEngine()
    settings = settings_for("127.0.0.1:1", "none.", tmp_path)
    quick = {**QUICK, "query_api.service_context.KEEP_ALIVE_SECONDS": 0.05}
    async with serving(settings, quick, stores=engine, engine=engine, load_encoder=engine.load_encoder) as (http, app):
        live = LiveService(http, app, TopicNames("none."), "127.0.0.1:1", tmp_path)
        await eventually(lambda: readiness(live.service).ready)
        async with http.stream("GET", "/v1/documents/a/status?position=0:0", headers=EVENTS) as response:
            lines = []
            async for line in response.aiter_lines():
                lines.append(line)
                if line == ": keep-alive" and lines.count(line) == 1:
                    engine.reader.put(p0=(0, -1))
                    letter = Receipt(
                        key="default/a", outcome="dead_lettered", partition=0, offset=0, generation=GENERATION
                    )
                    live.service.snapshots.receipts.add(letter)
        names = [line for line in lines if line.startswith("event: ")]
        assert names == ["event: status", "event: done"]
        assert lines.index("event: status") < lines.index(": keep-alive") < lines.index("event: done")


@pytest.mark.parametrize("headers", [{}, EVENTS])
async def test_the_search_stops_when_its_client_hangs_up(tmp_path: Path, headers: dict[str, str]) -> None:
    make_scripted_generation(tmp_path)
    engine = ScriptedEngine(hits=[make_hit(1), make_hit(2)], hold_at=1)
    settings = settings_for("127.0.0.1:1", "none.", tmp_path)
    async with serving(settings, QUICK, stores=engine, engine=engine, load_encoder=engine.load_encoder) as (http, app):
        live = LiveService(http, app, TopicNames("none."), "127.0.0.1:1", tmp_path)
        await eventually(lambda: readiness(live.service).ready)
        with pytest.raises(httpx.ReadTimeout):
            await http.get("/v1/search", params={"q": "river"}, headers=headers, timeout=0.3)
        await eventually(lambda: engine.cancelled == 1)
        assert live.service.streams.reading == 0


async def test_the_provenance_of_every_search_arrives_on_the_topic(live: LiveService) -> None:
    token = await live.put("a.md", "# Weir\n\nThe weir was built in 1901.")
    answers = [await live.search("weir", after=token) for _ in range(5)]
    seen: dict[str, Any] = {}
    async with asyncio.timeout(20):
        while len(seen) < 5:
            records = await asyncio.to_thread(read_all, live.kafka, live.names.provenance)
            seen = {record.key.decode(): json.loads(record.value) for record in records}
    for answer in answers:
        record = seen[answer["retrieval_id"]]
        assert record["snapshot"] == answer["snapshot"]
        assert [hit["chunk_id"] for hit in record["hits"]] == [hit["chunk_id"] for hit in answer["hits"]]
        assert record["hits"][0]["source"]["topic"] == live.names.documents
        looked_up = (await live.http.get(f"/v1/retrievals/{answer['retrieval_id']}")).json()
        told = zip(looked_up.pop("hits"), record.pop("hits"), strict=True)
        assert all(shown == shown | recorded for shown, recorded in told)  # what is not known is left out of a record
        assert looked_up == looked_up | record
