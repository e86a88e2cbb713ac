"""A running service over stores in memory, without Kafka, and a client of it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from query_api.service_context import Service
from query_api.service_health import readiness
from query_api.settings import RerankerSettings, ServiceBlock, ServiceSettings
from query_api.stream_tickets import StreamTickets
from schemas.settings import LanguageModelSettings, LimitSettings, StorageSettings
from tests.support.constants import changed
from tests.support.fakes.engine import ScriptedEngine, app_over
from tests.support.fakes.text_stores import Page
from tests.support.waiting import eventually

PAGES = [
    Page(
        "notes/river.md",
        "River",
        [["The river is high.", "Ada measured it."], ["It fell."]],
        ["Ada"],
        collection="a",
        types={"Ada": "person"},
    ),
    Page(
        "ada",
        "Ada",
        [["Ada lives by the river."]],
        ["Ada"],
        links=["a/notes/river.md"],
        collection="a",
        types={"Ada": "person"},
    ),
    Page("reports/status", "Report", [["All is well."]], collection="a"),
]

QUICK = {"query_api.service_context.REFRESH_SECONDS": 0.01, "query_api.service_context.FLUSH_SECONDS": 0}
"""Constants of a service that is soon up to date, and does not wait for Kafka at its end."""


class Running:
    """A running service and a client of it."""

    def __init__(
        self, app: FastAPI, http: httpx.AsyncClient, service: Service, engine: ScriptedEngine, tickets: StreamTickets
    ) -> None:
        self.app = app
        self.http = http
        self.service = service
        self.engine = engine
        self.tickets = tickets

    async def get(self, path: str, **params: Any) -> httpx.Response:
        return await self.http.get(path, params=params)


@asynccontextmanager
async def service_over(
    data_dir: Path,
    engine: ScriptedEngine,
    *,
    until_ready: bool = True,
    encoder_retry_seconds: float = 5.0,
    reranker: RerankerSettings | None = None,
    limits: LimitSettings | None = None,
    language_model: LanguageModelSettings | None = None,
    constants: Mapping[str, Any] | None = None,
    **block: Any,
) -> AsyncIterator[Running]:
    settings = ServiceSettings(
        storage=StorageSettings(data_dir=data_dir),
        reranker=reranker or RerankerSettings(),
        limits=limits or LimitSettings(),
        language_model=language_model or LanguageModelSettings(),
        service=ServiceBlock(**block),
    )
    with changed(QUICK | dict(constants or {})):
        app = app_over(settings, engine, encoder_retry_seconds=encoder_retry_seconds)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as http,
        ):
            running = Running(app, http, app.state.service, engine, app.state.stream_tickets)
            engine.reranker = running.service.reranker
            if until_ready:
                await eventually(lambda: readiness(running.service).ready)
            yield running


def problem(response: httpx.Response) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == response.status_code
    assert body["title"]
    assert body["detail"]
    return body


def events(response: httpx.Response) -> list[tuple[str, str, Any]]:
    frames = []
    for block in response.text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        frames.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return frames
