"""Clients that send half a request or do not read their answer, on a real socket."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from query_api.cli.server import SEND_BUFFER_BYTES, bind, server_config
from query_api.settings import ServiceBlock
from tests.waiting import eventually

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
        ]
        self.asgi = Starlette(routes=routes)

    async def _size(self, request: Request) -> Response:
        return Response(str(len(await request.body())))

    async def _large(self, _: Request) -> Response:
        return Response(b"x" * LARGE)

    async def _slow(self, _: Request) -> Response:
        await self.go_on.wait()
        return Response("done")

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
        server = uvicorn.Server(server_config(app.asgi, send_seconds, request_seconds))
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
