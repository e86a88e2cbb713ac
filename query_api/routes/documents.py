"""Reads of `/v1/documents`: the indexed documents, and the status of the last write.

An id may hold slashes. In a path they may be as they are (`/v1/documents/guides/setup.md`) or percent-encoded
(`guides%2Fsetup.md`). A path that ends in a literal `/status` asks for the status; the document whose own id ends so is
reached with its slash percent-encoded (`/v1/documents/reports%2Fstatus`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from indexer.parsing import formats
from indexer.read.rows import joined_text
from query_api.dead_letters.letter_state import Letter
from query_api.errors import ApiProblem, explained, problem_responses
from query_api.index.document_status import document_status
from query_api.ingest import intake
from query_api.routes.collection_choice import holding_document, only_collection, searched, where
from query_api.routes.parameters import AllCollections, DocumentId, OneCollection, ServiceOf
from query_api.routes.summaries import Summarise, SummariseAsAsked
from query_api.service_context import Service
from query_api.sse.events import FINAL, document_status_frames, document_stream_id, last_stage
from query_api.sse.stream import accepts_events
from query_api.study.summarised import of_document
from schemas.api import (
    DocumentDetail,
    DocumentPage,
    DocumentStatus,
    DocumentSummary,
    FormatInfo,
    NewerRefused,
    PassageText,
)
from schemas.clock import rfc3339
from schemas.events import media_type_in
from schemas.frames import EVENT_STREAM
from schemas.ids import DEFAULT_COLLECTION, DocumentKey
from schemas.limits import (
    MAX_CONTENT_TYPE_CHARACTERS,
    MAX_LINK_CHARACTERS,
    MAX_LINKS,
    MAX_TITLE_CHARACTERS,
    MAX_URI_CHARACTERS,
)
from schemas.receipts import TOKEN_PATTERN, Receipt
from schemas.refusals import explanation, explanation_fields

if TYPE_CHECKING:
    from indexer.schema import DocumentRow

router = APIRouter(tags=["documents"])


STATUS_SUFFIX = b"/status"
GRAPH_WAIT_SECONDS = 2.0

STATUS_EXAMPLE = """event: status
id: d_4bf92f3577b3.0
data: {"id": "notes/today.md", "status": "pending", "searchable": false, "in_graph": false, "final": false, …}

event: status
id: d_4bf92f3577b3.1
data: {"id": "notes/today.md", "status": "indexed", "searchable": true, "in_graph": false, "final": false, …}

event: done
id: d_4bf92f3577b3.2
data: {"id": "notes/today.md", "status": "indexed", "searchable": true, "in_graph": true, "final": true, …}

