"""A dead letter as it is on its topic, and as it is shown: escaped for a terminal."""

import codecs
from collections.abc import Sequence
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

    def header(self, name: str) -> bytes | None:
        """The last one of this name, as each process that refuses a record adds its own at the end."""
        return next((text for each, text in reversed(self.headers) if each == name), None)

    def stated(self, name: str) -> str | None:
        """What a header says of the failure, escaped."""
        text = self.header(name)
        return None if text is None else escaped(text, PREVIEW_BYTES)

    @property
    def reason(self) -> str:
        return self.stated(REASON_HEADER) or "unknown"

    @property
    def stage(self) -> str:
        return self.stated(CONNECT_PREFIX + "stage") or "unknown"

    @property
    def omitted(self) -> str | None:
        """How large the value was where it was too large to be kept."""
        return self.stated(OMITTED_HEADER)

    @property
    def own_headers(self) -> list[tuple[str, bytes]]:
        """Those the record came with when it was produced first."""
        return [(name, text) for name, text in self.headers if not is_bookkeeping(name)]

    @property
    def source(self) -> DeadLetterSource | None:
        """The record that became the letter."""
        names = ("topic", "partition", "offset", LAST_OFFSET)
        topic, partition, offset, last = (self.stated(CONNECT_PREFIX + name) or "" for name in names)
        if not (topic and partition.isdecimal() and offset.isdecimal()):
            return None
        last_offset = int(last) if last.isdecimal() else None
        return DeadLetterSource(topic=topic, partition=int(partition), offset=int(offset), last_offset=last_offset)

    @property
    def where(self) -> str:
        """Where the record is that became the letter, in words."""
        source = self.source
        return f"{source.topic} at {source.partition}:{source.offset}" if source else "its topic"


def summary(record: LetterRecord, **known: Any) -> DeadLetterSummary:
    """With what else is `known` of it: what it is of, and what became of that."""
    return DeadLetterSummary(**_summary(record), **known)


def detail(record: LetterRecord, **known: Any) -> DeadLetterDetail:
    value = record.value or b""
    return DeadLetterDetail(
        **_summary(record),
        **known,
        headers={name: escaped(text, KEY_BYTES) for name, text in record.own_headers},
        preview=escaped(value, PREVIEW_BYTES, keep="\n\t"),
        preview_is_all=len(value) <= PREVIEW_BYTES and record.omitted is None,
    )


def escaped(content: bytes, most_bytes: int, keep: str = "") -> str:
    """The beginning as text. What is not UTF-8, and every character that does not print, is escaped, but for `keep`."""
    is_all = len(content) <= most_bytes
    text = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(content[:most_bytes], final=is_all)
    return "".join(each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text)


def _summary(record: LetterRecord) -> dict[str, Any]:
    earlier = decode_attempts(record.header(ATTEMPTS_HEADER))
    return {
        "position": f"{record.partition}:{record.offset}",
        "key": None if record.key is None else escaped(record.key, KEY_BYTES),
        "source": record.source,
        "stage": record.stage,
        **explanation_fields(record.reason),
        "message": record.stated(CONNECT_PREFIX + "exception.message") or "",
        "at": rfc3339(record.timestamp_ms),
        "bytes": None if record.value is None else len(record.value),
        "content_bytes": _content_bytes(record),
        "omitted": record.omitted,
        "attempt": earlier[-1].number + 1 if earlier else 1,
        "earlier_attempts": earlier,
    }


def _content_bytes(record: LetterRecord) -> int | None:
    if record.omitted is not None:
        return None
    try:
        event = decode_document_event(record.key, record.value, record.headers, NO_LIMITS)
    except MalformedEvent:
        return None
    return len(event.content) if isinstance(event, DocumentUpsert) else None
