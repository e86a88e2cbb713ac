"""Whether the worker is well: readiness over HTTP beside its metrics, and its heartbeat in the data directory."""

import asyncio
import errno
import socket
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from schemas.errors import InUse, WrongSetting
from schemas.hosts import LOOPBACK_NAMES, host_name, is_loopback
from schemas.runtime import BEAT_SECONDS, Phase, WorkerState, read_state, write_state
from streams.ports import LOOPBACK
from streams.runtime.partition_progress import Progress
from streams.worker_log import log

NOTE = "note: "  # begins a line of /readyz
KILLED = "It ended without a message: killed from outside, or for want of memory."


class Health:
    """Whether the worker is ready, and if not, why. Written by the event loop, read by the HTTP threads."""

    def __init__(self, missing: Iterable[str]) -> None:
        """`missing` names what must be up before the worker is ready."""
        self._missing = dict.fromkeys(missing)
        self._notes: list[str] = []
        self._standing: list[str] = []
        self._lock = threading.Lock()

    def up(self, part: str) -> None:
        with self._lock:
            self._missing.pop(part, None)

    def down(self, part: str) -> None:
        with self._lock:
            self._missing[part] = None

    def note(self, notes: list[str]) -> None:
        """Replace the notes: what the operator should know and do, though the worker works."""
        with self._lock:
            self._notes = notes

    def note_for_good(self, note: str) -> None:
        """A note that stays."""
        with self._lock:
            self._standing.append(note)

    def stand_by(self, why: str) -> None:
        """The worker does nothing but wait for an order: that is what it is for, and a note says why."""
        with self._lock:
            self._missing.clear()
            self._standing = [why]

    def notes(self) -> list[str]:
        with self._lock:
            return [*self._standing, *self._notes]

    def missing(self) -> list[str]:
        with self._lock:
            return list(self._missing)


class _Server6(WSGIServer):
    address_family = socket.AF_INET6


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class names it
        """Logs nothing: there is a scrape every few seconds."""


class HealthServer:
    """Serves metrics and health over HTTP from a thread.

    On loopback, requests must be addressed to a name of it: else a web page in a browser on this machine could point a
    name of its own here, and read the answers. On another address scrapers use names that are not known here.
    """

    def __init__(self, registry: CollectorRegistry, health: Health, port: int, host: str = LOOPBACK) -> None:
        """Port 0 takes a free one. Raises InUse, and WrongSetting for an address that is not one of this machine."""
        self._health = health
        self._metrics_app = make_wsgi_app(registry)
        self._hosts = {*LOOPBACK_NAMES, host.lower()} if is_loopback(host) else None
        try:
            self._server: WSGIServer = make_server(
                host,
                port,
                self._answer,
                server_class=_Server6 if ":" in host else WSGIServer,
                handler_class=_QuietHandler,
            )
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise InUse(
                    f"Port {port} on {host} is in use. Choose another with --metrics-port, or 0 for a free one."
                ) from error
            raise WrongSetting(
                f"THALWEG_WORKER__METRICS_HOST is {host!r}, where this machine cannot listen: {error.strerror}."
            ) from error
        self.port = int(self._server.server_port)
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/metrics"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.25}, name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if not self._is_addressed(environ.get("HTTP_HOST", "")):
            names = ", ".join(sorted(self._hosts or ()))
            return _text(
                start_response,
                "421 Misdirected Request",
                f"The worker answers to {names} here. For a scraper on another machine set "
                "THALWEG_WORKER__METRICS_HOST.\n",
            )
        if path == "/metrics":
            answer: Iterable[bytes] = self._metrics_app(environ, start_response)
            return answer
        if path == "/livez":
            return _text(start_response, "200 OK", "alive\n")
        if path == "/readyz":
            missing = self._health.missing()
            notes = "".join(f"{NOTE}{note}\n" for note in self._health.notes())
            if missing:
                return _text(start_response, "503 Service Unavailable", f"waiting for: {', '.join(missing)}\n{notes}")
            return _text(start_response, "200 OK", f"ready\n{notes}")
        return _text(start_response, "404 Not Found", "There is /metrics, /livez and /readyz.\n")

    def _is_addressed(self, header: str) -> bool:
        if self._hosts is None:
            return True
        try:
            return host_name(header) in self._hosts
        except ValueError:
            return False


def _text(start_response: Callable[..., Any], status: str, body: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [body.encode()]


class Heartbeat:
    """Writes `schemas.runtime.WorkerState` while the worker lives. Only for the holder of the worker's lock.

    A file that cannot be written is not a reason to stop: it is logged once, and tried again.
    """

    def __init__(
        self, data_dir: Path, health: Health, progress: Progress, now_ms: Callable[[], int] | None = None
    ) -> None:
        """Reads how the worker before ended."""
        self._data_dir = data_dir
        self._health = health
        self._progress = progress
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._failure: str | None = None
        self._crashes_ms: tuple[int, ...] = ()
        self.metrics_url = ""
        self._phase: Phase = "starting"
        self._could_write = True
        before = read_state(data_dir)
        if before is not None:
            self._failure, self._crashes_ms = before.last_failure, before.crashes_ms
            if before.phase != "stopped":
                self._crashes_ms = (*before.crashes_ms, before.at_ms)
            if before.phase in ("starting", "running"):
                self._failure = KILLED

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.to_thread(self.beat)
            await asyncio.sleep(BEAT_SECONDS)

    def beat(self) -> None:
        missing = tuple(self._health.missing())
        if self._phase == "starting" and not missing:
            self._phase = "running"
        self._write(missing)

    def failed(self, why: str) -> None:
        """The worker ends with a failure; the first reason counts."""
        if self._phase != "failed":
            self._phase, self._failure = "failed", why
            self._write()

    def stopped(self) -> None:
        """The worker ends on request, unless it had failed before."""
        if self._phase != "failed":
            self._phase = "stopped"
            self._write()

    def _write(self, missing: tuple[str, ...] = ()) -> None:
        state = WorkerState(
            at_ms=self._now_ms(),
            phase=self._phase,
            missing=missing,
            notes=tuple(self._health.notes()),
            metrics_url=self.metrics_url,
            waiting_for=dict(self._progress.waiting_for),
            crashes_ms=self._crashes_ms,
            last_failure=self._failure,
        )
        try:
            write_state(self._data_dir, state)
        except OSError as error:
            if self._could_write:
                log.warning(
                    "the worker's state cannot be written, so the query service cannot report it", error=str(error)
                )
            self._could_write = False
        else:
            self._could_write = True
