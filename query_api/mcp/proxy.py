"""The service's `/mcp` over standard input and output: what a client asks here is asked of the service."""

import asyncio
import json
from functools import partial
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import INTERNAL_ERROR, CallToolRequestParams, PaginatedRequestParams
from mcp.types.version import LATEST_HANDSHAKE_VERSION
from pydantic import BaseModel

from query_api.auth import MCP_PATH
from query_api.client import ServiceClient
from schemas.errors import Failure

WHO = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": {"name": "", "version": ""}}


def serve_stdio(client: ServiceClient) -> None:
    """Until standard input ends. Raises Failure where the service does not answer at the start."""
    client.send_always({MCP_PROTOCOL_VERSION_HEADER: LATEST_HANDSHAKE_VERSION})
    service = _ask(client, "initialize", WHO)
    server: Server[Any] = Server(**service["serverInfo"], instructions=service["instructions"])
    server.add_request_handler("tools/list", PaginatedRequestParams, partial(_forward, client, "tools/list"))
    server.add_request_handler("tools/call", CallToolRequestParams, partial(_forward, client, "tools/call"))

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    asyncio.run(serve())


async def _forward(client: ServiceClient, method: str, _: object, params: BaseModel) -> dict[str, Any]:
    sent = params.model_dump(mode="json", by_alias=True, exclude_unset=True)
    sent.pop("_meta", None)  # is of the connection on this side
    try:
        return await asyncio.to_thread(_ask, client, method, sent)
    except Failure as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error


def _ask(client: ServiceClient, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result. Raises Failure, and MCPError as the service does."""
    answer = client.post(MCP_PATH, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
    if "error" in answer:
        raise MCPError(answer["error"]["code"], answer["error"]["message"])
    return dict(answer["result"])
