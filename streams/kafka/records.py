"""Records of a topic, and dead letters: records that no retry can help, unchanged.

A dead letter's headers are those of `schemas.dead_letters`, without stack traces and parts of documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from schemas.dead_letters import ATTEMPTS_HEADER, CONNECT_PREFIX, OMITTED_HEADER, REASON_HEADER, is_bookkeeping
from schemas.errors import DeadLetterReason, MalformedEvent
from schemas.ids import Position

Headers = Sequence[tuple[str, bytes]]
Stage = Literal["decode", "prepare", "embed", "link", "store"]

MAX_MESSAGE_CHARACTERS = 2_000


@dataclass(frozen=True)
class DeadLetter:
    """The original record, and why: for counting (`reason`) and for a person (`message`)."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    stage: Stage
    reason: DeadLetterReason
    message: str
    exception: str


def letter_headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """The original headers, without those of an earlier dead letter, and those of this error. A redriven record carries
    its earlier attempts, and so does this letter."""
    original = [(name, value) for name, value in letter.headers if name == ATTEMPTS_HEADER or not is_bookkeeping(name)]
    error = {
        "topic": letter.topic,
        "partition": str(letter.partition),
        "offset": str(letter.offset),
        "connector.name": "thalweg",
        "task.id": "0",
        "stage": letter.stage,
        "class.name": f"thalweg.{letter.stage}",
        "exception.class.name": letter.exception,
        "exception.message": letter.message[:MAX_MESSAGE_CHARACTERS],
    }
    encoded = [(CONNECT_PREFIX + name, text.encode("utf-8", "replace")) for name, text in error.items()]
    return [*original, *encoded, (REASON_HEADER, letter.reason.encode("utf-8", "replace"))]


def omitted_headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """For a record that does not fit the dead letters topic with its new headers: it is sent with an empty value.

    The source's topic, partition and offset, in the other headers, say where its bytes still are.
    """
    size = len(letter.value or b"")
    headers = [(name, value) for name, value in letter_headers(letter) if is_bookkeeping(name)]
    return [*headers, (OMITTED_HEADER, f"{size} bytes".encode())]


GAP_HEADERS: Final = (("", b""),)
"""Marks, by identity, a message for offsets without a readable record."""


@dataclass(frozen=True)
class SourceRecord:
    """A record of one topic, undecoded; or a gap: there is nothing between the record before and this offset, itself
    included, but aborted transactions, their marks, what compaction took, and skipped batches."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    is_gap: bool = False

    @classmethod
    def from_message(cls, message: Any) -> "SourceRecord":
        """The record in a Faust message of a raw topic."""
        headers = message.headers or ()
        pairs = headers.items() if isinstance(headers, dict) else headers
        return cls(
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=round((message.timestamp or 0.0) * 1000),
            key=message.key,
            value=message.value,
            headers=tuple((name, value or b"") for name, value in pairs),
            is_gap=headers is GAP_HEADERS,
        )

    @classmethod
    def from_kafka(cls, record: Any) -> "SourceRecord":
        """The record as aiokafka's consumers return it."""
        headers = tuple((name, value or b"") for name, value in record.headers or ())
        return cls(record.partition, record.offset, record.timestamp, record.key, record.value, headers)

    @property
    def position(self) -> Position:
        return Position(self.partition, self.offset)

    @property
    def size_bytes(self) -> int:
        return len(self.value or b"") + len(self.key or b"")

    def dead_letter(self, topic: str, stage: Stage, error: Exception) -> DeadLetter:
        """Of an error that is not ours only the class is named: its message may quote the document."""
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        reason: DeadLetterReason = "failed"
        message = f"Indexing failed unexpectedly ({kind}). Send it again after the next release."
        if isinstance(error, MalformedEvent):
            reason, message = error.reason, str(error)
        source = topic, self.partition, self.offset, self.key, self.value, self.headers
        return DeadLetter(*source, stage, reason, message, kind)
