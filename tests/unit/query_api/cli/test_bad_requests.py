"""What uvicorn cannot parse, as bytes on a connection that is a double, and what the caller reads."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from uvicorn.server import ServerState

from query_api.cli.bad_requests import MAX_URL_BYTES, ProblemProtocol
from query_api.cli.server import server_config


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
    config = server_config(FastAPI(), send_seconds=30)
    config.load()
    protocol = config.http_protocol_class(config=config, server_state=ServerState(), app_state={})
    assert isinstance(protocol, ProblemProtocol)
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
