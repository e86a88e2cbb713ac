"""Writes to `/v1/documents`: published to the log, answered with a token once it has confirmed them."""

import asyncio
from codecs import BOM_UTF8
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from indexer.parsing import formats
from query_api.errors import ApiProblem, explained, invalid_request, log_unavailable, problem_responses
from query_api.ingest import intake
from query_api.ingest.intake import Batch, Refusal, build_batch
from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord, RecordRefused
from query_api.routes.collection_choice import choose, holding_document
from query_api.routes.parameters import COLLECTION, DocumentCollection, DocumentId, ServiceOf
from query_api.service_context import Service
from query_api.settings import ServiceSettings
from schemas.api import AcceptedMember, BatchAccepted, DocumentAccepted, WriteAccepted, name_collections
from schemas.events import DocumentDelete, DocumentEvent
from schemas.ids import DEFAULT_COLLECTION, DocumentKey, Position
from schemas.receipts import format_token
from schemas.tracing import TRACEPARENT, well_formed
from schemas.unknown_fields import name_unknown

router = APIRouter(tags=["documents"])


MAX_BATCH_DOCUMENTS = 1_000
ENVELOPE_EXAMPLE = {
    "id": "notes/today.md",
    "content": "# Today\nThe river is high.",
    "content_type": "text/markdown",
    "metadata": {"author": "Ada"},
}

_TOKEN: dict[int | str, dict[str, Any]] = {
    202: {"model": DocumentAccepted, "description": "In the log; search with `after` set to the token to see it."},
    **problem_responses(415),
}


