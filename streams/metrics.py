"""What the worker measures: its Prometheus metrics, and seconds by stage of a batch."""

import time
from collections.abc import Callable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

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
        self.lance_fragments = gauge("thalweg_lance_fragments", "Fragments of the largest vector table.")

    def _factory(self, kind: Callable[..., Any]) -> Callable[..., Any]:
        return lambda name, text, *labels: kind(name, text, labels, registry=self.registry)


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
