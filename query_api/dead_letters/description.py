"""A record of the dead letters topic in words: where it came from, what was wrong, and its bytes so that they can be
read and do nothing to a terminal."""

import codecs
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from schemas.clock import rfc3339
from schemas.dead_letters import (
    CONNECT_PREFIX,
    LAST_OFFSET,
    OMITTED_HEADER,
    REASON_HEADER,
    DeadLetterDetail,
    DeadLetterSource,
    DeadLetterSummary,
)
from schemas.errors import MalformedEvent
from schemas.events import DocumentUpsert, decode_document_event
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

    @property
    def omitted(self) -> bool:
        return any(name == OMITTED_HEADER for name, _ in self.headers)


def reason_of(record: LetterRecord) -> str:
    """As a summary tells it, without reading the value."""
    return next((escaped(text, PREVIEW_BYTES) for name, text in record.headers if name == REASON_HEADER), "unknown")


def summary(record: LetterRecord) -> DeadLetterSummary:
    return DeadLetterSummary(**_summary(record))


def detail(record: LetterRecord) -> DeadLetterDetail:
    value = record.value or b""
    own = [(name, text) for name, text in record.headers if not _is_error_header(name)]
    return DeadLetterDetail(
        **_summary(record),
        headers={name: escaped(text, KEY_BYTES) for name, text in own},
        preview=escaped(value, PREVIEW_BYTES, keep="\n\t"),
        preview_is_all=len(value) <= PREVIEW_BYTES and not record.omitted,
    )


def escaped(content: bytes, most_bytes: int, keep: str = "") -> str:
    """The beginning as text. What is no UTF-8, and every character that does not print, is escaped, but for `keep`."""
    is_all = len(content) <= most_bytes
    text = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(content[:most_bytes], final=is_all)
    return "".join(each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text)


def _summary(record: LetterRecord) -> dict[str, Any]:
    error = {name: escaped(text or b"", PREVIEW_BYTES) for name, text in record.headers if _is_error_header(name)}
    return {
        "position": f"{record.partition}:{record.offset}",
        "key": None if record.key is None else escaped(record.key, KEY_BYTES),
        "source": _source(error),
        "stage": error.get(CONNECT_PREFIX + "stage", "unknown"),
        "reason": reason_of(record),
        "message": error.get(CONNECT_PREFIX + "exception.message", ""),
        "at": rfc3339(record.timestamp_ms),
        "bytes": None if record.value is None else len(record.value),
        "content_bytes": None if record.omitted else _content_bytes(record),
        "omitted": error.get(OMITTED_HEADER),
    }


def _content_bytes(record: LetterRecord) -> int | None:
    try:
        event = decode_document_event(record.key, record.value, record.headers, NO_LIMITS)
    except MalformedEvent:
        return None
    return len(event.content) if isinstance(event, DocumentUpsert) else None


def _is_error_header(name: str) -> bool:
    return name.startswith(CONNECT_PREFIX) or name in (REASON_HEADER, OMITTED_HEADER)


def _source(error: Mapping[str, str]) -> DeadLetterSource | None:
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
