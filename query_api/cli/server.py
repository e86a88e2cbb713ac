"""Running the service in this process: slow imports first, then the port, then the model; its HTTP/1.1 limits."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from types import FrameType

import msgspec
import structlog
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Message
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from indexer.runtime.logs import configure_logging
from indexer.runtime.resources import limit_malloc_arenas
from kafka_client.security import tls_context
from query_api.errors import MEDIA_TYPE, ApiProblem
from query_api.settings import ServiceBlock, ServiceSettings
from schemas.errors import InUse, NoAccess, WrongSetting
from schemas.runtime import announced, reachable

MAX_URL_BYTES = 65_535
MAX_HEAD_BYTES = 64 * 1024 + MAX_URL_BYTES
REQUEST_SECONDS = 20.0
SEND_SECONDS = 30.0  # a client that reads nothing of an answer for so long is disconnected

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


class Http10Cycle(RequestResponseCycle):
    """An answer without a length ends with its connection: HTTP/1.0 has no chunks."""

    is_unframed = False

    async def send(self, message: Message) -> None:  # type: ignore[override]
        if message["type"] == "http.response.start":
            self.is_unframed = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if self.is_unframed:
                self.chunked_encoding = self.keep_alive = False
        elif self.is_unframed:
            self.expected_content_length = len(message.get("body", b""))  # of this part, which is all that is checked
        await super().send(message)  # type: ignore[arg-type]


class ServiceProtocol(HttpToolsProtocol):
    """Refuses an address or headers as soon as they are too long. Timeouts: `request_seconds` for the whole head, from
    the connection or its first byte, and then for each part of the body; `send_seconds` for the client to read any of
    what was written. Nothing more is written meanwhile, so that a client which does not read costs one frame or one
    answer.
    """

    request_seconds, send_seconds = REQUEST_SECONDS, SEND_SECONDS
    url = b""
    refusal = NO_HTTP
    in_head = False
    head_bytes = header_bytes = 0
    request_timer: asyncio.TimerHandle | None = None
    send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
        self._start_request_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_request_timer()
        self._stop_send_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.request_timer is None:  # blank lines may precede a request
            self._start_request_timer()
        super().data_received(data)
        if self.in_head and not self.transport.is_closing():  # all of it is of the head
            self.head_bytes += len(data)
            if self.head_bytes > MAX_HEAD_BYTES:
                self.refuse(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head, self.head_bytes, self.header_bytes = True, 0, 0
        self._start_request_timer()

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
        if self.scope["http_version"] == "1.0":
            self.cycle.__class__ = Http10Cycle  # its task has not begun
        self._start_request_timer()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._start_request_timer()

    def on_message_complete(self) -> None:
        self._stop_request_timer()
        super().on_message_complete()

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

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.send_timer is None:
            self._start_send_timer()

    def resume_writing(self) -> None:
        self._stop_send_timer()
        super().resume_writing()

    def _start_request_timer(self) -> None:
        self._stop_request_timer()
        self.request_timer = self.loop.call_later(self.request_seconds, self._request_timed_out)

    def _stop_request_timer(self) -> None:
        if self.request_timer is not None:
            self.request_timer.cancel()
            self.request_timer = None

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
        self.send_timer = self.loop.call_later(self.send_seconds, self._send_timed_out, left)

    def _send_timed_out(self, left: int) -> None:
        if self.transport.get_write_buffer_size() < left:
            self._start_send_timer()
        else:
            self.transport.abort()

    def _stop_send_timer(self) -> None:
        if self.send_timer is not None:
            self.send_timer.cancel()
            self.send_timer = None


log = structlog.get_logger(__name__)

BACKLOG = 2_048
SEND_BUFFER_BYTES = 256 * 1024
GRACE_SECONDS = 5
SWITCH_SECONDS = 0.0001
_CHATTY = ("aiokafka", "kafka", "httpx", "mcp", "sse_starlette", "sentence_transformers")


def serve(settings: ServiceSettings, log_level: str) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises InUse, NoAccess or WrongSetting when port or folder cannot be used."""
    configure_logging(log_level, chatty=dict.fromkeys(_CHATTY, logging.ERROR))
    limit_malloc_arenas()
    check_data_dir(settings)
    tls_context(settings.kafka)  # raises where its files cannot be used
    _limit_blas_threads()
    from query_api.app import create_app  # imports numpy and the stores, which takes seconds

    listening = bind(settings.service)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}"
    announcement = announced(
        settings.storage.data_dir,
        f"service-{port}",
        kafka=settings.kafka.bootstrap_servers,
        service_url=f"http://{reachable(host)}:{port}",
    )
    with listening, announcement as problem:
        if problem:
            log.warning(problem)
        app = create_app(settings)  # which knows the installation by what is announced
        config = server_config(app)
        if sys.stdout.isatty():
            print(f"Thalweg query service: {url}", flush=True)
        else:
            log.info("query service listening", url=url)
        with _exit_zero_on_signals():
            _Server(config, app).run(sockets=[listening])


def server_config(app: ASGIApp, protocol: type[ServiceProtocol] = ServiceProtocol) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
    )


class _Server(uvicorn.Server):
    """uvicorn waits for open requests before it stops the app; those that wait for a write to become searchable are
    answered first, with a 503 and a sentence."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        service = getattr(self._app.state, "service", None)
        if service is not None:
            service.snapshots.stop_waiting()
        await super().shutdown(sockets)


def _limit_blas_threads() -> None:
    """Searches run beside each other, each on one core: a product split over all cores waits for the slowest, and the
    event loop should not wait 5 ms for a thread that computes. To be called before numpy is imported."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.setswitchinterval(SWITCH_SECONDS)


def bind(block: ServiceBlock) -> socket.socket:
    """The bound socket. Raises InUse, NoAccess or WrongSetting, saying what to do."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            block.host, block.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise WrongSetting(f"There is no address {block.host!r}: {error.strerror}. Set --host to one.") from error
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # of each connection, else up to 4 MB
    try:
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise InUse(
                f"Port {block.port} on {block.host} is in use. Stop what listens there, or choose another with --port."
            ) from error
        if error.errno in {errno.EACCES, errno.EPERM}:
            raise NoAccess(f"This user may not listen on port {block.port}: choose one above 1023.") from error
        raise WrongSetting(f"Cannot listen on {block.host}:{block.port}: {error.strerror}.") from error
    return listening


def check_data_dir(settings: ServiceSettings) -> None:
    """Raises NoAccess for a data directory that is there and cannot be read, WrongSetting for one that is a file."""
    folder = settings.storage.data_dir
    if folder.exists() and not folder.is_dir():
        raise WrongSetting(f"The data directory {folder} is a file: name a folder with --data-dir.")
    if folder.exists() and not os.access(folder, os.R_OK | os.X_OK):
        raise NoAccess(f"No permission to read {folder}: give this user access, or name another with --data-dir.")


@contextmanager
def _exit_zero_on_signals() -> Iterator[None]:
    """uvicorn stops at a signal and then raises it once more; a clean stop is to end with exit code 0."""

    def nothing(_signal: int, _frame: FrameType | None) -> None:
        return

    before = {each: signal.signal(each, nothing) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
