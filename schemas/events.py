"""Document events: what a record of `documents.v1` may hold, decoded once, at the edge.

Three forms, distinguished by headers: the JSON envelope (where no `content-type` is given, or its own), raw content
with its media type (`application/json` too: that is a JSON document), and CloudEvents 1.0 in binary and structured
mode. A null value deletes.
"""

import base64
import binascii
import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from schemas.cloudevents import CLOUDEVENT_TYPE, CloudEvent, binary_cloudevent, structured_cloudevent
from schemas.errors import MalformedEvent
from schemas.graph_documents import read_made
from schemas.ids import DEFAULT_COLLECTION, DocumentKey, sha256_hex
from schemas.limits import check_bounds, check_metadata, check_metadata_text, is_blank, is_visible
from schemas.settings import LimitSettings
from schemas.tracing import CLOUDEVENT_TRACEPARENT, TRACEPARENT, well_formed

ENVELOPE_TYPE = "application/vnd.thalweg.document+json"
DEFAULT_CONTENT_TYPE = "text/markdown"
METADATA_HEADER_PREFIX = "thalweg-"
URI_HEADER = "content-location"  # of raw content, as RFC 9110 has it

_FRAMED_KEY = "The record's key begins as serializers of a schema registry write it. Write it as plain text,"
_WHOLE_NUMBER = re.compile(r"0*([0-9]*)(?<=[0-9])(?:\.0+)?", re.ASCII)
JSONValue = Any  # what msgspec makes of JSON: None, bool, int, float, str, list, dict


class DocumentUpsert(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it should now be. `links` name documents: an id of the same collection, or `collection/id`.

    Content may be blank where there is a title: then the title is its text.

    `traceparent` is the producer's W3C trace context; it does not count for the revision.
    """

    key: DocumentKey
    content: bytes
    content_type: str
    title: str | None = None
    uri: str | None = None
    metadata: dict[str, JSONValue] = {}
    version: int | None = None
    links: list[str] = []
    unknown_fields: tuple[str, ...] = ()  # names that were left out
    traceparent: str | None = None

    @property
    def is_title_only(self) -> bool:
        """Whether its title is all there is to read: blank content beside a title that is not."""
        return is_visible(self.title) and is_blank(self.content)

    @property
    def revision(self) -> str:
        """32 hex digits of everything that decides what is indexed; equal revisions leave equal rows."""
        identity = msgspec.json.encode(
            [
                str(self.key),
                sha256_hex(self.content),
                self.content_type,
                self.title,
                self.uri,
                self.metadata,
                self.links,
            ],
            order="deterministic",
        )
        return sha256_hex(identity)[:32]


class DocumentDelete(msgspec.Struct, frozen=True, kw_only=True):
    key: DocumentKey
    version: int | None = None
    traceparent: str | None = None


DocumentEvent = DocumentUpsert | DocumentDelete


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON envelope, as producers write it and `POST /v1/documents` takes it."""

    id: str
    collection: str = DEFAULT_COLLECTION
    title: str | None = None
    content: str | None = None
    content_base64: str | None = None
    content_type: str = DEFAULT_CONTENT_TYPE
    uri: str | None = None
    metadata: dict[str, JSONValue] = {}
    version: int | str | None = None
    links: list[str] = []


class _EnvelopeAsSent(msgspec.Struct, frozen=True, kw_only=True):
    """The envelope before its metadata is decoded, which can take a hundred times the room of its text. What may be
    left out may be null, and a whole number may have a decimal point: serializers of typed records write both."""

    id: str
    collection: str | None = None
    title: str | None = None
    content: str | None = None
    content_base64: str | None = None
    content_type: str | None = None
    uri: str | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    version: int | float | str | None = None
    links: list[str] | None = None


ENVELOPE_FIELDS = Envelope.__struct_fields__
_envelope_decoder = msgspec.json.Decoder(_EnvelopeAsSent)
_metadata_decoder = msgspec.json.Decoder(dict[str, JSONValue] | None)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode_document_event(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]], limits: LimitSettings
) -> DocumentEvent:
    """The event a record carries.

    Raises MalformedEvent with a reason code and a sentence for the producer; no other exception.
    """
    document = _decode_key(key)
    fields = {name.lower(): header.decode("utf-8", "replace") for name, header in headers}
    event = _decode_value(document, value, fields, limits)
    traceparent = well_formed(fields.get(TRACEPARENT)) or event.traceparent
    return msgspec.structs.replace(event, traceparent=traceparent) if traceparent else event


