"""The service's `/mcp` over standard input and output: what a client asks here is asked of the service."""

import json
from functools import partial
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INTERNAL_ERROR, CallToolRequestParams, PaginatedRequestParams
from mcp_types.version import LATEST_HANDSHAKE_VERSION
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

    anyio.run(serve)


async def _forward(client: ServiceClient, method: str, _: object, params: BaseModel) -> dict[str, Any]:
    sent = params.model_dump(mode="json", by_alias=True, exclude_unset=True)
    sent.pop("_meta", None)  # is of the connection on this side
    try:
        return await run_sync(_ask, client, method, sent, abandon_on_cancel=True)
    except Failure as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error


def _ask(client: ServiceClient, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result. Raises Failure, and MCPError as the service does."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = client.post(MCP_PATH, json.dumps(request).encode())
    if "error" in answer:
        raise MCPError(answer["error"]["code"], answer["error"]["message"])
    return dict(answer["result"])
