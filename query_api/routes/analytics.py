"""`/v1/analytics`: popular chunks, frequent and zero-result queries, latencies, over the recorded retrievals."""

from typing import Annotated

from fastapi import APIRouter, Query

from query_api.errors import ApiProblem, problem_responses
from query_api.routes.parameters import ServiceOf, Since, first_ms
from query_api.usage_analytics import (
    chunk_impressions,
    feedback_counts,
    feedback_shown,
    popular_chunks,
    query_analytics,
)
from schemas.analytics import ChunkStatistics, PopularChunks, QueryAnalytics

router = APIRouter(prefix="/v1/analytics", tags=["analytics"])

Limit = Annotated[int, Query(ge=1, le=1_000)]

SHOWN_FEEDBACK = 20


@router.get("/popular-chunks", summary="The chunks that are hits most often")
async def get_popular_chunks(
    service: ServiceOf,
    collection: Annotated[
        str | None, Query(max_length=128, description="Of documents in this one; of all when left out.")
    ] = None,
    since: Since = None,
    limit: Limit = 20,
) -> PopularChunks:
    """Of documents that are still there, with mean rank and feedback."""
    from_ms = first_ms(since)
    tables = service.snapshot().text
    return await service.read(lambda: popular_chunks(tables.usage, tables, collection, from_ms, limit))


@router.get("/chunks/{chunk_id}", summary="How a chunk is used", responses=problem_responses(404))
async def get_chunk_statistics(chunk_id: str, service: ServiceOf) -> ChunkStatistics:
    """How often it was a hit, its mean rank, when it was last shown, and feedback; also of a chunk that is gone."""
    tables = service.snapshot().text

    def look() -> ChunkStatistics:
        feedback = tables.usage.feedback_on_chunks([chunk_id])
        return ChunkStatistics(
            chunk_id=chunk_id,
            **chunk_impressions(tables.usage, chunk_id).fields(),
            feedback=feedback_counts(feedback),
            live=chunk_id in tables.chunks([chunk_id]),
            latest_feedback=[feedback_shown(each) for each in reversed(feedback[-SHOWN_FEEDBACK:])],
        )

    statistics = await service.read(look)
    if not statistics.count and not statistics.live:
        raise ApiProblem(
            404, "No such chunk", f"No chunk {chunk_id[:80]!r} is in the index or was ever a hit; hits hold their ids."
        )
    return statistics


@router.get("/queries", summary="What is asked, and how long it takes")
async def get_query_analytics(
    service: ServiceOf,
    collection: Annotated[str | None, Query(max_length=128, description="Only searches of this one.")] = None,
    since: Since = None,
    limit: Limit = 20,
) -> QueryAnalytics:
    """The most frequent questions, those most often without a hit, and percentiles of latency by mode."""
    from_ms = first_ms(since)
    usage = service.snapshot().text.usage
    return await service.read(lambda: query_analytics(usage, collection, from_ms, limit))