def _decode_value(
    document: DocumentKey, value: bytes | None, fields: Mapping[str, str], limits: LimitSettings
) -> DocumentEvent:
    is_binary_cloudevent = "ce_specversion" in fields
    if value is None:
        version = _version(fields.get("ce_sequence")) if is_binary_cloudevent else None
        return DocumentDelete(
            key=document, version=version, traceparent=well_formed(fields.get(CLOUDEVENT_TRACEPARENT))
        )
    content_type = fields.get("content-type", ENVELOPE_TYPE)
    media_type = media_type_in(content_type)
    if media_type in (ENVELOPE_TYPE, CLOUDEVENT_TYPE) and not is_binary_cloudevent:
        value = without_frame(value)
    if media_type == CLOUDEVENT_TYPE:
        return _from_cloudevent(document, structured_cloudevent(value), {}, limits)
    if is_binary_cloudevent:
        return _from_cloudevent(document, binary_cloudevent(value, fields), _metadata_in(fields), limits)
    if media_type == ENVELOPE_TYPE:
        return upsert_from_envelope(decode_envelope(value, limits), limits, expected=document)
    upsert = DocumentUpsert(
        key=document,
        content=value,
        content_type=content_type,
        uri=fields.get(URI_HEADER),
        metadata=_metadata_in(fields),
    )
    return checked(upsert, limits)


def without_frame(value: bytes) -> bytes:
    """JSON without what serializers of schema registries put before it: a zero and the schema's id in four bytes
    (Confluent's) or eight (Apicurio's), or 3, 0 and an id of sixteen bytes (AWS Glue's). Raises MalformedEvent for what
    is framed so and no JSON."""
    lengths = {b"\x00": (5, 9), b"\x03": (18,)}.get(value[:1])
    if lengths is None:
        return value
    framed = next((length for length in lengths if value[length:].lstrip()[:1] == b"{"), None)
    if framed is None:
        raise MalformedEvent(
            "not_json",
            "The value begins as serializers of a schema registry write Avro or Protobuf, which is not read. Publish "
            "JSON: with the registry's JSON Schema serializer, or by a converter in between.",
        )
    return value[framed:]


def media_type_in(content_type: str) -> str:
    """The media type without parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def decode_envelope(value: bytes | bytearray | msgspec.Raw, limits: LimitSettings) -> tuple[Envelope, tuple[str, ...]]:
    """The envelope and the names of unknown fields that were left out. Raises MalformedEvent."""
    if not isinstance(value, msgspec.Raw):
        value = value.removeprefix(BOM_UTF8)
    try:
        sent = _envelope_decoder.decode(value)
        check_metadata_text(len(memoryview(sent.metadata)), limits)
        metadata = _metadata_decoder.decode(sent.metadata) or {}
    except msgspec.ValidationError as error:
        raise MalformedEvent("wrong_type", f"The envelope does not fit: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent("not_json", f"The record is not a JSON envelope: {error}.") from error
    given = {name: each for name, each in msgspec.structs.asdict(sent).items() if each is not None}
    envelope = Envelope(**given | {"metadata": metadata, "version": _version(sent.version)})
    return envelope, tuple(name for name in _fields_decoder.decode(value) if name not in ENVELOPE_FIELDS)


def upsert_from_envelope(
    decoded: tuple[Envelope, tuple[str, ...]], limits: LimitSettings, *, expected: DocumentKey | None = None
) -> DocumentUpsert:
    """The upsert an envelope asks for; `expected` is the record's key, which the envelope must agree with."""
    envelope, unknown_fields = decoded
    key = DocumentKey.checked(envelope.collection, envelope.id)
    if expected is not None and key != expected:
        raise MalformedEvent(
            "key_mismatch", f"The envelope names {str(key)[:80]!r} but the record's key is {str(expected)[:80]!r}."
        )
    upsert = DocumentUpsert(
        key=key,
        content=_envelope_content(envelope),
        content_type=envelope.content_type,
        title=envelope.title,
        uri=envelope.uri,
        metadata=envelope.metadata,
        version=_version(envelope.version),
        links=envelope.links,
        unknown_fields=unknown_fields,
    )
    try:
        return checked(upsert, limits)
    except MalformedEvent as error:
        if error.reason != "empty_content" or not unknown_fields:
            raise
        from schemas.unknown_fields import note_unknown  # which needs the fields above

        raise MalformedEvent(error.reason, f"{error} {note_unknown(unknown_fields)}") from error


