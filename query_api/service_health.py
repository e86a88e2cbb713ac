"""How the service is: whether it is ready, and its gauges."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from query_api.index.unreadable_batch_monitor import too_late
from query_api.service_context import Service
from query_api.service_metrics import counter, gauge, labelled_gauge
from schemas.api import Readiness

OPEN_TRANSACTION_SECONDS = 10.0  # a shorter one is not worth a note


def readiness(service: Service) -> Readiness:
    """Ready means: a search would be answered, and not from too long ago. Kafka or an endpoint of vectors out of reach,
    a worker that is gone and dead letters are in `notes`: searches go on without it."""
    snapshots = service.snapshots
    missing = (
        None if snapshots.current is not None else snapshots.problem,
        service.model.problem(service.manifest),
        _lag_problem(service),
    )
    reasons = [reason for reason in missing if reason]
    return Readiness(
        ready=not reasons,
        reasons=reasons,
        notes=list(_notes(service)),
        kafka="reachable" if service.log_watch.reachable else "unreachable",
        dead_letters_note=service.dead_letters.note(),
        dead_letters_open_last_day=service.dead_letters.open_count(service.dead_letters.of_last_day()),
        snapshot_age_seconds=None if snapshots.current is None else round(snapshots.age_seconds, 3),
        graph_position=None if snapshots.current is None else snapshots.current.graph.position,
    )


def _lag_problem(service: Service) -> str | None:
    limit, snapshot = service.settings.service.max_lag_seconds, service.snapshots.current
    if limit is None or snapshot is None:
        return None
    return too_late(service.log_watch.lag(service.topics.documents, snapshot.reached).values(), limit)


def _notes(service: Service) -> Iterator[str]:
    snapshots, encoder, reranker, log_watch = (
        service.snapshots,
        service.model.encoder,
        service.reranker,
        service.log_watch,
    )
    if snapshots.current is not None and snapshots.problem:
        yield snapshots.problem
    yield from filter(None, (snapshots.catching_up, snapshots.damage.sentence()))
    if encoder is not None and encoder.problem:
        yield f"{encoder.problem} Searches continue by words and by the graph, without vectors."
    if reranker is not None and reranker.problem:
        yield f"{reranker.problem} Searches keep the order they have without it."
    if (other_log := service.other_log()) is not None:
        yield f"{other_log} Searches go on; writes are refused."
    if not log_watch.reachable:
        yield f"Kafka: {log_watch.problem}. Searches go on; writes are refused."
    elif log_watch.missing:
        yield f"Kafka answers, but {log_watch.missing}."
    elif snapshots.served is not None and snapshots.served.tail.problem:
        yield f"The graph is not followed: {snapshots.served.tail.problem}."
    yield from service.worker_watch.notes()
    if (refused := service.dead_letters.note()) is not None:
        yield refused
    yield from map(str, service.unreadable.found)
    yield from (str(held) for held in log_watch.open_transactions if held.seconds > OPEN_TRANSACTION_SECONDS)


def gauges(service: Service) -> Iterator[Metric]:
    """What is read off the state at each scrape."""
    yield gauge("thalweg_provenance_buffered", "Retrievals waiting to be sent.", len(service.provenance))
    yield gauge("thalweg_kafka_reachable", "1 while Kafka answers.", float(service.log_watch.reachable))
    alive = service.worker_watch.status().state in ("starting", "running")
    yield gauge("thalweg_worker_alive", "1 while the worker of the data directory gives signs of life.", float(alive))
    yield gauge("thalweg_ready", "1 when searches are answered.", float(readiness(service).ready))
    cache = service.cache.statistics()
    yield gauge("thalweg_search_cache_entries", "Answers in the cache of results.", cache.entries)
    yield gauge("thalweg_search_cache_bytes", "Size of the answers in the cache of results.", cache.bytes)
    yield counter("thalweg_search_cache_hits", "Searches answered from the cache of results.", cache.hits)
    yield counter("thalweg_search_cache_misses", "Searches not found in the cache of results.", cache.misses)
    yield counter("thalweg_search_cache_evictions", "Answers that had to make room.", cache.evictions)
    yield gauge("thalweg_search_copies", "Processes that search beside the service's own.", service.searches.workers)
    yield counter("thalweg_searches_in_copies", "Searches begun in a process beside it.", service.searches.forked)
    yield gauge("thalweg_search_queue_length", "Searches that wait for their turn.", service.admission.waiting)
    yield gauge("thalweg_searches_running", "Searches that run now.", service.admission.running)
    yield gauge(
        "thalweg_search_expected_wait_seconds",
        "How long one more search would wait for its turn.",
        service.admission.expected_wait_seconds,
    )
    yield gauge("thalweg_cursor_snapshots", "Snapshots kept for cursors.", len(service.pinned))
    snapshot, served = service.snapshots.current, service.snapshots.served
    if snapshot is None or served is None:
        return
    yield gauge(
        "thalweg_snapshot_age_seconds",
        "Since the snapshot that searches read was last known to show all that the tables hold.",
        service.snapshots.age_seconds,
    )
    documents = service.topics.documents
    positions = [(("lance", documents, str(at)), float(offset)) for at, offset in snapshot.reached.items()]
    positions.append((("graph_view", served.topic, "0"), float(snapshot.graph.position)))
    yield labelled_gauge(
        "thalweg_store_position",
        "The last offset that what searches read has applied.",
        ("store", "topic", "partition"),
        positions,
    )
    lags = {topic: service.log_watch.lag(topic, applied) for topic, applied in service.snapshots.applied().items()}
    yield labelled_gauge(
        "thalweg_ingest_lag_records",
        "Records that searches do not show yet.",
        ("topic", "partition"),
        [
            ((topic, str(partition)), float(lag.records))
            for topic, by_partition in lags.items()
            for partition, lag in by_partition.items()
        ],
    )
    yield labelled_gauge(
        "thalweg_ingest_lag_seconds",
        "How long the oldest record that searches do not show has waited.",
        ("stage",),
        [
            ((stage,), max(lag.seconds for lag in lags[topic].values()))
            for stage, topic in (("searchable", documents), ("in_graph_view", served.topic))
            if lags[topic]  # nobody knows it while Kafka is away
        ],
    )
