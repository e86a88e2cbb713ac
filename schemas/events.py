"""Document events: what a record of `documents.v1` may say, decoded once, at the edge.

Three forms, told apart by headers: the JSON envelope (default), raw content with its media type, and CloudEvents 1.0
in binary and structured mode. A null value deletes.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey, sha256_hex
from schemas.settings import LimitSettings

ENVELOPE_TYPE = "application/vnd.thalweg.document+json"
DEFAULT_CONTENT_TYPE = "text/markdown"
METADATA_HEADER_PREFIX = "thalweg-"

JSONValue = Any  # what msgspec makes of JSON: None, bool, int, float, str, list, dict


class DocumentUpsert(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it should now be. `links` name documents: an id of the same collection, or `collection/id`."""

    key: DocumentKey
    content: bytes
    content_type: str
    title: str | None = None
    uri: str | None = None
    metadata: dict[str, JSONValue] = {}
    version: int | None = None
    links: list[str] = []
    unknown_fields: int = 0

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


DocumentEvent = DocumentUpsert | DocumentDelete


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON envelope, as producers write it and `POST /v1/documents` takes it."""

    id: str
    collection: str = "default"
    title: str | None = None
    content: str | None = None
    content_base64: str | None = None
    content_type: str = DEFAULT_CONTENT_TYPE
    uri: str | None = None
    metadata: dict[str, JSONValue] = {}
    version: int | str | None = None
    links: list[str] = []


_ENVELOPE_FIELDS = frozenset(Envelope.__struct_fields__)
_envelope_decoder = msgspec.json.Decoder(Envelope)
_any_decoder = msgspec.json.Decoder()


def decode_document_event(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]], limits: LimitSettings
) -> DocumentEvent:
    """The event a record carries.

    Raises MalformedEvent with a reason code and a sentence for the producer; no other exception.
    """
    document = _decode_key(key)
    if value is None:
        return DocumentDelete(key=document)
    fields = {name.lower(): header.decode("utf-8", "replace") for name, header in headers}
    content_type = fields.get("content-type", ENVELOPE_TYPE)
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/cloudevents+json":
        return _from_structured_cloudevent(document, value, limits)
    if "ce_specversion" in fields:
        return _from_binary_cloudevent(document, value, fields, limits)
    if media_type == ENVELOPE_TYPE:
        return upsert_from_envelope(decode_envelope(value), limits, expected=document)
    metadata = {
        name.removeprefix(METADATA_HEADER_PREFIX): text
        for name, text in fields.items()
        if name.startswith(METADATA_HEADER_PREFIX)
    }
    return _checked(DocumentUpsert(key=document, content=value, content_type=content_type, metadata=metadata), limits)


def decode_envelope(value: bytes) -> tuple[Envelope, int]:
    """The envelope and the number of unknown fields that were left out. Raises MalformedEvent."""
    try:
        envelope = _envelope_decoder.decode(value)
    except msgspec.ValidationError as error:
        raise MalformedEvent("wrong_type", f"The envelope does not fit: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent("not_json", f"The record is not a JSON envelope: {error}.") from error
    raw = _any_decoder.decode(value)
    return envelope, len(raw.keys() - _ENVELOPE_FIELDS)


def upsert_from_envelope(
    decoded: tuple[Envelope, int], limits: LimitSettings, *, expected: DocumentKey | None = None
) -> DocumentUpsert:
    """The upsert an envelope asks for; `expected` is the record's key, which the envelope must agree with."""
    envelope, unknown_fields = decoded
    key = DocumentKey.checked(envelope.collection, envelope.id)
    if expected is not None and key != expected:
        raise MalformedEvent(
            "key_mismatch", f"The envelope names {str(key)[:80]!r} but the record's key is {str(expected)[:80]!r}."
        )
    return _checked(
        DocumentUpsert(
            key=key,
            content=_envelope_content(envelope),
            content_type=envelope.content_type,
            title=envelope.title,
            uri=envelope.uri,
            metadata=envelope.metadata,
            version=_version(envelope.version),
            links=envelope.links,
            unknown_fields=unknown_fields,
        ),
        limits,
    )


