"""`/v1/retrievals`: the provenance of searches, and feedback on their hits."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from query_api.errors import ApiProblem, log_unavailable, problem_responses
from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord, RecordRefused
from query_api.middleware import ModelRoute
from query_api.routes.parameters import ServiceOf, Since, first_ms
from query_api.service_context import Service
from query_api.usage_analytics import feedback_shown
from schemas.analytics import (
    FeedbackAccepted,
    FeedbackRequest,
    RetrievalDetail,
    RetrievalPage,
    RetrievalSummary,
    RetrievedHitShown,
)
from schemas.clock import rfc3339
from schemas.cursors import read_cursor, write_cursor
from schemas.ids import DocumentKey
from schemas.provenance import Feedback, Retrieval, RetrievedHit, encode_feedback

router = APIRouter(tags=["retrievals"], route_class=ModelRoute)


@router.get("/v1/retrievals", summary="List retrievals")
async def list_retrievals(
    service: ServiceOf,
    collection: Annotated[str | None, Query(max_length=128, description="Only searches of this one.")] = None,
    since: Since = None,
    cursor: Annotated[str | None, Query(max_length=8192, description="The `next_cursor` of the page before.")] = None,
    counted: Annotated[bool, Query(description="Only those that analytics count.")] = False,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RetrievalPage:
    """Newest first, as far as the provenance topic is indexed: a moment behind the answers."""
    from_ms = first_ms(since)
    before = read_cursor(cursor, tuple[int, str], "a list of retrievals") if cursor else None
    usage = service.snapshot().text.usage
    found = await service.read(lambda: usage.newest(collection, from_ms, before, limit + 1, only_counted=counted))
    page = found[:limit]
    return RetrievalPage(
        retrievals=[_summary(each) for each in page],
        next_cursor=write_cursor((page[-1].at_ms, page[-1].retrieval_id)) if len(found) > limit else None,
    )


@router.get("/v1/retrievals/{retrieval_id}", summary="The provenance of a retrieval", responses=problem_responses(404))
async def get_retrieval(retrieval_id: str, service: ServiceOf) -> RetrievalDetail:
    """Query, parameters, snapshot, and each hit's ranks and scores by channel, its path and its source position; and
    feedback on its hits."""
    found = await _retrieval(service, retrieval_id)
    tables = service.snapshot().text

    def read() -> RetrievalDetail:
        documents = tables.documents({DocumentKey(hit.collection, hit.document_id) for hit in found.hits})
        titles = {key: row.title for key, row in documents.items() if row.deleted_at_ms is None}
        return _detail(found, titles, tables.usage.feedback_on_retrieval(retrieval_id))

    return await service.read(read)


@router.post(
    "/v1/retrievals/{retrieval_id}/feedback",
    summary="Say how helpful a hit was",
    status_code=202,
    response_model=FeedbackAccepted,
    responses=problem_responses(404),
)
async def give_feedback(retrieval_id: str, feedback: FeedbackRequest, service: ServiceOf) -> JSONResponse:
    """Goes to the provenance topic. Later feedback by the same caller on the same hit replaces it."""
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
        raise log_unavailable(f"{error}. Send it again later: sending it twice does no harm.") from error
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


def _summary(retrieval: Retrieval) -> RetrievalSummary:
    return RetrievalSummary(**_fields(retrieval), at=rfc3339(retrieval.at_ms), hits=len(retrieval.hits))


def _detail(retrieval: Retrieval, titles: Mapping[DocumentKey, str], feedback: Sequence[Feedback]) -> RetrievalDetail:
    return RetrievalDetail(
        **_fields(retrieval),
        at=rfc3339(retrieval.at_ms),
        hits=[
            RetrievedHitShown(
                **msgspec.structs.asdict(hit), title=titles.get(DocumentKey(hit.collection, hit.document_id))
            )
            for hit in retrieval.hits
        ],
        feedback=[feedback_shown(each) for each in feedback],
    )


def _fields(retrieval: Retrieval) -> dict[str, Any]:
    """All but its hits, of which a model takes those it has."""
    return {name: value for name, value in msgspec.structs.asdict(retrieval).items() if name != "hits"}