_RAW_TYPES = tuple(known.media_type for known in formats() if known.media_type not in intake.JSON_TYPES)


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
    response_model=DocumentAccepted | BatchAccepted,
    responses=_TOKEN,
    openapi_extra=_body("multipart/form-data", *_RAW_TYPES),
)
async def publish_documents(
    request: Request,
    service: ServiceOf,
    document_id: Annotated[str | None, Query(alias="id", description="For a raw body: the document's id.")] = None,
    collection: Annotated[
        str, Query(max_length=128, description="For a raw body: its collection.")
    ] = DEFAULT_COLLECTION,
    title: str | None = None,
    uri: str | None = None,
    version: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> Response:
    """One envelope, a batch of them, files of a form, or a raw body with its `Content-Type` and `?id=`.

    A batch is answered by member: what was accepted and what was refused, and why. Of several members that are one
    document the last is taken, or that with the highest version; the others are refused as `duplicate_id`.
    """
    media_type = _media_type(request)
    limits, trace = service.settings.limits, trace_of(request)
    if media_type in intake.JSON_TYPES:
        return _accepted(await publish_json(service, await _body_of(request), trace))
    if media_type == "multipart/form-data":
        async with request.form(max_files=MAX_BATCH_DOCUMENTS, max_fields=20) as form:
            files = intake.from_form(form, limits)
            batch = await asyncio.to_thread(build_batch, files, service.settings.kafka, trace)
        return _accepted(await _publish_batch(service, batch))
    if document_id is None:
        intake.check_media_type(media_type)
        raise invalid_request("A raw body needs `?id=<document id>`.")
    key = intake.document_key(collection, document_id)
    body = await _body_of(request)
    event = await asyncio.to_thread(
        intake.from_raw, key, body, request.headers, limits, title=title, uri=uri, version=version
    )
    return _accepted(await _publish_one(service, *_outgoing(event, service.settings, trace)))


@router.put(
    "/v1/documents/{document_id:path}",
    status_code=202,
    summary="Publish a document under this id",
    response_model=DocumentAccepted,
    responses=_TOKEN | problem_responses(404),
    openapi_extra=_body(*_RAW_TYPES),
)
async def put_document(
    request: Request,
    document_id: DocumentId,
    service: ServiceOf,
    collection: DocumentCollection = DEFAULT_COLLECTION,
    title: str | None = None,
    uri: str | None = None,
    version: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> Response:
    """A raw body with its `Content-Type`, or an envelope as `application/json` (id and collection may be left out).

    A document that is itself JSON comes as another JSON type, such as `text/json`, or as a file of a form.
    """
    key = intake.document_key(collection, document_id)
    limits = service.settings.limits
    body = await _body_of(request)
    event: DocumentEvent
    if _media_type(request) in intake.JSON_TYPES:
        event = await asyncio.to_thread(intake.from_single_envelope, body, limits, expected=key)
    else:
        event = await asyncio.to_thread(
            intake.from_raw, key, body, request.headers, limits, title=title, uri=uri, version=version
        )
    return _accepted(await _publish_one(service, *_outgoing(event, service.settings, trace_of(request))))


@router.delete(
    "/v1/documents/{document_id:path}",
    status_code=202,
    summary="Delete a document",
    response_model=WriteAccepted,
    responses=problem_responses(404),
)
async def delete_document(
    request: Request,
    document_id: DocumentId,
    service: ServiceOf,
    collection: Annotated[
        str | None,
        Query(
            max_length=128,
            description="The collection the document is in; `default` when left out, unless only others hold it.",
            json_schema_extra=COLLECTION,
        ),
    ] = None,
) -> Response:
    """Deleting what is not there is not an error: the log may still hold it on its way. Without `collection`, a
    document that only other collections hold is not deleted there: 422 with those to choose from."""
    named = intake.document_key(DEFAULT_COLLECTION if collection is None else collection, document_id)
    if collection is None:
        _refuse_other_collections(service, named)
    event = DocumentDelete(key=named)
    token = await publish_document(service, intake.record_of(event, service.settings.kafka, trace_of(request)))
    return _accepted(WriteAccepted(token=token))


def _refuse_other_collections(service: Service, key: DocumentKey) -> None:
    """Raises ApiProblem 422 where only other collections hold a document of this id."""
    snapshot = service.snapshots.current
    if snapshot is None:
        return
    holding = holding_document(snapshot, None, key.document_id)
    if holding and key.collection not in holding:
        raise choose(
            f"The collection {key.collection!r} holds no document {key.document_id[:200]!r}, but "
            f"{name_collections(holding)} {'does' if len(holding) == 1 else 'do'}, so nothing was deleted",
            [*holding, key.collection],
        )


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def trace_of(request: Request) -> str | None:
    return well_formed(request.headers.get(TRACEPARENT))


async def _body_of(request: Request) -> bytearray:
    """The whole body, in one copy."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
    if body.startswith(BOM_UTF8) and _media_type(request) in intake.JSON_TYPES:
        del body[: len(BOM_UTF8)]
    return body


class _Outgoing(NamedTuple):
    """A document's record, and the fields of its envelope that are not in it."""

    record: OutgoingRecord
    unknown_fields: tuple[str, ...]


def _outgoing(event: DocumentEvent, settings: ServiceSettings, traceparent: str | None) -> _Outgoing:
    unknown = () if isinstance(event, DocumentDelete) else event.unknown_fields
    return _Outgoing(intake.record_of(event, settings.kafka, traceparent), unknown)


def _from_json(settings: ServiceSettings, body: bytearray, traceparent: str | None) -> Batch | _Outgoing:
    """Runs in a thread: the event loop answers others meanwhile."""
    members = intake.split_json(body, MAX_BATCH_DOCUMENTS)
    if members is None:
        return _outgoing(intake.from_envelope(body, settings.limits), settings, traceparent)
    return build_batch(intake.from_envelopes(members, settings.limits), settings.kafka, traceparent)


async def publish_json(service: Service, body: bytearray, trace: str | None) -> DocumentAccepted | BatchAccepted:
    """Publish an envelope, or a batch of them, as JSON. Raises ApiProblem."""
    document = await asyncio.to_thread(_from_json, service.settings, body, trace)
    if isinstance(document, Batch):
        return await _publish_batch(service, document)
    return await _publish_one(service, *document)


async def _publish_one(service: Service, record: OutgoingRecord, unknown_fields: tuple[str, ...]) -> DocumentAccepted:
    token = await publish_document(service, record)
    return DocumentAccepted(token=token, unknown_fields=name_unknown(unknown_fields))


async def publish_document(service: Service, record: OutgoingRecord) -> str:
    """The token of a document's record, once the log has confirmed it. Raises ApiProblem."""
    return token_of(service, await publish_everywhere(service, record))


async def publish_everywhere(service: Service, record: OutgoingRecord) -> list[Position]:
    """Where a document's record is, and a tombstone in each partition that it has to reach besides. Raises
    ApiProblem."""
    positions = [await _publish(service, record)]
    if record.value is None and record.key is not None:
        key = DocumentKey.parse(record.key.decode("utf-8", "surrogatepass"))
        others = await _other_partitions(service, key, positions[0].partition)
        positions += [await _publish(service, record._replace(partition=partition)) for partition in others]
    return positions


async def _other_partitions(service: Service, key: DocumentKey, reached: int) -> list[int]:
    """The other partitions with records of a document. A tombstone removes those of its own partition only: the others
    would restore the document in a rebuild."""
    snapshot = service.snapshots.current
    if snapshot is None:
        return []
    tables = snapshot.text
    return sorted(await service.read(lambda: tables.partitions_of(key)) - {reached})


async def _publish(service: Service, record: OutgoingRecord) -> Position:
    try:
        (position,) = await service.writer.publish(service.topics.documents, [record])
    except RecordRefused as error:
        raise ApiProblem(413, "Document refused", str(error), members=explained("too_large")) from error
    except BrokerUnavailable as error:
        raise _unavailable(error) from error
    service.metrics.documents_accepted.inc()
    return position


async def _publish_batch(service: Service, batch: Batch) -> BatchAccepted:
    confirmed: dict[int, Position] = {}
    if batch.records:
        confirmed = await _publish_members(service, batch)
    if not confirmed:
        raise batch.problem()
    return BatchAccepted(
        token=token_of(service, confirmed.values()),
        documents=len(confirmed),
        accepted=[
            AcceptedMember(
                index=index,
                position=str(position),
                unknown_fields=name_unknown(batch.unknown_fields.get(index, ())),
                **_names(batch.keys[index]),
            )
            for index, position in sorted(confirmed.items())
        ],
        refused=batch.refusals(),
    )


async def _publish_members(service: Service, batch: Batch) -> dict[int, Position]:
    """Positions by index of the accepted records; the others are added to those refused.

    A record that the topic refuses fails its whole batch, so the others are then sent one by one.
    """
    indices = list(batch.records)
    try:
        positions = await service.writer.publish(service.topics.documents, list(batch.records.values()))
        confirmed = dict(zip(indices, positions, strict=True))
    except RecordRefused as error:
        confirmed = {indices[at]: position for at, position in error.confirmed.items()}
        service.metrics.documents_accepted.inc(len(confirmed))
        for index in indices:
            if index in confirmed:
                continue
            try:
                confirmed[index] = await _publish(service, batch.records[index])
            except ApiProblem as problem:
                batch.refused[index] = Refusal.from_problem(problem)
        return confirmed
    except BrokerUnavailable as error:
        confirmed = {indices[at]: position for at, position in error.confirmed.items()}
        refusal = Refusal.from_problem(_unavailable(error))
        batch.refused.update({index: refusal for index in indices if index not in confirmed})
    service.metrics.documents_accepted.inc(len(confirmed))
    return confirmed


def _unavailable(error: BrokerUnavailable) -> ApiProblem:
    return log_unavailable(
        f"{error}. Send it again in a while: should it have got through after all, twice does no harm."
    )


def _accepted(answer: WriteAccepted) -> Response:
    return JSONResponse(answer.model_dump(), 202)


def token_of(service: Service, positions: Iterable[Position]) -> str:
    reached: dict[int, int] = {}
    for position in positions:
        reached[position.partition] = max(reached.get(position.partition, -1), position.offset)
    return format_token(reached, service.log_identity.topic_id)


def _names(key: DocumentKey) -> dict[str, str]:
    return {"id": key.document_id, "collection": key.collection}
