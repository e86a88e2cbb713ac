"""CloudEvents 1.0 over Kafka (https://github.com/cloudevents/spec, Kafka protocol binding, sections 3.2 and 3.3)."""

import base64
import binascii
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any

import msgspec

from schemas.errors import MalformedEvent
from schemas.tracing import CLOUDEVENT_TRACEPARENT

CLOUDEVENT_TYPE = "application/cloudevents+json"
JSON_TYPE = "application/json"


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What both modes have. `content_type` is None where the event has none, `type` empty where a header is missing."""

    specversion: str
    type: str
    subject: str | None
    sequence: str | int | None
    traceparent: str | None
    content: bytes
    content_type: str | None

    @property
    def deletes(self) -> bool:
        return self.type.endswith(".deleted")


class _Structured(msgspec.Struct, frozen=True, kw_only=True):
    specversion: str
    type: str
    subject: str | None = None
    sequence: str | int | None = None
    traceparent: str | None = None
    datacontenttype: str | None = None
    data: Any = None
    data_base64: str | None = None


_structured_decoder = msgspec.json.Decoder(_Structured)


def structured_cloudevent(value: bytes) -> CloudEvent:
    """An event whose attributes and data are one JSON object. Raises MalformedEvent."""
    try:
        event = _structured_decoder.decode(value.removeprefix(BOM_UTF8))
    except msgspec.ValidationError as error:
        raise MalformedEvent("wrong_type", f"The CloudEvent does not fit: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent("not_json", f"The record is not a CloudEvent: {error}.") from error
    content, content_type = _content(event)
    return CloudEvent(
        specversion=event.specversion,
        type=event.type,
        subject=event.subject,
        sequence=event.sequence,
        traceparent=event.traceparent,
        content=content,
        content_type=content_type,
    )


def binary_cloudevent(value: bytes, fields: Mapping[str, str]) -> CloudEvent:
    """An event whose attributes are headers (names in lower case) and whose data is the record's value."""
    return CloudEvent(
        specversion=fields["ce_specversion"],
        type=fields.get("ce_type", ""),
        subject=fields.get("ce_subject"),
        sequence=fields.get("ce_sequence"),
        traceparent=fields.get(CLOUDEVENT_TRACEPARENT),
        content=value,
        content_type=fields.get("content-type"),
    )


def _content(event: _Structured) -> tuple[bytes, str | None]:
    """The content and its media type: data that is not a string is JSON, also where it is not declared."""
    if event.data_base64 is not None:
        try:
            return base64.b64decode(event.data_base64, validate=True), event.datacontenttype
        except (binascii.Error, ValueError) as error:
            raise MalformedEvent("wrong_type", f"`data_base64` is not base64: {error}.") from error
    if event.data is None:
        return b"", event.datacontenttype
    if isinstance(event.data, str):
        return event.data.encode("utf-8", "surrogatepass"), event.datacontenttype
    return msgspec.json.encode(event.data), event.datacontenttype or JSON_TYPE
