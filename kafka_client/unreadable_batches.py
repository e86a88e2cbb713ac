"""Batches of a log that cannot be read: a wrong checksum, an unknown codec, bytes that are not records.

aiokafka raises while it returns records, and does not say which offsets to seek past
(https://github.com/aio-libs/aiokafka/issues/321): what it had decoded of the same partition before is lost, and so is
what it had taken from other partitions. Here each batch is decoded before any of it is returned. Records before an
unreadable batch come as usual; then the partition stops, with an error that says where.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, Self

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException, KafkaError, UnsupportedCodecError

log = structlog.get_logger(__name__)

Fault = Literal["checksum", "codec", "content"]

_FAULTS: dict[Fault, str] = {
    "checksum": "its checksum does not match its bytes",
    "codec": "it is compressed with a codec that is not known",
    "content": "its bytes are not records",
}


class UnreadableBatch(KafkaError):  # type: ignore[misc]  # aiokafka is not typed
    """No client can read the batch at these offsets, both inclusive; nothing after it is read until it is skipped."""

    def __init__(self, topic: str, partition: int, first: int, last: int, fault: Fault) -> None:
        super().__init__(
            f"{topic} partition {partition}, offsets {first} to {last}: a batch cannot be read: {_FAULTS[fault]}. "
            "What comes after it in this partition waits. Send again what it held, if you know it, and skip it "
            f"with: thalweg dead-letters skip {topic} {partition}:{first}"
        )
        self.topic = topic
        self.partition = partition
        self.first = first
        self.last = last
        self.fault = fault

    def __str__(self) -> str:
        return str(self.args[0])


Skip = Callable[[UnreadableBatch], bool]
"""Whether to skip this batch. Called at each fetch that meets it, so it must not block."""


def skip_none(_batch: UnreadableBatch) -> bool:
    return False


def skip_all(_batch: UnreadableBatch) -> bool:
    """For readers that can do without the batch."""
    return True


class _DecodedBatch:
    """What aiokafka asks of a batch, with its records already decoded."""

    def __init__(self, batch: Any) -> None:
        self.is_control_batch = batch.is_control_batch
        self.is_transactional = batch.is_transactional
        self.producer_id = batch.producer_id
        self.base_offset = getattr(batch, "base_offset", None)  # the formats before version 2 have none
        self.next_offset = batch.next_offset
        self._records: Iterator[Any] = iter(list(batch))

    def validate_crc(self) -> bool:
        return True  # looked at before it was decoded

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._records)


class ReadableBatches:
    """The batches of one fetch, up to the first that cannot be read; `unreadable` is that one, once it was met."""

    def __init__(self, batches: Any, partition: TopicPartition, fetched_from: int, end: int) -> None:
        """`fetched_from` is the offset asked for, `end` the partition's: a damaged header may claim anything."""
        self.unreadable: UnreadableBatch | None = None
        self._batches = batches
        self._partition = partition
        self._following = fetched_from
        self._end = end
        self._ahead: Any = None
        self._decoded: _DecodedBatch | None = None

    def has_next(self) -> bool:
        if self._decoded is None and self.unreadable is None:
            self._decode_next()
        return self._decoded is not None

    def next_batch(self) -> _DecodedBatch | None:
        if not self.has_next():
            return None
        decoded, self._decoded = self._decoded, None
        return decoded

    def skip(self) -> None:
        """Continue after the unreadable batch."""
        self.unreadable = None

    def _decode_next(self) -> None:
        fault: Fault = "content"
        batch = None
        try:
            batch = self._take()
            if batch is None:
                return
            if batch.validate_crc():
                self._decoded = _DecodedBatch(batch)
                self._following = self._decoded.next_offset
                return
            fault = "checksum"
        except UnsupportedCodecError:
            fault = "codec"
        except Exception as error:  # noqa: BLE001 -- a codec raises what it likes, and means that the bytes are not its own
            log.debug("a batch cannot be decoded", error=f"{type(error).__name__}: {error}")
        first, last = self._extent(batch)
        self.unreadable = UnreadableBatch(self._partition.topic, self._partition.partition, first, last, fault)
        self._following = last + 1

    def _take(self) -> Any:
        if self._ahead is not None:
            batch, self._ahead = self._ahead, None
            return batch
        return self._batches.next_batch() if self._batches.has_next() else None

    def _extent(self, batch: Any) -> tuple[int, int]:
        """Its first and last offset: up to the next batch, where that came with the same fetch, else as its own
        header has it, else the first alone."""
        first = getattr(batch, "base_offset", self._following)
        if not 0 <= first < self._end:
            first = self._following
        last = getattr(batch, "next_offset", first + 1) - 1
        try:
            self._ahead = self._take()
        except CorruptRecordException:  # it is met again, where the next fetch begins
            self._ahead = None
        following = getattr(self._ahead, "base_offset", first)
        if first < following < self._end:
            last = following - 1
        return first, last if first <= last < self._end else first