def _decode_key(key: bytes | None) -> DocumentKey:
    if not key:
        raise MalformedEvent("missing_id", "The record has no key; the key is '<collection>/<document id>'.")
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
        raise MalformedEvent("empty_content", "The envelope has neither `content` nor `content_base64`.")
    try:
        return base64.b64decode(envelope.content_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedEvent("wrong_type", f"`content_base64` is not base64: {error}.") from error


def _version(version: int | str | None) -> int | None:
    if version is None:
        return None
    if isinstance(version, str):
        if not (version.isascii() and version.isdigit() and len(version) <= 19):
            raise MalformedEvent("wrong_type", f"The version {version[:40]!r} is not a whole number.")
        version = int(version)
    if not 0 <= version < 2**63:
        raise MalformedEvent("wrong_type", "A version is a whole number from 0 to 2^63 - 1.")
    return version


def _checked(event: DocumentUpsert, limits: LimitSettings) -> DocumentUpsert:
    if len(event.content) > limits.max_document_bytes:
        raise MalformedEvent(
            "too_large",
            f"The content has {len(event.content):,} bytes; the limit is {limits.max_document_bytes:,}. "
            "Split the document or raise THALWEG_LIMITS__MAX_DOCUMENT_BYTES.",
        )
    if not event.content.strip():
        raise MalformedEvent("empty_content", "The content is empty; to delete a document send a null value.")
    metadata_bytes = len(msgspec.json.encode(event.metadata))
    if metadata_bytes > limits.max_metadata_bytes:
        raise MalformedEvent(
            "metadata_too_large",
            f"The metadata has {metadata_bytes:,} bytes; the limit is {limits.max_metadata_bytes:,}.",
        )
    return event


# CloudEvents 1.0 (https://github.com/cloudevents/spec, Kafka protocol binding, sections 3.2 and 3.3)


class _CloudEvent(msgspec.Struct, frozen=True, kw_only=True):
    specversion: str
    type: str
    subject: str | None = None
    sequence: str | int | None = None
    datacontenttype: str | None = None
    data: JSONValue = None
    data_base64: str | None = None


_cloudevent_decoder = msgspec.json.Decoder(_CloudEvent)


def _from_structured_cloudevent(document: DocumentKey, value: bytes, limits: LimitSettings) -> DocumentEvent:
    try:
        event = _cloudevent_decoder.decode(value)
    except msgspec.ValidationError as error:
        raise MalformedEvent("wrong_type", f"The CloudEvent does not fit: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent("not_json", f"The record is not a CloudEvent: {error}.") from error
    if event.data_base64 is not None:
        try:
            content = base64.b64decode(event.data_base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise MalformedEvent("wrong_type", f"`data_base64` is not base64: {error}.") from error
    elif isinstance(event.data, str):
        content = event.data.encode("utf-8", "surrogatepass")
    else:
        content = b"" if event.data is None else msgspec.json.encode(event.data)
    return _from_cloudevent(document, event, content, {}, limits)


def _from_binary_cloudevent(
    document: DocumentKey, value: bytes, fields: Mapping[str, str], limits: LimitSettings
) -> DocumentEvent:
    metadata: dict[str, JSONValue] = {
        name.removeprefix(METADATA_HEADER_PREFIX): text
        for name, text in fields.items()
        if name.startswith(METADATA_HEADER_PREFIX)
    }
    event = _CloudEvent(
        specversion=fields["ce_specversion"],
        type=fields.get("ce_type", ""),
        subject=fields.get("ce_subject"),
        sequence=fields.get("ce_sequence"),
        datacontenttype=fields.get("content-type"),
    )
    return _from_cloudevent(document, event, value, metadata, limits)


def _from_cloudevent(
    document: DocumentKey, event: _CloudEvent, content: bytes, metadata: dict[str, JSONValue], limits: LimitSettings
) -> DocumentEvent:
    if not event.specversion.startswith("1."):
        raise MalformedEvent("wrong_type", f"CloudEvents {event.specversion[:20]!r} is not supported; send 1.0.")
    if event.subject is not None and event.subject not in (document.document_id, str(document)):
        raise MalformedEvent(
            "key_mismatch", f"The subject {event.subject[:80]!r} is not the id in the key {str(document)[:80]!r}."
        )
    version = _version(event.sequence)
    if event.type.endswith(".deleted"):
        return DocumentDelete(key=document, version=version)
    content_type = event.datacontenttype or DEFAULT_CONTENT_TYPE
    if content_type.partition(";")[0].strip().lower() == ENVELOPE_TYPE:
        upsert = upsert_from_envelope(decode_envelope(content), limits, expected=document)
        return upsert if version is None else msgspec.structs.replace(upsert, version=version)
    return _checked(
        DocumentUpsert(key=document, content=content, content_type=content_type, metadata=metadata, version=version),
        limits,
    )
