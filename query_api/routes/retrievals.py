"""`/v1/retrievals/{id}`: what a search looked at and why it answered so."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Response

from query_api.problems import ApiProblem
from query_api.searching.engine import tables_of
from query_api.service import Service, service_of

router = APIRouter(tags=["retrievals"])


@router.get(
    "/v1/retrievals/{retrieval_id}",
    summary="The provenance of a retrieval",
    responses={200: {"description": "The record as it is on the provenance topic."}},
)
async def get_retrieval(retrieval_id: str, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Query, parameters, snapshot, and each hit's ranks and scores by channel, its path and its source position."""
    found = service.provenance.recent(retrieval_id)
    if found is None:
        tables = tables_of(service.snapshot())
        found = await service.read(lambda: tables.retrieval(retrieval_id))
    if found is None:
        raise ApiProblem(
            404,
            "No such retrieval",
            f"There is no retrieval {retrieval_id[:80]!r}: an answer's `retrieval_id` is looked up here, "
            "for as long as the provenance topic is kept.",
        )
    return Response(msgspec.json.encode(found), media_type="application/json")
