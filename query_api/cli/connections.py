"""One connection, with a time for each side: a client that sends half a request, or does not read its answer, is hung
up on. uvicorn has a time only for connections that rest between two requests."""

import asyncio
from typing import Any

from query_api.cli.bad_requests import ProblemProtocol
from query_api.errors import ApiProblem

REQUEST_SECONDS = 20.0

TOO_SLOW = ApiProblem(
    408,
    "Request too slow",
    f"The head of a request, and each further part of its body, is to come within {REQUEST_SECONDS:g} s.",
)


class ServiceProtocol(ProblemProtocol):
    """A whole head is to come within `request_seconds` of the connection or of its first byte, then each part of the
    body within as long. What is written is to be taken within `send_seconds`, or some of it; nothing more is written
    meanwhile, so that a client which does not read costs one frame or one answer.
    """

    def __init__(self, *, request_seconds: float, send_seconds: float, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._request_seconds = request_seconds
        self._send_seconds = send_seconds
        self._late: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
        self._await_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self._await_nothing()
        self._written()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._late is None:  # blank lines before a request are not the beginning of a message
            self._await_more()
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_more()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._await_more()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._await_more()

    def on_message_complete(self) -> None:
        self._await_nothing()
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._watch_buffer()

    def resume_writing(self) -> None:
        self._written()
        super().resume_writing()

    def _await_more(self) -> None:
        self._await_nothing()
        self._late = self.loop.call_later(self._request_seconds, self._hang_up_on_request)

    def _await_nothing(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _hang_up_on_request(self) -> None:
        cycle = self.cycle
        answering = cycle is not None and not cycle.response_complete
        if self.flow.read_paused or (answering and not cycle.more_body):
            self._await_more()  # what was sent waits for the app, not the other way round
        elif self.scope is None or (answering and cycle.response_started):
            self.transport.abort()
        else:
            self.refuse(TOO_SLOW)

    def _watch_buffer(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(self._send_seconds, self._hang_up_on_reader, left)

    def _hang_up_on_reader(self, left: int) -> None:
        if self.transport.get_write_buffer_size() < left:
            self._watch_buffer()
        else:
            self.transport.abort()

    def _written(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
