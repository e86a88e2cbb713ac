"""What the worker measures, and the small HTTP server that shows it: /metrics, /livez, /readyz."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    make_wsgi_app,
)

from schemas.errors import InUse

LOOPBACK = "127.0.0.1"
NOTE = "note: "  # begins a line of /readyz
_STAGE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class WorkerMetrics:
    """The worker's Prometheus metrics, in a registry of their own. Labels never hold ids."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        counter = self._made(Counter)
        gauge = self._made(Gauge)
        self.documents = counter(
            "thalweg_documents", "Records of the documents topic, by what became of them.", "outcome"
        )
        self.dead_letters = counter("thalweg_dead_letters", "Records sent to the dead letters topic.", "reason")
        self.chunks_embedded = counter("thalweg_chunks_embedded", "Texts that were turned into vectors.")
        self.unknown_fields = counter("thalweg_unknown_fields", "Fields of envelopes that were left out.")
        self.misplaced_records = counter(
            "thalweg_misplaced_records", "Records in another partition than Kafka's default partitioner chooses."
        )
        self.retries = counter("thalweg_retries", "Calls repeated in place after a transient failure.", "target")
        self.stage_seconds = Histogram(
            "thalweg_stage_seconds",
            "Seconds a batch spent in a stage.",
            ["stage"],
            buckets=_STAGE_BUCKETS,
            registry=self.registry,
        )
        self.lag_records = gauge("thalweg_ingest_lag_records", "Records not yet done.", "topic", "partition")
        self.lag_seconds = gauge("thalweg_ingest_lag_seconds", "Age of the oldest record not yet done.", "stage")
        self.store_position = gauge(
            "thalweg_store_position", "Last offset a store holds the effect of.", "store", "topic", "partition"
        )
        self.snapshot_age = gauge("thalweg_snapshot_age_seconds", "Age of the newest graph snapshot.")
        self.lance_fragments = gauge("thalweg_lance_fragments", "Fragments of the largest vector table.")

    def _made(self, kind: Callable[..., Any]) -> Callable[..., Any]:
        return lambda name, text, *labels: kind(name, text, labels, registry=self.registry)


class Health:
    """Whether the worker is ready, and if not, why. Written by the event loop, read by the HTTP threads."""

    def __init__(self, missing: Iterable[str]) -> None:
        """`missing` names what must be up before the worker is ready."""
        self._missing = dict.fromkeys(missing)
        self._notes: list[str] = []
        self._lock = threading.Lock()

    def up(self, part: str) -> None:
        with self._lock:
            self._missing.pop(part, None)

    def down(self, part: str) -> None:
        with self._lock:
            self._missing[part] = None

    def note(self, notes: list[str]) -> None:
        """What a person should know and do, though the worker works; in place of what was noted before."""
        with self._lock:
            self._notes = notes

    def notes(self) -> list[str]:
        with self._lock:
            return list(self._notes)

    def missing(self) -> list[str]:
        with self._lock:
            return list(self._missing)


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class names it
        """Says nothing: a scrape every few seconds is no news."""


class MetricsServer:
    """Serves metrics and health on 127.0.0.1 from a thread."""

    def __init__(self, metrics: WorkerMetrics, health: Health, port: int) -> None:
        """Port 0 takes a free one. Raises InUse."""
        self._health = health
        self._metrics_app = make_wsgi_app(metrics.registry)
        try:
            self._server: WSGIServer = make_server(LOOPBACK, port, self._answer, handler_class=_QuietHandler)
        except OSError as error:
            raise InUse(
                f"Port {port} on {LOOPBACK} is in use. Choose another with --metrics-port, or 0 for a free one."
            ) from error
        self.port = int(self._server.server_port)
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


def _text(start_response: Callable[..., Any], status: str, body: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [body.encode()]


class Stopwatch:
    """Seconds by stage of one batch."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lap_start = clock()
        self.seconds: dict[str, float] = {}

    def restart(self) -> None:
        """The time since the last lap was waiting, and belongs to no stage."""
        self._lap_start = self._clock()

    def lap(self, stage: str) -> None:
        """The time since the last lap belongs to this stage."""
        now = self._clock()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._lap_start
        self._lap_start = now
