"""Documents that come over HTTP: from JSON, forms and raw bodies, checked by the worker's rules, made into records.

What is refused here would have become a dead letter.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from starlette.datastructures import FormData, UploadFile

from indexer.parsing import formats, media_type_of
from query_api.errors import ApiProblem, explained, invalid_request, refused_event
from query_api.ingest.producer import OutgoingRecord
from query_api.middleware import check_members, json_size
from schemas.api import RefusedMember
from schemas.errors import MalformedEvent
from schemas.events import (
    ENVELOPE_TYPE,
    METADATA_HEADER_PREFIX,
    DocumentDelete,
    DocumentEvent,
    DocumentUpsert,
    Envelope,
    check_content_size,
    checked,
    decode_document_event,
    decode_envelope,
    media_type_in,
    upsert_from_envelope,
)
from schemas.ids import DEFAULT_COLLECTION, DocumentKey, Position
from schemas.settings import KafkaSettings, LimitSettings
from schemas.tracing import TRACEPARENT
from schemas.versioning import fold

JSON_TYPES = frozenset({"application/json", ENVELOPE_TYPE})
CLOUD_EVENT_TYPE = "application/cloudevents+json"
MAX_JSON_MEMBERS = 500_000
MAX_ESCAPING = 3  # how many times its size in UTF-8 a text may have as JSON
MAX_JSON_BESIDE_CONTENT = 1024 * 1024


class ParsedMember(NamedTuple):
    """One document of a request: the event to publish, or why not. `id` is its id as far as it could be read."""

    outcome: DocumentEvent | ApiProblem
    id: str | None


def event_or_raise(member: ParsedMember) -> DocumentEvent:
    """The event. Raises the member's ApiProblem."""
    if isinstance(member.outcome, ApiProblem):
        raise member.outcome
    return member.outcome


class _Named(msgspec.Struct):
    id: Any = None


