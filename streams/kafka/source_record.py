"""A record as it came from a topic."""

from dataclasses import dataclass
from typing import Any, Final

from schemas.ids import Position
from streams.kafka.dead_letters import DeadLetter, Stage

GAP_HEADERS: Final = (("", b""),)
"""Marks, by being this very object, a message that stands for offsets at which the log holds nothing that counts."""


@dataclass(frozen=True)
class SourceRecord:
    """A record of one topic, undecoded; or a gap: there is nothing between the record before and this offset, itself
    included, but aborted transactions, their marks, what compaction took, and batches that were passed by."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    is_gap: bool = False

    @classmethod
    def of(cls, message: Any) -> "SourceRecord":
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

    @property
    def position(self) -> Position:
        return Position(self.partition, self.offset)

    @property
    def size_bytes(self) -> int:
        return len(self.value or b"") + len(self.key or b"")

    def letter(self, topic: str, stage: Stage, error: Exception) -> DeadLetter:
        """This record as a dead letter, for what went wrong with it in this stage."""
        return DeadLetter.of(
            topic,
            self.partition,
            self.offset,
            key=self.key,
            value=self.value,
            headers=self.headers,
            stage=stage,
            error=error,
        )
