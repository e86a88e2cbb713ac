"""`POST /mcp`: the official SDK's server, over streamable HTTP without sessions.

A request is a call, and its answer JSON: nothing of a client is kept between two, so nothing can be left open. Keys,
hosts, origins and the size of a body are the middleware's business, as for any other route.
"""

import json
from typing import Any, cast

from fastapi import Request
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, ListToolsResult, TextContent
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from query_api.auth import MCP_PATH, Access, check_access
from query_api.errors import ApiProblem, known_problem, unforeseen
from query_api.mcp.tools import TEXT_CHARACTERS, TOOLS, validated
from query_api.middleware import DOCUMENTS_PATH
from query_api.service_context import installed_version

ANSWER_CHARACTERS = 100_000  # of a whole answer: about 25,000 tokens, the most that assistants take
GUIDE = "Search first, and name each passage's document as the source. `status` lists the collections."

Context = ServerRequestContext[Any, Request]


class McpEndpoint:
    """ASGI app of the route. Each request gets a session manager of the SDK's, and ends it."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The body is read here: the SDK would log a refusal by the middleware as a failure of its own."""
        try:
            unread: list[Message] = [{"type": "http.request", "body": await Request(scope, receive).body()}]
        except ClientDisconnect:
            return

        async def receive_again() -> Message:
            return unread.pop() if unread else await receive()

        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive_again, send)


async def _list_tools(context: Context, _: object) -> ListToolsResult:
    may_write = _access(context) == "full"
    return ListToolsResult(tools=[tool.listed for tool in TOOLS.values() if may_write or not tool.writes])


async def _call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
    """What is wrong is an error of the tool, which the model reads. Raises MCPError for a tool that there is not."""
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, f"There is no tool {params.name[:80]!r}; there are {', '.join(TOOLS)}.")
    request = cast("Request", context.request)  # the transport is HTTP
    try:
        if tool.writes:
            check_access(_access(context), "POST", DOCUMENTS_PATH)
        arguments = validated(tool.arguments, params.arguments or {})
        return _answer(await tool.run(request, request.app.state.service, arguments))
    except Exception as error:  # noqa: BLE001 -- the SDK would show the client what nobody foresaw
        problem = known_problem(error, MCP_PATH) or unforeseen(error, "POST", MCP_PATH)
        return CallToolResult(content=[TextContent(text=f"{problem.title}: {problem.detail}")], is_error=True)


def _access(context: Context) -> Access:
    """As the middleware found it; without keys every caller may do all."""
    return cast("Access", getattr(cast("Request", context.request).state, "access", "full"))


def _answer(answer: BaseModel) -> CallToolResult:
    """The answer as JSON and as its text. Raises ApiProblem where it is too long."""
    shown = _cut(answer.model_dump(mode="json", by_alias=True))
    text = json.dumps(shown, ensure_ascii=False)
    if len(text) > ANSWER_CHARACTERS:
        most = f"at most {ANSWER_CHARACTERS:,} are sent: ask for fewer with `k` or `limit`."
        raise ApiProblem(413, "Answer too long", f"The answer has {len(text):,} characters, and {most}")
    return CallToolResult(content=[TextContent(text=text)], structured_content=shown)


def _cut(value: Any) -> Any:
    """The same, with longer texts cut."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_CHARACTERS else f"{value[: TEXT_CHARACTERS - 1]}…"
    if isinstance(value, list):
        return [_cut(each) for each in value]
    return {name: _cut(each) for name, each in value.items()} if isinstance(value, dict) else value


SERVER: Server[Any] = Server(
    "thalweg", version=installed_version(), instructions=GUIDE, on_list_tools=_list_tools, on_call_tool=_call_tool
)
