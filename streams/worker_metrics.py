"""What the worker measures: its Prometheus metrics, and seconds by stage of a batch."""

import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

from indexer.runtime.resources import usable_memory_bytes
from schemas.errors import DeadLetterReason
from schemas.receipts import Outcome

_STAGE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class WorkerMetrics:
    """In a registry of their own. Labels never hold ids."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        counter = self._factory(Counter)
        gauge = self._factory(Gauge)
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
        self.graph_publications = counter(
            "thalweg_graph_publications", "Graphs published for Cypher, done or failed.", "outcome"
        )
        self.lance_fragments = gauge("thalweg_lance_fragments", "Fragments of the largest vector table.")
        gauge("thalweg_memory_limit_bytes", "Memory that this process may use.").set(usable_memory_bytes())
        for outcome in ("done", "failed"):
            self.graph_publications.labels(outcome)
        for outcome in get_args(Outcome):  # a series that begins at 1 shows no increase
            self.documents.labels(outcome)
        for reason in get_args(DeadLetterReason):
            self.dead_letters.labels(reason)

    def measure_disk(self, folder: Path) -> None:
        """At each scrape, the size of the folder's file system and what this user has left there; NaN while it cannot
        be asked. May be called once."""
        gauge = self._factory(Gauge)
        free = gauge("thalweg_disk_free_bytes", "Bytes left on the disk of the data directory.")
        size = gauge("thalweg_disk_size_bytes", "Bytes of the disk of the data directory.")
        free.set_function(lambda: _disk(folder)[1])
        size.set_function(lambda: _disk(folder)[0])

    def _factory(self, kind: Callable[..., Any]) -> Callable[..., Any]:
        return lambda name, text, *labels: kind(name, text, labels, registry=self.registry)


def _disk(folder: Path) -> tuple[float, float]:
    """Size and free bytes."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return math.nan, math.nan
    return usage.used + usage.free, usage.free  # what is reserved for root is nobody's to fill


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
