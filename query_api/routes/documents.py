"""Reads of `/v1/documents`: what is indexed, and what became of the last write.

An id may hold slashes. In a path they may stand as they are (`/v1/documents/guides/setup.md`) or percent-encoded
(`guides%2Fsetup.md`). A path that ends in a literal `/status` asks for the status; the document whose own id ends so is
reached with its slash percent-encoded (`/v1/documents/reports%2Fstatus`).
"""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from indexer.errors import MalformedCursor
from indexer.parsing import formats
from query_api.problems import ApiProblem
from query_api.searching.engine import tables_of
from query_api.service import Service, service_of
from query_api.writing import intake
from schemas.api import DocumentPage, DocumentStatus, DocumentSummary
from schemas.clock import rfc3339
from schemas.ids import DocumentKey, format_token
from schemas.service import DocumentDetail, FormatInfo, PassageText

if TYPE_CHECKING:
    from indexer.read.rows import PassageRow
    from indexer.tables import DocumentRow

router = APIRouter(tags=["documents"])

ServiceOf = Annotated[Service, Depends(service_of)]
Collection = Annotated[str, Query(max_length=128, description="The collection the document is in.")]

STATUS_SUFFIX = b"/status"
GRAPH_WAIT_SECONDS = 2.0


@router.get("/v1/documents", summary="List documents")
async def list_documents(
    service: ServiceOf,
    collection: Annotated[str | None, Query(max_length=128, description="Only this one; all when left out.")] = None,
    cursor: Annotated[str | None, Query(max_length=8192, description="The `next_cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> DocumentPage:
    """Live documents in the order of collection and id."""
    tables = tables_of(service.snapshot())
    try:
        rows, following = await service.read(lambda: tables.list_documents(collection, cursor, limit))
    except MalformedCursor as error:
        raise ApiProblem(400, "Malformed cursor", str(error)) from error
    return DocumentPage(documents=[DocumentSummary(**_summary(row)) for row in rows], next_cursor=following)


@router.get(
    "/v1/documents/{document_id:path}",
    summary="A document, or its status",
    response_model=DocumentDetail | DocumentStatus,
)
async def get_document(
    request: Request,
    document_id: str,
    service: ServiceOf,
    collection: Collection = "default",
    position: Annotated[
        str | None, Query(max_length=64, description="With /status: the token of the write that is asked about.")
    ] = None,
) -> DocumentDetail | DocumentStatus:
    """The document as it is indexed; with `/status` at the end of the path, what became of the last write to it."""
    raw_path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    raw_path = raw_path.partition(b"?")[0]
    if raw_path.endswith(STATUS_SUFFIX) and document_id.endswith("/status"):
        key = intake.document_key(collection, document_id.removesuffix("/status"))
        return await _status(service, key, position)
    return await _detail(service, intake.document_key(collection, document_id))


@router.get("/v1/formats", summary="The formats documents may come in, with their limits")
async def list_formats(service: ServiceOf) -> list[FormatInfo]:
    return [
        FormatInfo(
            name=known.name,
            media_types=list(known.media_types),
            extensions=list(known.extensions),
            takes="bytes" if known.takes == "bytes" else "text",
            limits={"bytes": service.settings.limits.max_document_bytes, **dict(known.limits)},
        )
        for known in formats()
    ]


async def _detail(service: Service, key: DocumentKey) -> DocumentDetail:
    tables = tables_of(service.snapshot())
    row = (await service.read(lambda: tables.documents([key]))).get(key)
    if row is None or not row.live:
        raise ApiProblem(
            404,
            "No such document",
            f"The collection {key.collection!r} holds no document {key.document_id[:200]!r}; "
            "if it was just written, its /status tells.",
        )
    stored = tables.positions[row.partition]
    snapshot = await service.reach({row.partition: stored.offset}, GRAPH_WAIT_SECONDS, graph=True)
    document = snapshot.graph.document(key)
    passage_ids = (
        []
        if document is None
        else [snapshot.graph.passage_id(number) for number in snapshot.graph.passages_of_document(document)]
    )
    newest = tables_of(snapshot)
    passages = await service.read(lambda: newest.passages(passage_ids))
    ordered = sorted(passages.values(), key=lambda passage: passage.ordinal)
    return DocumentDetail(
        **_summary(row),
        text=joined_text(ordered),
        passages=[PassageText(id=each.id, section=list(each.section), text=each.text) for each in ordered],
    )


def joined_text(passages: "list[PassageRow]") -> str:
    """The passages' texts in order, without what one repeats of the one before; a blank line where text is left out."""
    pieces: list[str] = []
    reached = 0
    for passage in passages:
        repeated = max(0, reached - passage.start)
        if repeated < len(passage.text):
            if pieces and passage.start > reached:
                pieces.append("\n\n")
            pieces.append(passage.text[repeated:])
        reached = max(reached, passage.end)
    return "".join(pieces)


async def _status(service: Service, key: DocumentKey, position: str | None) -> DocumentStatus:
    asked = service.positions_of(position) if position else {}
    snapshot = service.snapshot()
    tables = tables_of(snapshot)
    row = (await service.read(lambda: tables.documents([key]))).get(key)
    receipt = service.keeper.receipts.newest(str(key))
    here: dict[str, Any] = {"id": key.document_id, "collection": key.collection}
    late = {
        partition: offset
        for partition, offset in asked.items()
        if partition not in tables.positions or tables.positions[partition].offset < offset
    }
    if late:
        return DocumentStatus(
            **here,
            **_indexed_state(service, row),
            status="pending",
            message=f"The record at {format_token(late)} is not indexed yet.",
        )
    if receipt is not None and receipt.outcome == "dead_lettered" and (row is None or receipt.offset > row.offset):
        return DocumentStatus(
            **here,
            **(_indexed_state(service, row) | {"position": f"{receipt.partition}:{receipt.offset}"}),
            status="dead_lettered",
            message=receipt.message or receipt.reason,
        )
    if row is None:
        return DocumentStatus(**here, status="unknown", message="No record of this document has been indexed.")
    return DocumentStatus(**here, **_indexed_state(service, row), status="indexed" if row.live else "deleted")


def _indexed_state(service: Service, row: "DocumentRow | None") -> dict[str, Any]:
    """What searches show of the document now, whatever is on its way."""
    if row is None:
        return {}
    snapshot = service.snapshot()
    stored = tables_of(snapshot).positions.get(row.partition)
    held = row.live and snapshot.graph.document(row.key) is not None
    return {
        "position": f"{row.partition}:{row.offset}",
        "version": row.version,
        "chunks": row.chunks,
        "searchable": row.live,
        "in_graph": held and stored is not None and snapshot.graph.position >= stored.graph_offset,
    }


def _summary(row: "DocumentRow") -> dict[str, Any]:
    return {
        "id": row.key.document_id,
        "collection": row.key.collection,
        "title": row.title,
        "uri": row.uri,
        "content_type": row.content_type,
        "version": row.version,
        "chunks": row.chunks,
        "position": f"{row.partition}:{row.offset}",
        "updated_at": rfc3339(row.timestamp_ms),
        "metadata": row.own_metadata,
    }
