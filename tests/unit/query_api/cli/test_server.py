"""The protocol of a connection: refusals as problems, and timeouts for slow clients."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from uvicorn.server import ServerState

from query_api.cli.server import MAX_URL_BYTES, SEND_BUFFER_BYTES, ServiceProtocol, bind, server_config
from query_api.settings import ServiceBlock
from tests.support.waiting import eventually


class Connection:
    """Keeps what is written to it."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0

    def pause_reading(self) -> None:
        """More comes all the same."""

    def get_extra_info(self, name: str) -> Any:
        return {"sockname": ("127.0.0.1", 80), "peername": ("127.0.0.1", 81)}.get(name)

    def is_closing(self) -> bool:
        return self.closed


async def said(*sent: bytes) -> tuple[Connection, str, dict[str, Any]]:
    """The connection after these bytes, the status line, and the problem."""
    config = server_config(FastAPI())
    config.load()
    protocol = ServiceProtocol(config=config, server_state=ServerState(), app_state={})
    connection = Connection()
    protocol.connection_made(connection)  # type: ignore[arg-type]
    for data in sent:
        if not connection.closed:
            protocol.data_received(data)
    if not connection.written:
        return connection, "", {}
    head, _, body = connection.written.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.split(": ") for line in lines[1:])
    assert headers == {
        "content-type": "application/problem+json", "content-length": str(len(body)), "connection": "close",
    }  # fmt: skip
    return connection, lines[0], json.loads(body)


def request(url: bytes) -> bytes:
    return b"GET " + url + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def test_a_url_of_100_kb_is_refused_with_what_to_do_instead() -> None:
    connection, status, problem = await said(request(b"/v1/search?q=" + b"x" * 100_000))
    assert status.startswith("HTTP/1.1 414 ")
    assert problem["status"] == 414
    assert "at most 65,535 bytes. POST /v1/search takes a question in its body" in problem["detail"]
    assert connection.closed


async def test_a_url_without_end_is_refused_before_all_of_it_has_come() -> None:
    _, status, _ = await said(b"GET /?q=", *([b"x" * 10_000] * 7))
    assert status.startswith("HTTP/1.1 414 ")


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", b"HELO there\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"])
async def test_what_is_no_http_is_refused_as_that(sent: bytes) -> None:
    connection, status, problem = await said(sent)
    assert status == "HTTP/1.1 400 Bad Request"
    assert problem["title"] == "Not HTTP"
    assert connection.closed


async def test_a_long_url_within_the_limit_is_left_to_the_app() -> None:
    connection, status, _ = await said(b"GET /?" + b"x" * (MAX_URL_BYTES - 2) + b" HTTP/1.1\r\n")
    assert (status, connection.closed) == ("", False)


@pytest.mark.parametrize(
    "headers",
    [[b"a: b\r\n" * 10_000] * 5, [b"a: " + b"x" * 70_000, b"x" * 70_000], [b"x" * 70_000] * 2, [b"a: b\r\n" * 40_000]],
    ids=["many", "one long", "one name", "many at once"],
)
async def test_headers_without_end_are_refused_before_all_of_them_have_come(headers: list[bytes]) -> None:
    connection, status, problem = await said(b"GET / HTTP/1.1\r\nhost: localhost\r\n", *headers)
    assert status.startswith("HTTP/1.1 431 ")
    assert problem["status"] == 431
    assert connection.closed


async def test_a_long_body_is_no_long_head() -> None:
    sent = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 400000\r\n\r\n"
    connection, status, _ = await said(sent, *[b"x" * 50_000] * 8)
    assert (status, connection.closed) == ("", False)


FRAME = b"x" * 64 * 1024
LARGE = 4 * 1024 * 1024


class App:
    """Answers with the size of a body, with a large body, or with frames for ever; says how many frames were asked of
    it and whether the stream was stopped."""

    def __init__(self) -> None:
        self.frames = 0
        self.stopped = asyncio.Event()
        self.go_on = asyncio.Event()
        routes = [
            Route("/size", self._size, methods=["POST"]),
            Route("/large", self._large),
            Route("/frames", self._stream),
            Route("/slow", self._slow),
            Route("/parts", self._parts),
        ]
        self.asgi = Starlette(routes=routes)

    async def _size(self, request: Request) -> Response:
        return Response(str(len(await request.body())))

    async def _large(self, _: Request) -> Response:
        return Response(b"x" * LARGE)

    async def _slow(self, _: Request) -> Response:
        await self.go_on.wait()
        return Response("done")

    async def _parts(self, _: Request) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            for part in (b"one ", b"two"):
                yield part

        return StreamingResponse(parts())

    async def _stream(self, _: Request) -> Response:
        return StreamingResponse(self._for_ever())

    async def _for_ever(self) -> AsyncIterator[bytes]:
        try:
            while True:
                self.frames += 1
                await asyncio.sleep(0)
                yield FRAME
        finally:
            self.stopped.set()