def _metadata_in(fields: Mapping[str, str]) -> dict[str, JSONValue]:
    return {
        name.removeprefix(METADATA_HEADER_PREFIX): text
        for name, text in fields.items()
        if name.startswith(METADATA_HEADER_PREFIX)
    }


def _decode_key(key: bytes | None) -> DocumentKey:
    if not key:
        raise MalformedEvent("missing_id", "The record has no key; the key is '<collection>/<document id>'.")
    if key[0] == 0:
        raise MalformedEvent("bad_key", f"{_FRAMED_KEY} '<collection>/<document id>'.")
    try:
        return DocumentKey.parse(key.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedEvent("bad_key", "The record's key is not UTF-8.") from error


def _envelope_content(envelope: Envelope) -> bytes:
    if envelope.content is not None and envelope.content_base64 is not None:
        raise MalformedEvent("wrong_type", "Give `content` or `content_base64`, not both.")
    if envelope.content is not None:
        return envelope.content.encode("utf-8", "surrogatepass")
    if envelope.content_base64 is None:
        return b""
    try:
        return base64.b64decode(envelope.content_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedEvent("wrong_type", f"`content_base64` is not base64: {error}.") from error


def _version(version: float | str | None) -> int | None:
    """Of a whole number, also one that is written as text or with zeros behind a decimal point."""
    if version is None:
        return None
    if isinstance(version, str):
        whole = _WHOLE_NUMBER.fullmatch(version)
        if whole is None:
            raise MalformedEvent("wrong_type", f"The version {version[:40]!r} is not a whole number.")
        version = int(whole[1][:20] or "0")  # twenty are too many already, and Python reads no more than some thousands
    if not 0 <= version < 2**63 or version != int(version):
        raise MalformedEvent("wrong_type", "A version is a whole number from 0 to 2^63 - 1.")
    return int(version)


def checked(event: DocumentUpsert, limits: LimitSettings) -> DocumentUpsert:
    """The same event, without a title of which nothing can be seen. Raises MalformedEvent for one that is empty or
    over a limit, and for a node or an edge that is not one."""
    check_content_size(len(event.content), limits)
    if is_blank(event.content) and not event.is_title_only:
        raise MalformedEvent(
            "empty_content",
            "The content is empty, and there is no title; send either, or a null value to delete the document.",
        )
    check_bounds(title=event.title, uri=event.uri, content_type=event.content_type, links=event.links)
    check_metadata(event.metadata, limits)
    read_made(event.key, event.content_type, event.content)
    return msgspec.structs.replace(event, title=None) if event.title and not is_visible(event.title) else event


def check_content_size(size: int, limits: LimitSettings) -> None:
    """Raises MalformedEvent for content of so many bytes where that is over the limit."""
    if size > limits.max_document_bytes:
        raise MalformedEvent(
            "too_large",
            f"The content has {size:,} bytes; the limit is {limits.max_document_bytes:,}. "
            "Split the document or raise THALWEG_LIMITS__MAX_DOCUMENT_BYTES.",
        )


def _from_cloudevent(
    document: DocumentKey, event: CloudEvent, metadata: dict[str, JSONValue], limits: LimitSettings
) -> DocumentEvent:
    if not event.specversion.startswith("1."):
        raise MalformedEvent("wrong_type", f"CloudEvents {event.specversion[:20]!r} is not supported; send 1.0.")
    if not event.type:
        raise MalformedEvent(
            "wrong_type", "The CloudEvent has no type; every one has `type`, in binary mode as the header `ce_type`."
        )
    if event.subject is not None and event.subject not in (document.document_id, str(document)):
        raise MalformedEvent(
            "key_mismatch", f"The subject {event.subject[:80]!r} is not the id in the key {str(document)[:80]!r}."
        )
    version = _version(event.sequence)
    traceparent = well_formed(event.traceparent)
    if event.deletes:
        return DocumentDelete(key=document, version=version, traceparent=traceparent)
    content_type = event.content_type or DEFAULT_CONTENT_TYPE
    if media_type_in(content_type) == ENVELOPE_TYPE:
        upsert = upsert_from_envelope(decode_envelope(event.content, limits), limits, expected=document)
        kept = upsert.version if version is None else version
        return msgspec.structs.replace(upsert, version=kept, traceparent=traceparent)
    upsert = DocumentUpsert(
        key=document,
        content=event.content,
        content_type=content_type,
        metadata=metadata,
        version=version,
        traceparent=traceparent,
    )
    return checked(upsert, limits)
