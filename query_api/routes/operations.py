"""`/livez`, `/readyz`, `/metrics`, `/v1/status`, `/v1/cache`: the state of the service."""

import time
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import psutil
from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from indexer.errors import DamagedStore, TransientStoreError
from kafka_client.topic_lag import Lag
from query_api.index.document_status import IndexFreshness
from query_api.index.manager import reached_token
from query_api.routes.parameters import ServiceOf
from query_api.service_context import Service
from query_api.service_health import readiness
from query_api.service_metrics import CONTENT_TYPE
from schemas.api import (
    CacheCleared,
    CacheStatistics,
    Freshness,
    OpenTransaction,
    PartitionLag,
    Readiness,
    ServiceStatus,
    UnreadableBatchStatus,
)

router = APIRouter(tags=["operations"])


@router.get("/livez", summary="The process is alive", response_class=PlainTextResponse)
async def livez() -> str:
    return "alive\n"


@router.get(
    "/readyz",
    summary="Searches are answered",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "Not yet; `reasons` say why."}},
)
async def readyz(service: ServiceOf) -> Response:
    """Stores open, model loaded, and lag under THALWEG_SERVICE__MAX_LAG_SECONDS where that is set. It stays ready while
    Kafka is unavailable: searches go on."""
    state = readiness(service)
    return JSONResponse(state.model_dump(), 200 if state.ready else 503)


@router.get("/metrics", summary="Prometheus metrics", response_class=PlainTextResponse)
async def metrics(service: ServiceOf) -> Response:
    return Response(service.metrics.text(), media_type=CONTENT_TYPE)


@router.get("/v1/status", summary="The state of the service")
async def status(service: ServiceOf) -> ServiceStatus:
    """Positions reached against the log's end, counts, memory."""
    served, connection = service.snapshots.served, service.locate_broker()
    admission, encoder = service.admission, service.model.encoder
    return ServiceStatus(
        version=service.version,
        uptime_seconds=round(service.uptime_seconds, 1),
        installation=service.installation or None,
        data_dir=str(service.settings.storage.data_dir.absolute()),
        kafka_cluster_id=service.log_identity.cluster_id or None,
        readiness=readiness(service),
        kafka_servers=connection.bootstrap_servers if connection else None,
        generation=served.generation.name if served else None,
        graph_base_position=served.graph.base_position if served else None,
        lag_known_seconds_ago=_rounded(service.log_watch.seconds_since_answer),
        freshness=_freshness(service.snapshots.freshness),
        worker=service.worker_watch.status(),
        dead_letters_open=service.dead_letters.open_count(),
        dead_letters_open_by_reason=service.dead_letters.open_reasons(),
        dead_letters_last_day=service.dead_letters.count,
        dead_letters_by_reason=service.dead_letters.reasons,
        disk_free_bytes=service.worker_watch.disk_free_bytes,
        unreadable_batches=[
            UnreadableBatchStatus.model_validate(vars(each) | {"message": str(each)})
            for each in service.unreadable.found
        ],
        open_transactions=[OpenTransaction(**asdict(each)) for each in service.log_watch.open_transactions],
        damage=[str(each) for each in service.snapshots.damage.damage],
        healing=service.worker_watch.healing,
        provenance_buffered=len(service.provenance),
        provenance_dropped=service.provenance.dropped,
        streams_open=service.streams.reading,
        searches_running=admission.running,
        searches_waiting=admission.waiting,
        searches_refused=admission.refused.total(),
        memory_bytes=psutil.Process().memory_info().rss,
        embedding_model=encoder.model if encoder else None,
        language_model=service.settings.language_model.model if service.answer_writer else None,
        **await _of_snapshot(service),
    )


async def _of_snapshot(service: Service) -> dict[str, Any]:
    """What of the state searches read: nothing while there is no snapshot."""
    snapshot, served = service.snapshots.current, service.snapshots.served
    if snapshot is None or served is None:
        unknown = ("positions", "graph_position", "lag_records", "lag_seconds", "graph_bytes_per_edge")
        return dict.fromkeys(unknown) | {"lag": [], "table_versions": {}, "counts": {}}
    documents, tables, memory = service.topics.documents, snapshot.text, snapshot.graph.memory()
    counts: dict[str, int] = {}
    with suppress(DamagedStore, TransientStoreError):  # the rest is reported all the same
        counts = await service.read(tables.counts)
        made = tables.fields.n_made
        counts |= {"documents": max(0, counts["documents"] - made), "hand_made": made}  # tables may be older
    counts |= {"graph_documents": snapshot.graph.n_documents, "nodes": memory.nodes, "edges": memory.edges}
    searchable, in_graph = service.log_watch.lag(documents, snapshot.reached), {0: snapshot.graph.position}
    return {
        "positions": reached_token(snapshot) or None,
        "graph_position": snapshot.graph.position,
        "lag": [
            *_partitions(service, documents, snapshot.reached, searchable),
            *_partitions(service, served.topic, in_graph, service.log_watch.lag(served.topic, in_graph)),
        ],
        "lag_records": sum(each.records for each in searchable.values()) if searchable else None,
        "lag_seconds": _rounded(max((each.seconds for each in searchable.values()), default=None)),
        "table_versions": dict(tables.table_versions),
        "counts": counts,
        "graph_bytes_per_edge": round(memory.bytes_per_edge, 2) if memory.edges else None,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _freshness(measured: IndexFreshness) -> Freshness | None:
    if measured.newest is None:
        return None
    seconds, at = measured.newest
    return Freshness(seconds=round(seconds, 3), measured_seconds_ago=round(max(0.0, time.time() - at), 1))


def _partitions(service: Service, topic: str, reached: dict[int, int], lags: dict[int, Lag]) -> list[PartitionLag]:
    ends = service.log_watch.ends(topic)
    return [
        PartitionLag(
            topic=topic,
            partition=partition,
            reached=reached.get(partition, -1),
            end=ends.get(partition),
            records=lag.records if lag else None,
            seconds=_rounded(lag.seconds if lag else None),
        )
        for partition in sorted(reached.keys() | ends.keys())
        for lag in [lags.get(partition)]
    ]


@router.get("/v1/cache", summary="The cache of results")
async def cache_statistics(service: ServiceOf) -> CacheStatistics:
    """Size, hits and misses."""
    return service.cache.statistics()


@router.delete("/v1/cache", summary="Clear the cache of results")
async def clear_cache(service: ServiceOf) -> CacheCleared:
    """For measurements; the cache is never stale."""
    return CacheCleared(removed=service.cache.clear())
