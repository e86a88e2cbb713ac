"""The official SDK's client of a service in this process."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.fakes.service import Running

URL = "http://127.0.0.1:8420"
ERAS = ("auto", "legacy")  # the protocol's: each request by itself, or after a handshake


class Assistant:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What the tool answers, which fits its schema: the client checks that."""
        result = await self.client.call_tool(tool, arguments)
        text = result.content[0].text  # type: ignore[union-attr]
        assert not result.is_error, text
        assert json.loads(text) == result.structured_content
        return result.structured_content

    async def refusal(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        assert result.structured_content is None
        return result.content[0].text  # type: ignore[union-attr]


@asynccontextmanager
async def assistant(running: Running, era: str = "auto", key: str = "") -> AsyncIterator[Assistant]:
    transport = httpx2.ASGITransport(running.app, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(transport=transport, base_url=URL, headers=headers) as http,
        Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=era) as client,
    ):
        yield Assistant(client)
