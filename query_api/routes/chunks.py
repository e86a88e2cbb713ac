"""`/v1/chunks/{id}`: a chunk with the passage around it. Vectors never leave."""

from typing import Annotated

from fastapi import APIRouter, Depends

from query_api.context import Service, service_of
from query_api.errors import ApiProblem, problem_responses
from schemas.api import ChunkDetail

router = APIRouter(tags=["chunks"])


@router.get("/v1/chunks/{chunk_id}", summary="A chunk", responses=problem_responses(404))
async def get_chunk(chunk_id: str, service: Annotated[Service, Depends(service_of)]) -> ChunkDetail:
    """A chunk of the current revision of its document."""
    tables = service.snapshot().text

    def read() -> ChunkDetail | None:
        chunk = tables.chunks([chunk_id]).get(chunk_id)
        passage = None if chunk is None else tables.passages([chunk.passage_id]).get(chunk.passage_id)
        if chunk is None or passage is None:
            return None
        return ChunkDetail(
            chunk_id=chunk.id,
            passage_id=passage.id,
            document_id=chunk.key.document_id,
            collection=chunk.key.collection,
            title=passage.title,
            ordinal=chunk.ordinal,
            section=list(chunk.section),
            text=chunk.text,
            start=chunk.start,
            end=chunk.end,
            parent_text=passage.text,
            parent_start=passage.start,
        )

    found = await service.read(read)
    if found is None:
        raise ApiProblem(
            404, "No such chunk", f"There is no chunk {chunk_id[:80]!r} now: its document was changed or deleted."
        )
    return found
