"""Prometheus metrics of the service, in base units. Labels are modes, stages, topics and partitions, never ids."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from indexer.runtime.resources import usable_memory_bytes
from query_api.admission import Reason
from schemas.answers import TokenUsage

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
FRESHNESS_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0)

Gauges = Callable[[], Iterable[Metric]]


class ServiceMetrics:
    """One registry for each app, so that several can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.search_seconds = histogram(
            "thalweg_search_seconds",
            "Seconds of a search: each stage, and `total`.",
            ("mode", "stage"),
            buckets=SECONDS_BUCKETS,
        )
        self.searches = counter("thalweg_searches", "Searches by how they ended.", ("mode", "outcome"))
        self.searches_refused = counter(
            "thalweg_searches_refused",
            "Searches refused before they began: `overloaded` (503), `fair_share` (429).",
            ("reason",),
        )
        for reason in get_args(Reason):  # a series that begins at 1 shows no increase
            self.searches_refused.labels(reason=reason)
        self.model_tokens = counter(
            "thalweg_model_tokens",
            "Tokens that the language model read (`prompt`) and wrote (`completion`) for answers, by what the caller "
            "may do: `full`, `read`, `session`; `anyone` where no key is set.",
            ("caller", "kind"),
        )
        gauge("thalweg_memory_limit_bytes", "Memory that this process may use.").set(usable_memory_bytes())
        self.sse_clients = gauge("thalweg_sse_clients", "Streams being read now.")
        self.provenance_dropped = counter(
            "thalweg_provenance_dropped", "Retrievals that could not be kept for the topic."
        )
        self.index_freshness = histogram(
            "thalweg_index_freshness_seconds",
            "From when a document or a deletion was produced until searches here showed it, measured on every one; in "
            "quiet times on a canary, a delete of a document that does not exist.",
            buckets=FRESHNESS_BUCKETS,
        )
        self.broken_records = counter(
            "thalweg_broken_records", "Records that could not be read and were passed over.", ("topic",)
        )
        self.documents_accepted = counter("thalweg_documents_accepted", "Documents published, deletes included.")
        self.redrives = counter(
            "thalweg_dead_letters_redriven",
            "Dead letters that were to be redriven, by what became of them.",
            ("outcome",),
        )

    def count_tokens(self, caller: str, usage: TokenUsage) -> None:
        self.model_tokens.labels(caller, "prompt").inc(usage.prompt_tokens)
        self.model_tokens.labels(caller, "completion").inc(usage.completion_tokens)

    def add_gauges(self, gauges: Gauges) -> None:
        """Gauges that are computed at each scrape."""
        self.registry.register(_Scraped(gauges))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Scraped(Collector):
    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges()

    def describe(self) -> Iterator[Metric]:
        return iter(())


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)


def labelled_gauge(
    name: str, text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, value)
    return family
