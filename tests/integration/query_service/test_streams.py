"""Searches as they stream: resumed, kept alive, stopped, and recorded on the topic."""

from pathlib import Path

import httpx
import pytest

from query_api.service_health import readiness
from schemas.receipts import Receipt
from schemas.topics import TopicNames
from tests.integration.query_service.live_service import EVENTS, GENERATION, LiveService, serving, settings_for
from tests.support.fakes.engine import ScriptedEngine, make_hit
from tests.support.fakes.engine import make_generation as make_scripted_generation
from tests.support.fakes.service import QUICK
from tests.support.waiting import eventually


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


async def test_silent_document_status_stream_is_kept_alive_by_comments(tmp_path: Path) -> None:
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
