"""`/v1/documents`: writes go to the log and are answered with a token; reads show what is indexed.

An id may hold slashes. In a path they may stand as they are (`/v1/documents/guides/setup.md`) or percent-encoded
(`guides%2Fsetup.md`). A path that ends in a literal `/status` asks for the status; the document whose own id ends so is
reached with its slash percent-encoded (`/v1/documents/reports%2Fstatus`).
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from indexer.errors import MalformedCursor
from indexer.parsing import formats
from query_api import intake
from query_api.engine import tables_of
from query_api.intake import Candidate
from query_api.problems import ApiProblem
from query_api.publishing import BrokerUnavailable, OutgoingRecord, RecordRefused
from query_api.service import Service, service_of
from schemas.api import DocumentPage, DocumentStatus, DocumentSummary, WriteAccepted
from schemas.events import DocumentDelete, DocumentEvent
from schemas.ids import DocumentKey, Position, format_token
from schemas.service import (
    AcceptedMember,
    BatchAccepted,
    DocumentDetail,
    FormatInfo,
    PassageText,
    RefusedMember,
)

if TYPE_CHECKING:
    from indexer.read.rows import PassageRow
    from indexer.tables import DocumentRow

router = APIRouter(tags=["documents"])

ServiceOf = Annotated[Service, Depends(service_of)]
Collection = Annotated[str, Query(max_length=128, description="The collection the document is in.")]

ENVELOPE_EXAMPLE = {
    "id": "notes/today.md",
    "content": "# Today\nThe river is high.",
    "content_type": "text/markdown",
    "metadata": {"author": "Ada"},
}
STATUS_SUFFIX = b"/status"
GRAPH_WAIT_SECONDS = 2.0

_TOKEN = {202: {"model": WriteAccepted, "description": "In the log; search with `after` set to the token to see it."}}


def _body(*media_types: str) -> dict[str, Any]:
    json_schema = {"type": "object", "description": "An envelope, a list of them, or {documents: [envelope, …]}."}
    content: dict[str, Any] = {"application/json": {"schema": json_schema, "example": ENVELOPE_EXAMPLE}}
    for media_type in media_types:
        content[media_type] = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/v1/documents",
    status_code=202,
    summary="Publish documents",
    response_model=WriteAccepted | BatchAccepted,
    responses=_TOKEN,  # type: ignore[arg-type]
    openapi_extra=_body("multipart/form-data", "text/markdown", "text/html", "text/plain", "text/x-rst"),
)
async def publish_documents(
    request: Request,
    service: ServiceOf,
    document_id: Annotated[str | None, Query(alias="id", description="For a raw body: the document's id.")] = None,
    collection: Collection = "default",
    title: str | None = None,
    uri: str | None = None,
    version: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> Response:
    """One envelope, a batch of them, files of a form, or a raw body with its `Content-Type` and `?id=`.

    A batch is answered by member: what was accepted and what was refused, and why.
    """
    media_type = _media_type(request)
    limits = service.settings.limits
    if media_type in intake.JSON_TYPES:
        body = await request.body()
        members = intake.split_json(body)
        if members is None:
            return await _publish_one(service, intake.from_envelope(body, limits))
        return await _publish_batch(service, intake.from_envelopes(members, limits))
    if media_type == "multipart/form-data":
        async with request.form(max_files=service.settings.service.max_batch_documents, max_fields=20) as form:
            candidates = await intake.from_form(form, limits)
        return await _publish_batch(service, candidates)
    if document_id is None:
        intake.check_media_type(media_type)
        raise ApiProblem(422, "Request does not fit", "A raw body needs `?id=<document id>`.")
    key = intake.document_key(collection, document_id)
    event = intake.from_raw(key, await request.body(), request.headers, limits, title=title, uri=uri, version=version)
    return await _publish_one(service, event)


@router.put(
    "/v1/documents/{document_id:path}",
    status_code=202,
    summary="Publish a document under this id",
    response_model=WriteAccepted,
    responses=_TOKEN,  # type: ignore[arg-type]
    openapi_extra=_body("text/markdown", "text/html", "text/plain", "text/x-rst"),
)
async def put_document(
    request: Request,
    document_id: str,
    service: ServiceOf,
    collection: Collection = "default",
    title: str | None = None,
    uri: str | None = None,
    version: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> Response:
    """An envelope (id and collection may be left out), or a raw body with its `Content-Type`."""
    key = intake.document_key(collection, document_id)
    limits = service.settings.limits
    body = await request.body()
    event: DocumentEvent
    if _media_type(request) in intake.JSON_TYPES:
        event = intake.from_envelope(body, limits, expected=key)
    else:
        event = intake.from_raw(key, body, request.headers, limits, title=title, uri=uri, version=version)
    return await _publish_one(service, event)


@router.delete(
    "/v1/documents/{document_id:path}", status_code=202, summary="Delete a document", response_model=WriteAccepted
)
async def delete_document(document_id: str, service: ServiceOf, collection: Collection = "default") -> Response:
    """Deleting what is not there is no error: the log may still hold it on its way."""
    return await _publish_one(service, DocumentDelete(key=intake.document_key(collection, document_id)))


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


@router.get("/v1/formats", summary="The formats documents may come in")
async def list_formats() -> list[FormatInfo]:
    return [
        FormatInfo(name=known.name, media_types=list(known.media_types), extensions=list(known.extensions))
        for known in formats()
    ]


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _publish_one(service: Service, event: DocumentEvent) -> Response:
    (position,) = await _publish(service, [intake.record_of(event, service.settings.kafka)])
    return _accepted(WriteAccepted(token=str(position)))


async def _publish(service: Service, records: list[OutgoingRecord]) -> list[Position]:
    try:
        positions = await service.writer.publish(service.topics.documents, records)
    except RecordRefused as error:
        raise ApiProblem(413, "Document refused", str(error)) from error
    except BrokerUnavailable as error:
        raise _unavailable(error) from error
    service.metrics.documents_accepted.inc(len(positions))
    return positions


async def _publish_batch(service: Service, candidates: list[Candidate]) -> Response:
    most = service.settings.service.max_batch_documents
    if not candidates or len(candidates) > most:
        raise ApiProblem(422, "Request does not fit", f"A batch has 1 to {most:,} documents, not {len(candidates):,}.")
    refused: dict[int, ApiProblem] = {}
    records: dict[int, OutgoingRecord] = {}
    for index, candidate in enumerate(candidates):
        try:
            records[index] = intake.record_of(intake.accepted(candidate), service.settings.kafka)
        except ApiProblem as problem:
            refused[index] = problem
    confirmed: dict[int, Position] = {}
    if records:
        confirmed = await _publish_members(service, records, refused)
    answer = BatchAccepted(
        token=_token(confirmed.values()),
        documents=len(confirmed),
        accepted=[
            AcceptedMember(index=index, position=str(position), **_names(candidates[index]))
            for index, position in sorted(confirmed.items())
        ],
        refused=[
            RefusedMember(
                index=index,
                id=candidates[index].id,
                status=problem.status,
                reason=problem.members.get("reason", problem.title),
                detail=problem.detail,
            )
            for index, problem in sorted(refused.items())
        ],
    )
    if not confirmed:
        only = next(iter(refused.values()))
        status = only.status if len({problem.status for problem in refused.values()}) == 1 else 422
        detail = only.detail if len(refused) == 1 else f"None of the {len(refused)} documents was accepted."
        raise ApiProblem(
            status, "Document refused", detail, headers=only.headers, members=answer.model_dump(include={"refused"})
        )
    return _accepted(answer)


async def _publish_members(
    service: Service, records: dict[int, OutgoingRecord], refused: dict[int, ApiProblem]
) -> dict[int, Position]:
    """Positions by index of what the log took; what it did not take is added to `refused`."""
    indices = list(records)
    try:
        positions = await service.writer.publish(service.topics.documents, list(records.values()))
        confirmed = dict(zip(indices, positions, strict=True))
    except RecordRefused as error:
        raise ApiProblem(413, "Document refused", str(error)) from error
    except BrokerUnavailable as error:
        confirmed = {indices[at]: position for at, position in error.confirmed.items()}
        refused.update({index: _unavailable(error) for index in indices if index not in confirmed})
    service.metrics.documents_accepted.inc(len(confirmed))
    return confirmed


def _unavailable(error: BrokerUnavailable) -> ApiProblem:
    return ApiProblem(
        503,
        "Log out of reach",
        f"{error}. Send it again in a while: should it have got through after all, twice does no harm.",
        retry_after_seconds=5,
        members={"reason": "unavailable"},
    )


def _accepted(answer: WriteAccepted) -> Response:
    return JSONResponse(answer.model_dump(), 202)


def _token(positions: Any) -> str:
    reached: dict[int, int] = {}
    for position in positions:
        reached[position.partition] = max(reached.get(position.partition, -1), position.offset)
    return format_token(reached)


def _names(candidate: Candidate) -> dict[str, str]:
    key = intake.accepted(candidate).key
    return {"id": key.document_id, "collection": key.collection}


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
        "updated_at": datetime.fromtimestamp(row.timestamp_ms / 1000, UTC).isoformat(),
        "metadata": dict(row.metadata),
    }