"""


@router.get("/v1/documents", summary="List documents")
async def list_documents(
    service: ServiceOf,
    collection: AllCollections = None,
    document_id: Annotated[
        str | None, Query(alias="id", max_length=2_048, description="Only documents of this id.")
    ] = None,
    content_type: Annotated[
        str | None,
        Query(
            max_length=MAX_CONTENT_TYPE_CHARACTERS,
            description="Only documents of this media type. Without it, the nodes and edges that people made are left "
            "out: see `GET /v1/nodes` and `GET /v1/edges`.",
            examples=["text/markdown"],
        ),
    ] = None,
    cursor: Annotated[str | None, Query(max_length=8192, description="The `next_cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> DocumentPage:
    """Live documents in the order of collection and id."""
    media_type = None if content_type is None else media_type_in(content_type)
    snapshot = service.snapshot()
    tables = snapshot.text
    if document_id is not None:
        keys = [DocumentKey(each, document_id) for each in holding_document(snapshot, collection, document_id)]
        found = await service.read(lambda: tables.documents(keys))
        return DocumentPage(documents=[DocumentSummary(**_summary(service, row)) for row in found.values()])
    rows, following = await service.read(lambda: tables.list_documents(collection, cursor, limit, media_type))
    return DocumentPage(documents=[DocumentSummary(**_summary(service, row)) for row in rows], next_cursor=following)


@router.get(
    "/v1/documents/{document_id:path}",
    summary="A document, or its status",
    response_model=DocumentDetail | DocumentStatus,
    responses={
        200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}, "example": STATUS_EXAMPLE}}},
        204: {"description": "`Last-Event-ID` is that of the last frame: nothing follows."},
        **problem_responses(403, 404),
    },
)
async def get_document(
    request: Request,
    document_id: DocumentId,
    service: ServiceOf,
    summarise: SummariseAsAsked,
    collection: OneCollection = None,
    position: Annotated[
        str | None,
        Query(
            max_length=64,
            description="With /status: the token of the write that is asked about.",
            json_schema_extra={"pattern": TOKEN_PATTERN},
        ),
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="With /status as a stream: the id of the last frame that came.")
    ] = None,
) -> Any:
    """The document as it is indexed; with `/status` at the end of the path, what became of the last write to it.

    With `Accept: text/event-stream`, `/status` follows the document: a frame `status` when it is on its way and when it
    is searchable, and `done` when it is in the graph, deleted, superseded, or a dead letter; then the stream ends.
    """
    raw_path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    raw_path = raw_path.partition(b"?")[0]
    if not (raw_path.endswith(STATUS_SUFFIX) and document_id.endswith("/status")):
        return await document_detail(service, collection, document_id, summarise)
    asked = service.positions_of(position) if position else {}

    async def status() -> DocumentStatus:
        key = await _written(service, collection, document_id.removesuffix("/status"), asked)
        return await _status(service, key, asked)

    now = await status()
    if accepts_events(request.headers.get("accept")):
        stream_id = document_stream_id(DocumentKey(collection or DEFAULT_COLLECTION, now.id), position)
        return await _follow(service, stream_id, status, last_event_id)
    return now


@router.get("/v1/formats", summary="The formats documents may come in, with their limits")
async def list_formats(service: ServiceOf) -> list[FormatInfo]:
    limits = service.settings.limits
    of_any = {
        "bytes": limits.max_document_bytes,
        "metadata_bytes": limits.max_metadata_bytes,
        "title_characters": MAX_TITLE_CHARACTERS,
        "uri_characters": MAX_URI_CHARACTERS,
        "links": MAX_LINKS,
        "link_characters": MAX_LINK_CHARACTERS,
    }
    return [
        FormatInfo(
            name=known.name,
            media_types=list(known.media_types),
            extensions=list(known.extensions),
            takes="bytes" if known.takes == "bytes" else "text",
            limits={**of_any, **dict(known.limits)},
        )
        for known in formats()
    ]


async def document_detail(
    service: Service, collection: str | None, document_id: str, summarise: Summarise | None = None
) -> DocumentDetail:
    """The document as it is indexed. Raises ApiProblem."""
    snapshot = service.snapshot()
    looked_in = searched(collection, snapshot)
    keys = [intake.document_key(each, document_id) for each in looked_in or [DEFAULT_COLLECTION]]
    holding = holding_document(snapshot, collection, document_id)
    found = only_collection(holding, f"A document {document_id[:200]!r}", snapshot)
    if found is None:
        raise _no_document(service, keys, where(looked_in))
    key, tables = DocumentKey(found, document_id), snapshot.text
    row = (await service.read(lambda: tables.documents([key]))).get(key)
    if row is None or not row.live:
        raise _no_document(service, [key], where([found]))
    stored = tables.positions[row.partition]
    snapshot = await service.reach({row.partition: stored.offset}, GRAPH_WAIT_SECONDS)
    document = snapshot.graph.document(key)
    passage_ids = (
        []
        if document is None
        else [snapshot.graph.passage_id(number) for number in snapshot.graph.passages_of_document(document)]
    )
    newest = snapshot.text
    passages = await service.read(lambda: newest.passages(passage_ids))
    ordered = sorted(passages.values(), key=lambda passage: passage.ordinal)
    ids = [each.id for each in ordered]
    written = None if summarise is None else await summarise(lambda: of_document(snapshot, key, ids))
    return DocumentDetail(
        **_summary(service, row),
        text=joined_text(ordered),
        passages=[
            PassageText(id=each.id, section=list(each.section), start=each.start, end=each.end, text=each.text)
            for each in ordered
        ],
        written_summary=written,
    )


async def _written(service: Service, collection: str | None, document_id: str, asked: dict[int, int]) -> DocumentKey:
    """The document whose status is asked for. Without a collection, the only one of this id of which a record is known,
    at or after the `asked` positions, or, once their receipts came, that is there: a batch ends after most of its
    records. Else that of DEFAULT_COLLECTION, where a write without a collection goes. Live documents come before
    deleted ones. Raises ApiProblem 422 for several."""
    if collection is not None:
        return intake.document_key(collection, document_id)
    snapshot = service.snapshot()
    keys = [intake.document_key(each, document_id) for each in sorted({*searched(None, snapshot), DEFAULT_COLLECTION})]
    rows = await service.read(lambda: snapshot.text.documents(keys))

    def is_known(key: DocumentKey) -> bool:
        records = (rows.get(key), service.snapshots.receipts.newest(str(key)))
        return any(each is not None and _is_at_or_after(each, asked) for each in records)

    live, receipts = holding_document(snapshot, None, document_id), service.snapshots.receipts.reached
    is_confirmed = all(receipts.get(at, -1) >= offset for at, offset in asked.items())
    known = [] if asked else live
    known = known or [key.collection for key in keys if is_known(key)] or (live if is_confirmed else [])
    found = only_collection(known, f"A document {document_id[:200]!r}", snapshot)
    return DocumentKey(found or DEFAULT_COLLECTION, document_id)


def _is_at_or_after(record: "DocumentRow | Receipt", asked: Mapping[int, int]) -> bool:
    return not asked or record.offset >= asked.get(record.partition, record.offset + 1)


def _no_document(service: Service, keys: Sequence[DocumentKey], where_looked: str) -> ApiProblem:
    """With the dead letter of its record, where it was refused."""
    missing = f"There is no document {keys[0].document_id[:200]!r} {where_looked}"
    letters = (service.dead_letters.table.open_named(key) for key in keys)
    letter = next((each for each in letters if each is not None), None)
    if letter is None:
        return ApiProblem(404, "No such document", f"{missing}; if it was just written, see its /status.")
    return ApiProblem(
        404,
        "No such document",
        f"{missing}: its record was refused ({explanation(letter.reason).title}). /v1/dead-letters/{letter.position} "
        "has it.",
        members={"dead_letter": str(letter.position), **explained(letter.reason)},
    )


async def _status(service: Service, key: DocumentKey, asked: dict[int, int]) -> DocumentStatus:
    snapshot = service.snapshot()
    tables = snapshot.text
    row = (await service.read(lambda: tables.documents([key]))).get(key)
    return document_status(key, asked, snapshot, row, service.snapshots.receipts)


async def _follow(
    service: Service, stream_id: str, status: Callable[[], Awaitable[DocumentStatus]], last_event_id: str | None
) -> Response:
    sent = last_stage(last_event_id, stream_id)
    if sent >= FINAL:
        return Response(status_code=204)  # which ends the reconnecting of an EventSource
    frames = document_status_frames(stream_id, status, service.snapshots, sent)
    return service.streams.following(frames)


def _summary(service: Service, row: "DocumentRow") -> dict[str, Any]:
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
        "stated_fields": row.stated_fields,
        "newer_refused": _refused(service.dead_letters.table.open_of(row)),
    }


def _refused(letter: Letter | None) -> NewerRefused | None:
    if letter is None:
        return None
    return NewerRefused(
        dead_letter=str(letter.position), at=rfc3339(letter.timestamp_ms), **explanation_fields(letter.reason)
    )
