"""The service's `/mcp` over standard input and output: what a client asks here is asked of the service."""

import asyncio
import json
from functools import partial
from typing import Any, TypeVar

from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import INTERNAL_ERROR, CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
from mcp.types.version import LATEST_HANDSHAKE_VERSION
from pydantic import BaseModel

from query_api.auth import MCP_PATH
from query_api.client import ServiceClient
from schemas.errors import Failure

A = TypeVar("A", bound=BaseModel)
WHO = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": {"name": "", "version": ""}}


def serve_stdio(client: ServiceClient) -> None:
    """Until standard input ends. Raises Failure where the service does not answer at the start."""
    client.send_always({MCP_PROTOCOL_VERSION_HEADER: LATEST_HANDSHAKE_VERSION})
    service = _ask(client, "initialize", WHO)
    server: Server[Any] = Server(**service["serverInfo"], instructions=service["instructions"])
    ask = partial(_forward, client)
    server.add_request_handler("tools/list", PaginatedRequestParams, partial(ask, "tools/list", ListToolsResult))
    server.add_request_handler("tools/call", CallToolRequestParams, partial(ask, "tools/call", CallToolResult))

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    asyncio.run(serve())


async def _forward(client: ServiceClient, method: str, answer: type[A], _: object, params: BaseModel) -> A:
    sent = params.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"meta"})  # which is of this side
    try:
        return answer.model_validate(await asyncio.to_thread(_ask, client, method, sent))
    except Failure as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error


def _ask(client: ServiceClient, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result. Raises Failure, and MCPError as the service does."""
    answer = client.post(MCP_PATH, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
    if "error" in answer:
        raise MCPError(answer["error"]["code"], answer["error"]["message"])
    return dict(answer["result"])