@asynccontextmanager
async def served(
    *, request_seconds: float = 60, send_seconds: float = 60
) -> AsyncIterator[tuple[App, uvicorn.Server, int]]:
    app = App()
    with bind(ServiceBlock(port=0)) as listening:
        seconds = {"request_seconds": request_seconds, "send_seconds": send_seconds}
        protocol = type("Impatient", (ServiceProtocol,), seconds)
        server = uvicorn.Server(server_config(app.asgi, protocol))
        running = asyncio.create_task(server.serve(sockets=[listening]))
        await eventually(lambda: server.started)
        try:
            yield app, server, listening.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            await running


async def heard(port: int, *sent: bytes) -> bytes:
    """All that comes until the other side hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in sent:
        writer.write(part)
        await writer.drain()
    async with asyncio.timeout(20):
        answer = await reader.read(-1)
    writer.close()
    return answer


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /size HT",
        b"GET /size HTTP/1.1\r\nHost: localhost\r\nX-Half: ",
        b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n",
        b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
    ],
)
async def test_half_a_request_is_cut_off_with_a_sentence(sent: bytes) -> None:
    async with served(request_seconds=0.5) as (_, server, port):
        answer = await heard(port, sent)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"application/problem+json" in answer
        assert b"is to come within" in answer
        await eventually(lambda: not server.server_state.connections)


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
async def test_a_connection_that_never_begins_a_request_is_closed_in_silence(sent: bytes) -> None:
    async with served(request_seconds=0.5) as (_, _, port):
        assert await heard(port, sent) == b""


async def test_a_second_request_that_stops_halfway_is_cut_off_too() -> None:
    whole = b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nfour"
    async with served(request_seconds=0.5) as (_, _, port):
        answer = await heard(port, whole, b"\r\nGET /si")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answer


async def test_a_request_that_is_whole_may_be_answered_as_late_as_it_is() -> None:
    async with served(request_seconds=0.2) as (app, server, port):
        asked = asyncio.create_task(heard(port, b"GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
        await eventually(lambda: server.server_state.tasks)
        await heard(port, b"GET /half")  # by now the other would have been cut off as well
        app.go_on.set()
        assert (await asked).endswith(b"done")


def silent_client(port: int, path: str) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return client


@pytest.mark.parametrize("path", ["/frames", "/large"])
async def test_a_client_that_does_not_read_is_hung_up_on(path: str) -> None:
    async with served(send_seconds=0.1) as (app, server, port):
        with silent_client(port, path):
            await eventually(lambda: server.server_state.total_requests or app.frames)
            await eventually(lambda: not server.server_state.connections)
        if path == "/frames":
            await asyncio.wait_for(app.stopped.wait(), 20)


async def test_no_more_is_made_for_a_client_than_it_reads() -> None:
    async with served() as (app, server, port):
        with silent_client(port, "/frames"):
            await eventually(lambda: any(each.flow.write_paused for each in server.server_state.connections))  # type: ignore[union-attr]
            await asyncio.sleep(0)
            made = app.frames * len(FRAME)
            # the kernel counts a buffer twice, for what it needs beside the data
            assert made <= 2 * SEND_BUFFER_BYTES + 4 * len(FRAME)


async def test_a_client_that_reads_slowly_gets_all() -> None:
    async with served(send_seconds=0.2) as (_, _, port):
        with silent_client(port, "/large") as client:
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            got = 0
            async with asyncio.timeout(30):
                while got < LARGE:
                    data = await loop.sock_recv(client, 32 * 1024)
                    assert data, f"hung up after {got} bytes"
                    got += len(data)


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
async def test_an_answer_without_a_length_has_no_chunks_in_http_1_0(connection: str) -> None:
    async with served() as (_, _, port):
        head, _, body = (
            await heard(port, f"GET /parts HTTP/1.0\r\nConnection: {connection}\r\n\r\n".encode())
        ).partition(b"\r\n\r\n")
    assert body == b"one two"
    assert b"transfer-encoding" not in head
    assert head.lower().count(b"connection:") == 1


async def test_an_answer_with_a_length_is_as_it_was_in_http_1_0() -> None:
    async with served() as (_, _, port):
        answer = await heard(port, b"POST /size HTTP/1.0\r\nContent-Length: 4\r\n\r\nfour")
    assert b"content-length: 1\r\n" in answer
    assert answer.endswith(b"\r\n\r\n4")
