"""What reaches `/mcp` from clients that are no assistant, or a careless one: a clear answer, and a quiet log."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from tests.support.fakes.engine import ScriptedEngine, make_generation, make_hit
from tests.support.fakes.service import Running, problem, service_over
from tests.support.waiting import eventually

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
VERSION = "2026-07-28"
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
TOO_LARGE = 300_000


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine(hits=[make_hit(1)])) as service:
        yield service


def call(tool: str, modern: bool, **arguments: Any) -> dict[str, Any]:
    """A request to post, in either era of the protocol."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments} | ({"_meta": ENVELOPE} if modern else {})
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    named = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": tool} if modern else {}
    return {"content": json.dumps(body), "headers": HEADERS | named}


class Logged:
    """What the service and the SDK log."""

    def __init__(self, own: list[MutableMapping[str, Any]], caplog: pytest.LogCaptureFixture) -> None:
        self._own = own
        self._caplog = caplog

    def failures(self) -> list[object]:
        of_sdk = [each for each in self._caplog.records if each.exc_info or each.levelno >= logging.ERROR]
        return [*of_sdk, *(each for each in self._own if each["log_level"] == "error" or "exc_info" in each)]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Logged]:
    with capture_logs() as own:
        yield Logged(own, caplog)


NO_CALLS: list[tuple[dict[str, Any], int]] = [
    ({"content": b"{"}, 400),
    ({"content": b""}, 400),
    ({"content": b"[]"}, 400),
    ({"content": b"\xff"}, 400),
    ({"content": b"[" * 100_000}, 400),
    ({"content": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ' + b"9" * 5_000 + b"}"}, 400),
    ({"content": b'{"jsonrpc": "2.0", "id": {}, "method": 7}'}, 400),
    ({"headers": {"Accept": "text/html"}}, 406),
]


@pytest.mark.parametrize("modern", [False, True])
async def test_what_is_no_call_is_refused_by_the_protocol(running: Running, logged: Logged, modern: bool) -> None:
    for changed, status in NO_CALLS:
        request = call("status", modern)
        request |= {**changed, "headers": request["headers"] | changed.get("headers", {})}
        assert (await running.http.post("/mcp", **request)).status_code == status
    assert logged.failures() == []


@pytest.mark.parametrize("modern", [False, True])
async def test_half_a_character_is_refused_wherever_it_is(running: Running, logged: Logged, modern: bool) -> None:
    half = "\ud800"
    for request in (
        call("search", modern, q=half),
        call("search", modern, **{half: 1}),
        call("get", modern, kind="document", id=half),
        call("add", modern, id="a", content="x", metadata={"by": half}),
        call("add", modern, id="a", content="x", metadata={half: "by"}),
    ):
        answer = (await running.http.post("/mcp", **request)).json()
        assert "error" in answer or answer["result"]["isError"]
        assert "Internal" not in str(answer)
    assert logged.failures() == []


@pytest.mark.parametrize("modern", [False, True])
async def test_a_body_over_the_limit_is_refused_announced_or_not(
    running: Running, logged: Logged, modern: bool
) -> None:
    request = call("search", modern, q="x" * TOO_LARGE)

    async def parts() -> AsyncIterator[bytes]:
        yield request["content"].encode()

    for each in (request, request | {"content": parts()}):
        assert "262,144 bytes" in problem(await running.http.post("/mcp", **each))["detail"]
    assert logged.failures() == []


async def test_no_session_is_opened_so_none_is_left_open(running: Running) -> None:
    for method in ("GET", "DELETE"):
        refused = await running.http.request(method, "/mcp", headers=HEADERS)
        assert problem(refused)["detail"] == f"/mcp does not take {method}; it takes POST."
    before = len(asyncio.all_tasks())
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    answers = [await running.http.post("/mcp", json=body, headers=HEADERS) for _ in range(20)]
    assert {each.status_code for each in answers} == {200}
    assert not [each for each in answers if "mcp-session-id" in each.headers]
    await eventually(lambda: len(asyncio.all_tasks()) <= before)


async def test_other_hosts_and_pages_of_other_origins_are_kept_away(running: Running) -> None:
    request = call("status", modern=False)
    for changed, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
        refused = await running.http.post("/mcp", content=request["content"], headers=request["headers"] | changed)
        assert problem(refused)["status"] == status
    own = request["headers"] | {"Origin": "http://127.0.0.1:8420"}
    assert (await running.http.post("/mcp", content=request["content"], headers=own)).status_code == 200


@pytest.mark.parametrize("modern", [False, True])
async def test_a_failure_that_nobody_foresaw_is_logged_once_and_not_told(
    running: Running, logged: Logged, monkeypatch: pytest.MonkeyPatch, modern: bool
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the secret is 42")

    monkeypatch.setattr(running.service.admission, "turn", broken)
    answer = await running.http.post("/mcp", **call("search", modern, q="river"))
    assert answer.json()["result"]["isError"]
    assert "Something broke in the service" in answer.text
    assert "42" not in answer.text
    assert len(logged.failures()) == 1


async def leave_after(running: Running, request: dict[str, Any], body: Message, left: Callable[[], bool]) -> None:
    """A client that sends this much of its body, and is gone as soon as it has `left`."""
    headers = [(name.lower().encode(), value.encode()) for name, value in request["headers"].items()]
    scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": "/mcp", "raw_path": b"/mcp"}
    scope |= {"query_string": b"", "headers": [*headers, (b"host", b"localhost")]}
    messages = [body]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await eventually(left)
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        """Nobody reads it."""

    await running.app(scope, receive, send)


@pytest.mark.parametrize("modern", [False, True])
async def test_a_search_whose_client_leaves_is_stopped(running: Running, logged: Logged, modern: bool) -> None:
    running.engine.hold_at = 0
    request = call("search", modern, q="river")
    body = {"type": "http.request", "body": request["content"].encode()}
    await leave_after(running, request, body, lambda: running.engine.started == 1)
    await eventually(lambda: running.engine.cancelled == 1)
    assert (running.service.admission.running, running.service.admission.waiting) == (0, 0)
    assert logged.failures() == []


async def test_a_client_that_leaves_within_its_body_is_no_failure(running: Running, logged: Logged) -> None:
    body = {"type": "http.request", "body": b'{"jsonrpc"', "more_body": True}
    await leave_after(running, call("search", modern=False, q="river"), body, lambda: True)
    assert logged.failures() == []
