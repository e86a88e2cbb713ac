"""Running the service in this process: what takes seconds to import first, then the port; the model loads behind it."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import cast

import structlog
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from indexer.runtime.logs import configure_logging
from indexer.runtime.resources import limit_malloc_arenas
from kafka_client.security import tls_context
from query_api.cli.http_protocol import REQUEST_SECONDS, ServiceProtocol
from query_api.settings import ServiceBlock, ServiceSettings
from schemas.errors import InUse, NoAccess, WrongSetting

log = structlog.get_logger(__name__)

BACKLOG = 2_048
SEND_BUFFER_BYTES = 256 * 1024
GRACE_SECONDS = 5
SWITCH_SECONDS = 0.0001
_CHATTY = ("aiokafka", "kafka", "httpx", "sse_starlette", "sentence_transformers")


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
    app = create_app(settings)
    config = server_config(app, settings.service.send_timeout_seconds)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}"
    if sys.stdout.isatty():
        print(f"Thalweg query service: {url}", flush=True)
    else:
        log.info("query service listening", url=url)
    with _exit_zero_on_signals(), listening:
        _Server(config, app).run(sockets=[listening])


def server_config(app: ASGIApp, send_seconds: float, request_seconds: float = REQUEST_SECONDS) -> uvicorn.Config:
    """With the timeouts of `ServiceProtocol`."""
    protocol = partial(ServiceProtocol, send_seconds=send_seconds, request_seconds=request_seconds)
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", protocol),  # only called
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
