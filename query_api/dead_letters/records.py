"""A dead letter as it stands on its topic, and how people see it: escaped for a terminal."""

import codecs
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from schemas.clock import rfc3339
from schemas.dead_letters import (
    ATTEMPTS_HEADER,
    CONNECT_PREFIX,
    LAST_OFFSET,
    OMITTED_HEADER,
    REASON_HEADER,
    DeadLetterDetail,
    DeadLetterSource,
    DeadLetterSummary,
    decode_attempts,
    is_bookkeeping,
)
from schemas.errors import MalformedEvent
from schemas.events import DocumentUpsert, decode_document_event
from schemas.refusals import explanation_fields
from schemas.settings import LimitSettings

NO_LIMITS = LimitSettings(max_document_bytes=2**62, max_metadata_bytes=2**62)
PREVIEW_BYTES = 2_000
KEY_BYTES = 300


class LetterRecord(NamedTuple):
    """A record of the topic, undecoded."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]

    @classmethod
    def of(cls, record: Any) -> Self:
        """Of a record as aiokafka returns it."""
        headers = [(name, value or b"") for name, value in record.headers]
        return cls(record.partition, record.offset, record.timestamp, record.key, record.value, headers)

    @property
    def omitted(self) -> bool:
        return any(name == OMITTED_HEADER for name, _ in self.headers)

    def header(self, name: str) -> bytes | None:
        """The last one of this name, as whoever set the record apart adds its own at the end."""
        return next((text for each, text in reversed(self.headers) if each == name), None)


def reason_of(record: LetterRecord) -> str:
    """As a summary tells it, without reading the value."""
    reason = record.header(REASON_HEADER)
    return "unknown" if reason is None else escaped(reason, PREVIEW_BYTES)


def summary(record: LetterRecord) -> DeadLetterSummary:
    return DeadLetterSummary(**_summary(record))


def detail(record: LetterRecord) -> DeadLetterDetail:
    value = record.value or b""
    return DeadLetterDetail(
        **_summary(record),
        headers={name: escaped(text, KEY_BYTES) for name, text in own_headers(record)},
        preview=escaped(value, PREVIEW_BYTES, keep="\n\t"),
        preview_is_all=len(value) <= PREVIEW_BYTES and not record.omitted,
    )


def own_headers(record: LetterRecord) -> list[tuple[str, bytes]]:
    """Those the record came with when it was produced first."""
    return [(name, text) for name, text in record.headers if not is_bookkeeping(name)]


def errors_of(record: LetterRecord) -> dict[str, str]:
    """What the headers say of the failure, by name, escaped."""
    return {name: escaped(text or b"", PREVIEW_BYTES) for name, text in record.headers if is_bookkeeping(name)}


def escaped(content: bytes, most_bytes: int, keep: str = "") -> str:
    """The beginning as text. What is no UTF-8, and every character that does not print, is escaped, but for `keep`."""
    is_all = len(content) <= most_bytes
    text = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(content[:most_bytes], final=is_all)
    return "".join(each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text)


def _summary(record: LetterRecord) -> dict[str, Any]:
    error = errors_of(record)
    earlier = decode_attempts(record.header(ATTEMPTS_HEADER))
    return {
        "position": f"{record.partition}:{record.offset}",
        "key": None if record.key is None else escaped(record.key, KEY_BYTES),
        "source": source_of(error),
        "stage": error.get(CONNECT_PREFIX + "stage", "unknown"),
        **explanation_fields(reason_of(record)),
        "message": error.get(CONNECT_PREFIX + "exception.message", ""),
        "at": rfc3339(record.timestamp_ms),
        "bytes": None if record.value is None else len(record.value),
        "content_bytes": None if record.omitted else _content_bytes(record),
        "omitted": error.get(OMITTED_HEADER),
        "attempt": earlier[-1].number + 1 if earlier else 1,
        "earlier_attempts": earlier,
    }


def _content_bytes(record: LetterRecord) -> int | None:
    try:
        event = decode_document_event(record.key, record.value, record.headers, NO_LIMITS)
    except MalformedEvent:
        return None
    return len(event.content) if isinstance(event, DocumentUpsert) else None


def source_of(error: Mapping[str, str]) -> DeadLetterSource | None:
    """The record that became the letter, by what `errors_of` found."""
    topic, partition, offset = (error.get(CONNECT_PREFIX + name, "") for name in ("topic", "partition", "offset"))
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        return None
    last = error.get(CONNECT_PREFIX + LAST_OFFSET, "")
    return DeadLetterSource(
        topic=topic,
        partition=int(partition),
        offset=int(offset),
        last_offset=int(last) if last.isdecimal() else None,
    )
