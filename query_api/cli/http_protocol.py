"""The HTTP protocol of one connection: refusals as problems, limits of the head, and timeouts for slow clients.

httptools holds the positions of a URL in 16 bits; a longer one ends the parsing before there is a request for the app.
uvicorn takes its protocol as a class (`Config(http=…)`) and has a timeout only for connections that are idle between
two requests.
"""

import asyncio
from http import HTTPStatus
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from query_api.errors import MEDIA_TYPE, ApiProblem

MAX_URL_BYTES = 65_535
MAX_HEAD_BYTES = 64 * 1024 + MAX_URL_BYTES
REQUEST_SECONDS = 20.0

TOO_LONG = ApiProblem(
    414,
    "Address too long",
    f"The address of a request has at most {MAX_URL_BYTES:,} bytes. POST /v1/search takes a question in its body.",
)
HEAD_TOO_LARGE = ApiProblem(
    431,
    "Headers too large",
    f"The headers of a request with its address have at most {MAX_HEAD_BYTES:,} bytes. Send fewer or shorter ones.",
)
NO_HTTP = ApiProblem(400, "Not HTTP", "The request is not HTTP/1.1; look at what was sent, or at a proxy in between.")


TOO_SLOW = ApiProblem(
    408,
    "Request too slow",
    f"The head of a request, and each further part of its body, is to come within {REQUEST_SECONDS:g} s.",
)


class HeadRefused(Exception):
    """Ends the parsing; uvicorn answers."""


class ProblemProtocol(HttpToolsProtocol):
    """Refuses an address or headers as soon as they are too long."""

    url = b""
    refusal = NO_HTTP
    in_head = False
    head_bytes = 0
    header_bytes = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.in_head and not self.transport.is_closing():  # all of it is of the head
            self.head_bytes += len(data)
            if self.head_bytes > MAX_HEAD_BYTES:
                self.refuse(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head, self.head_bytes, self.header_bytes = True, 0, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_URL_BYTES:
            self.refusal = TOO_LONG
            raise HeadRefused

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self.header_bytes += len(name) + len(value)
        if self.header_bytes > MAX_HEAD_BYTES:
            self.refusal = HEAD_TOO_LARGE
            raise HeadRefused

    def on_headers_complete(self) -> None:
        self.in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Overrides uvicorn's answer to what it could not parse."""
        del msg
        self.refuse(self.refusal)

    def refuse(self, problem: ApiProblem) -> None:
        """Answer with the problem instead of the app, and close the connection."""
        body = msgspec.json.encode(problem.body())
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class ServiceProtocol(ProblemProtocol):
    """Timeouts: `request_seconds` for the whole head, from the connection or its first byte, and then for each part of
    the body; `send_seconds` for the client to read any of what was written. Nothing more is written meanwhile, so that
    a client which does not read costs one frame or one answer.
    """

    def __init__(self, *, request_seconds: float, send_seconds: float, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._request_seconds = request_seconds
        self._send_seconds = send_seconds
        self._request_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
        self._start_request_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_request_timer()
        self._stop_send_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._request_timer is None:  # blank lines may precede a request
            self._start_request_timer()
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_request_timer()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._start_request_timer()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._start_request_timer()

    def on_message_complete(self) -> None:
        self._stop_request_timer()
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._send_timer is None:
            self._start_send_timer()

    def resume_writing(self) -> None:
        self._stop_send_timer()
        super().resume_writing()

    def _start_request_timer(self) -> None:
        self._stop_request_timer()
        self._request_timer = self.loop.call_later(self._request_seconds, self._request_timed_out)

    def _stop_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _request_timed_out(self) -> None:
        cycle = self.cycle
        answering = cycle is not None and not cycle.response_complete
        if self.flow.read_paused or (answering and not cycle.more_body):
            self._start_request_timer()  # the app is the slow side
        elif self.scope is None or (answering and cycle.response_started):
            self.transport.abort()
        else:
            self.refuse(TOO_SLOW)

    def _start_send_timer(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._send_timer = self.loop.call_later(self._send_seconds, self._send_timed_out, left)

    def _send_timed_out(self, left: int) -> None:
        if self.transport.get_write_buffer_size() < left:
            self._start_send_timer()
        else:
            self.transport.abort()

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