class _Batch(msgspec.Struct):
    documents: list[msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_batch_decoder = msgspec.json.Decoder(_Batch)
_named_decoder = msgspec.json.Decoder(_Named)
_LIST = re.compile(rb"\s*\[")

Json = bytes | bytearray | msgspec.Raw


def split_json(body: bytes | bytearray, max_documents: int) -> list[msgspec.Raw] | None:
    """The members of a batch: a list, or an object with `documents`; None for a single envelope.

    Raises ApiProblem for what is not JSON of that shape or has no or too many members, which are counted before.
    """
    size = json_size(body, MAX_JSON_MEMBERS)
    is_list = _LIST.match(body) is not None
    if is_list and size.top > max_documents:
        raise _not_a_batch(size.top, max_documents)
    check_members(size, MAX_JSON_MEMBERS)
    try:
        if is_list:
            members = _list_decoder.decode(body)
        else:
            batch = _batch_decoder.decode(body)
            if batch.documents is msgspec.UNSET or batch.id is not msgspec.UNSET:
                return None
            members = batch.documents
    except msgspec.ValidationError as error:
        raise invalid_request(f'Send one envelope, a list of them, or {{"documents": […]}}: {error}.') from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiProblem(400, "Not JSON", f"The body is not JSON: {error}.") from error
    if not 1 <= len(members) <= max_documents:
        raise _not_a_batch(len(members), max_documents)
    return members


def _not_a_batch(found: int, max_documents: int) -> ApiProblem:
    return invalid_request(f"A batch has 1 to {max_documents:,} documents; this one has {'more' if found else 'none'}.")


def from_envelope(value: Json, limits: LimitSettings, expected: DocumentKey | None = None) -> DocumentUpsert:
    """The document of an envelope; `expected` is the key a path names. Raises ApiProblem."""
    try:
        _check_size(len(memoryview(value)), limits)
        if expected is not None:
            value = _with_names(value, expected)
        return readable(upsert_from_envelope(decode_envelope(value, limits), limits, expected=expected))
    except MalformedEvent as error:
        raise refused_event(error) from error


def from_single_envelope(body: bytes | bytearray, limits: LimitSettings, expected: DocumentKey) -> DocumentUpsert:
    """The same of a body that holds nothing else, whose members are counted before."""
    check_members(json_size(body, MAX_JSON_MEMBERS), MAX_JSON_MEMBERS)
    return from_envelope(body, limits, expected)


def _check_size(size: int, limits: LimitSettings) -> None:
    """Raises MalformedEvent for JSON too long to be a document. No other thread runs while a text in it is decoded."""
    most = MAX_ESCAPING * limits.max_document_bytes + MAX_JSON_BESIDE_CONTENT
    if size > most:
        raise MalformedEvent(
            "too_large",
            f"As JSON the document has {size:,} bytes; with content of at most {limits.max_document_bytes:,} bytes it "
            f"has no more than {most:,}. Split it, or raise THALWEG_LIMITS__MAX_DOCUMENT_BYTES.",
        )


def from_envelopes(members: Iterable[Json], limits: LimitSettings) -> Iterator[ParsedMember]:
    for member in members:
        try:
            upsert = from_envelope(member, limits)
        except ApiProblem as problem:
            yield ParsedMember(problem, _id_in(member))
        else:
            yield ParsedMember(upsert, upsert.key.document_id)


def from_raw(
    key: DocumentKey,
    body: bytes | bytearray,
    headers: Mapping[str, str],
    limits: LimitSettings,
    *,
    title: str | None = None,
    uri: str | None = None,
    version: int | None = None,
) -> DocumentEvent:
    """The document of a raw body: its media type and `thalweg-<name>` metadata in headers, as in a raw record.

    Raises ApiProblem.
    """
    content_type = headers.get("content-type")
    if content_type is None:
        raise ApiProblem(
            415,
            "No media type",
            "Say in Content-Type what the body is, such as text/html: /v1/formats lists what can be read.",
        )
    check_media_type(content_type)
    copied = [("content-type", content_type.encode())]
    copied += [(name, text.encode()) for name, text in headers.items() if name.startswith(METADATA_HEADER_PREFIX)]
    copied += [(name, text.encode()) for name, text in headers.items() if name.startswith("ce_")]
    try:
        if media_type_in(content_type) == CLOUD_EVENT_TYPE:
            _check_size(len(body), limits)
            check_members(json_size(body, MAX_JSON_MEMBERS), MAX_JSON_MEMBERS)
        else:
            check_content_size(len(body), limits)
        event = decode_document_event(str(key).encode(), bytes(body), copied, limits)
    except MalformedEvent as error:
        raise refused_event(error) from error
    if isinstance(event, DocumentDelete):
        return event
    given: dict[str, Any] = {"title": title, "uri": uri, "version": version}
    named = msgspec.structs.replace(event, **{name: value for name, value in given.items() if value is not None})
    try:
        return readable(checked(named, limits))
    except MalformedEvent as error:
        raise refused_event(error) from error


def from_form(form: FormData, limits: LimitSettings) -> Iterator[ParsedMember]:
    """The documents of an upload: each file is one, its id the file's name unless the field `id` names a single one.

    Fields: `collection`, `id`, `title`, `uri` (the last three for a single file only). Raises ApiProblem when the form
    as a whole cannot be used. Files are read one by one as they are asked for; some of them from disk.
    """
    files, fields = _parts_of(form)
    for file in files:
        document_id = fields.get("id") or file.filename or ""
        content_type = media_type_of(file.filename or "") or file.content_type or "application/octet-stream"
        try:
            key = document_key(fields.get("collection", DEFAULT_COLLECTION), document_id)
            event = from_raw(
                key,
                file.file.read(limits.max_document_bytes + 1),
                {"content-type": content_type},
                limits,
                title=fields.get("title"),
                uri=fields.get("uri"),
            )
        except ApiProblem as problem:
            yield ParsedMember(problem, document_id or None)
        else:
            yield ParsedMember(event, document_id)


def _parts_of(form: FormData) -> tuple[list[UploadFile], dict[str, str]]:
    """Its files, and the text of its fields. Raises ApiProblem for what does not fit together."""
    files = [part for _, part in form.multi_items() if isinstance(part, UploadFile)]
    fields = {name: part for name, part in form.multi_items() if isinstance(part, str)}
    if not files:
        raise ApiProblem(422, "No file", "The form holds no file; send at least one, such as `-F file=@notes.md`.")
    unknown = fields.keys() - {"collection", "id", "title", "uri"}
    if unknown:
        raise invalid_request(f"There is no field {min(unknown)[:80]!r}; known: collection, id, title, uri.")
    single = fields.keys() & {"id", "title", "uri"}
    if len(files) > 1 and single:
        raise invalid_request(f"The field {min(single)!r} can go with one file only.")
    return files, fields


def document_key(collection: str, document_id: str) -> DocumentKey:
    """Raises ApiProblem for names that cannot be a key."""
    try:
        return DocumentKey.checked(collection, document_id)
    except MalformedEvent as error:
        raise refused_event(error) from error


def readable(upsert: DocumentUpsert) -> DocumentUpsert:
    """The same, or ApiProblem 415 for a media type that no parser reads."""
    check_media_type(upsert.content_type)
    return upsert


def check_media_type(content_type: str) -> None:
    """Raises ApiProblem 415 for content that no parser reads."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != CLOUD_EVENT_TYPE and not any(media_type in known.media_types for known in formats()):
        raise refused_event(
            MalformedEvent(
                "unknown_media_type",
                f"{media_type[:80]!r} is not a media type of a format that Thalweg reads; /v1/formats lists those it "
                "does. Envelopes come as application/json.",
            )
        )


def record_of(event: DocumentEvent, kafka: KafkaSettings, traceparent: str | None = None) -> OutgoingRecord:
    """The record that says so in the log: an envelope, or a null value. Raises ApiProblem for one too large.

    `traceparent` is the request's own; the record carries it on.
    """
    key = event.key.encoded()
    traceparent = traceparent or event.traceparent
    headers = ((TRACEPARENT, traceparent.encode()),) if traceparent else ()
    if isinstance(event, DocumentDelete):
        return OutgoingRecord(key, None, headers)
    value = msgspec.json.encode(_envelope_of(event))
    if len(value) + len(key) > kafka.max_record_bytes:
        raise refused_event(
            MalformedEvent(
                "too_large",
                f"As a record the document has {len(value):,} bytes; the limit is {kafka.max_record_bytes:,}. "
                "Split it, or raise THALWEG_KAFKA__MAX_RECORD_BYTES.",
            )
        )
    return OutgoingRecord(key, value, headers)


def _envelope_of(upsert: DocumentUpsert) -> Envelope:
    try:
        content: dict[str, Any] = {"content": upsert.content.decode()}
    except UnicodeDecodeError:
        content = {"content_base64": msgspec.to_builtins(upsert.content)}
    return Envelope(
        id=upsert.key.document_id,
        collection=upsert.key.collection,
        title=upsert.title,
        content_type=upsert.content_type,
        uri=upsert.uri,
        metadata=upsert.metadata,
        version=upsert.version,
        links=upsert.links,
        **content,
    )


def _with_names(value: Json, expected: DocumentKey) -> bytes:
    """The envelope with the id and collection of the path where it leaves them out."""
    try:
        envelope = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent("not_json", f"The body is not a JSON envelope: {error}.") from error
    envelope.setdefault("id", msgspec.Raw(msgspec.json.encode(expected.document_id)))
    envelope.setdefault("collection", msgspec.Raw(msgspec.json.encode(expected.collection)))
    return msgspec.json.encode(envelope)


def _id_in(member: Json) -> str | None:
    try:
        identifier = _named_decoder.decode(member).id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return identifier[:200] if isinstance(identifier, str) else None


DUPLICATE_ID = "duplicate_id"


class BatchMember(NamedTuple):
    """A member of a batch as an event of the log; its index is the offset."""

    key: DocumentKey
    version: int | None
    position: Position
    deletes: bool = False
    timestamp_ms: int = 0


class Refusal(NamedTuple):
    """Why a member is not in the log. No exception: its traceback would hold on to the whole batch."""

    status: int
    reason: str
    detail: str
    headers: dict[str, str]

    @classmethod
    def from_problem(cls, problem: ApiProblem) -> "Refusal":
        return cls(problem.status, problem.members.get("reason", problem.title), problem.detail, problem.headers)


@dataclass
class Batch:
    """By index in the order given; each member is in `records` or in `refused`."""

    ids: list[str | None] = field(default_factory=list)
    keys: dict[int, DocumentKey] = field(default_factory=dict)
    records: dict[int, OutgoingRecord] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    unknown_fields: dict[int, tuple[str, ...]] = field(default_factory=dict)  # left out of the envelope

    def refusals(self) -> list[RefusedMember]:
        return [
            RefusedMember(
                index=index,
                id=self.ids[index],
                status=refusal.status,
                detail=refusal.detail,
                **explained(refusal.reason),
            )
            for index, refusal in sorted(self.refused.items())
        ]

    def problem(self) -> ApiProblem:
        """The answer where nothing was taken. A member that lost to another of the batch is not the reason."""
        decisive = [refusal for refusal in self.refused.values() if refusal.reason != DUPLICATE_ID]
        status = decisive[0].status if len({refusal.status for refusal in decisive}) == 1 else 422
        detail = (
            decisive[0].detail if len(self.refused) == 1 else f"None of the {len(self.refused)} documents was accepted."
        )
        return ApiProblem(
            status,
            "Document refused",
            detail,
            headers=decisive[0].headers,
            members={"refused": [refusal.model_dump() for refusal in self.refusals()]},
        )


def build_batch(parsed: Iterable[ParsedMember], kafka: KafkaSettings, traceparent: str | None) -> Batch:
    """The batch of these documents. Each becomes a record before the next is read, so that the content of one alone is
    in memory beside the records."""
    batch = Batch()
    members: list[BatchMember] = []
    for index, each in enumerate(parsed):
        batch.ids.append(each.id)
        try:
            event = event_or_raise(each)
            batch.records[index] = record_of(event, kafka, traceparent)
        except ApiProblem as problem:
            batch.refused[index] = Refusal.from_problem(problem)
        else:
            batch.keys[index] = event.key
            deletes = isinstance(event, DocumentDelete)
            if isinstance(event, DocumentUpsert) and event.unknown_fields:
                batch.unknown_fields[index] = event.unknown_fields
            members.append(BatchMember(event.key, event.version, Position(0, index), deletes))
    for index, winner in superseded_members(members).items():
        batch.refused[index] = Refusal.from_problem(repeated_id(batch.keys[index], winner))
        del batch.records[index]
    return batch


def superseded_members(members: Iterable[BatchMember]) -> dict[int, int]:
    """The members that lose to another of the same document, with the one that wins, by index: as in the log."""
    by_document: dict[DocumentKey, list[BatchMember]] = defaultdict(list)
    for member in members:
        by_document[member.key].append(member)
    resolutions = [fold(None, events, {}) for events in by_document.values()]
    return {
        loser.position.offset: each.winner.position.offset
        for each in resolutions
        if each.winner is not None
        for loser in each.superseded
    }


def repeated_id(key: DocumentKey, winner: int) -> ApiProblem:
    """The message for a member whose document comes again in its batch."""
    return ApiProblem(
        409,
        "Document refused",
        f"The document {str(key)[:200]!r} comes again as the member {winner}, which is taken in its place. "
        "Send it once.",
        members={"reason": DUPLICATE_ID},
    )
