"""`/v1/retrievals`: what searches looked at and why they answered so, and what people say of their hits."""

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse

from indexer.errors import MalformedCursor
from query_api.analytics.cursors import cursor_after, place_of
from query_api.analytics.views import detail, summary
from query_api.context import Service, service_of
from query_api.errors import ApiProblem, problem_responses
from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord, RecordRefused
from query_api.middleware.model_route import ModelRoute
from query_api.routes.since import Since, first_ms
from schemas.analytics import FeedbackAccepted, FeedbackRequest, RetrievalDetail, RetrievalPage
from schemas.provenance import Feedback, Retrieval, RetrievedHit, encode_feedback

router = APIRouter(tags=["retrievals"], route_class=ModelRoute)

ServiceOf = Annotated[Service, Depends(service_of)]


@router.get("/v1/retrievals", summary="List retrievals")
async def list_retrievals(
    service: ServiceOf,
    collection: Annotated[str | None, Query(max_length=128, description="Only searches of this one.")] = None,
    since: Since = None,
    cursor: Annotated[str | None, Query(max_length=8192, description="The `next_cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RetrievalPage:
    """Newest first, as far as the provenance topic has been taken in: a moment behind the answers."""
    from_ms = first_ms(since)
    try:
        before = place_of(cursor) if cursor else None
    except MalformedCursor as error:
        raise ApiProblem(400, "Malformed cursor", str(error)) from error
    usage = service.snapshot().text.usage
    found = await service.read(lambda: usage.newest(collection, from_ms, before, limit + 1))
    page = found[:limit]
    return RetrievalPage(
        retrievals=[summary(each) for each in page], next_cursor=cursor_after(page[-1]) if len(found) > limit else None
    )


@router.get("/v1/retrievals/{retrieval_id}", summary="The provenance of a retrieval", responses=problem_responses(404))
async def get_retrieval(retrieval_id: str, service: ServiceOf) -> RetrievalDetail:
    """Query, parameters, snapshot, and each hit's ranks and scores by channel, its path and its source position; and
    what was said of its hits."""
    found = await _retrieval(service, retrieval_id)
    usage = service.snapshot().text.usage
    return detail(found, await service.read(lambda: usage.feedback_on_retrieval(retrieval_id)))


@router.post(
    "/v1/retrievals/{retrieval_id}/feedback",
    summary="Say how helpful a hit was",
    status_code=202,
    response_model=FeedbackAccepted,
    responses=problem_responses(404),
)
async def give_feedback(retrieval_id: str, feedback: FeedbackRequest, service: ServiceOf) -> JSONResponse:
    """Goes to the provenance topic. What the same caller says of the same hit later takes its place."""
    hit = _hit(await _retrieval(service, retrieval_id), feedback)
    event = Feedback(
        retrieval_id=retrieval_id,
        chunk_id=hit.chunk_id,
        collection=hit.collection,
        document_id=hit.document_id,
        rank=hit.rank,
        rating=feedback.value,
        at_ms=time.time_ns() // 1_000_000,
        comment=feedback.comment,
        caller=feedback.caller,
    )
    record = OutgoingRecord(retrieval_id.encode(), encode_feedback(event))
    try:
        (position,) = await service.writer.publish(service.topics.provenance, [record])
    except (BrokerUnavailable, RecordRefused) as error:
        raise ApiProblem(
            503,
            "Log out of reach",
            f"{error}. Send it again in a while: twice does no harm.",
            retry_after_seconds=5,
        ) from error
    accepted = FeedbackAccepted(
        position=str(position), retrieval_id=retrieval_id, chunk_id=hit.chunk_id, rating=feedback.value
    )
    return JSONResponse(accepted.model_dump(), 202)


async def _retrieval(service: Service, retrieval_id: str) -> Retrieval:
    """Raises ApiProblem 404."""
    found = service.provenance.recent(retrieval_id)
    if found is None:
        tables = service.snapshot().text
        found = await service.read(lambda: tables.retrieval(retrieval_id))
    if found is None:
        raise ApiProblem(
            404,
            "No such retrieval",
            f"There is no retrieval {retrieval_id[:80]!r}: an answer's `retrieval_id` is looked up here, "
            "for as long as the provenance topic is kept.",
        )
    return found


def _hit(retrieval: Retrieval, feedback: FeedbackRequest) -> RetrievedHit:
    """The hit that is named. Raises ApiProblem 422 for one that the retrieval does not have."""
    for hit in retrieval.hits:
        if feedback.chunk_id == hit.chunk_id or feedback.rank == hit.rank:
            return hit
    named = f"rank {feedback.rank}" if feedback.chunk_id is None else f"the chunk {feedback.chunk_id[:80]!r}"
    raise ApiProblem(
        422,
        "No such hit",
        f"The retrieval {retrieval.retrieval_id[:80]!r} has no hit with {named}; it has {len(retrieval.hits)}, which "
        "GET /v1/retrievals/{id} lists.",
    )
