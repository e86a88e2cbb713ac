"""What a topic holds of some keys behind an offset, and which records there are redriven ones."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from aiokafka import TopicPartition

from kafka_client.async_clients import read_range
from schemas.dead_letters import ATTEMPTS_HEADER, EarlierAttempt, decode_attempts

READ_THROUGH_OFFSETS = 200  # between two wanted records: reading on is quicker than seeking
SILENCE_SECONDS = 30.0


class Appended(NamedTuple):
    """A record of a partition. `redrives` are the offsets of the records it says again, which failed; `origin` is the
    first of them, and its own offset where there is none: by that, records of one key are ordered."""

    offset: int
    origin: int
    redrives: frozenset[int] = frozenset()

    @classmethod
    def of(cls, record: Any) -> Self:
        """Of a record as aiokafka returns it."""
        header = next((value for name, value in record.headers if name == ATTEMPTS_HEADER), None)
        return cls.after(record.offset, record.partition, decode_attempts(header))

    @classmethod
    def after(cls, offset: int, partition: int, attempts: Iterable[EarlierAttempt]) -> Self:
        """With these earlier attempts; what is said of offsets that are not before it is not believed."""
        redrives = [
            each.source_offset
            for each in attempts
            if each.source.startswith(f"{partition}:") and each.source_offset < offset
        ]
        return cls(offset, min(redrives, default=offset), frozenset(redrives))


@dataclass
class TopicTail:
    """The committed records of the wanted keys from `first` on and before `read_to`. A record without a key has the
    empty one."""

    place: TopicPartition
    first: int
    keys: Collection[bytes]
    read_to: int = field(init=False)
    by_offset: dict[int, Appended] = field(default_factory=dict)
    _newest: dict[bytes, Appended] = field(default_factory=dict)
    _again: dict[tuple[bytes, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.read_to = self.first

    async def read_on(self, consumer: Any) -> None:
        """Up to the end that a reader of committed records may see. Raises KafkaError or OSError."""
        end = (await consumer.end_offsets([self.place]))[self.place]
        if end > self.read_to:
            async for record in read_steadily(consumer, self.place, self.read_to, end):
                self.take(record)
            self.read_to = end

    def take(self, record: Any) -> None:
        key = record.key or b""
        if key not in self.keys:
            return
        appended = Appended.of(record)
        self.by_offset[appended.offset] = appended
        before = self._newest.get(key)
        if before is None or appended.origin >= before.origin:
            self._newest[key] = appended
        self._again |= {(key, offset): appended.offset for offset in appended.redrives}

    def newest(self, key: bytes) -> Appended | None:
        """The one with the highest origin."""
        return self._newest.get(key)

    def redriven_as(self, key: bytes, offset: int) -> int | None:
        """Where the record at this offset stands again."""
        return self._again.get((key, offset))


async def records_at(consumer: Any, place: TopicPartition, offsets: Collection[int]) -> dict[int, Appended]:
    """Those of the offsets that the partition still holds. Raises KafkaError or OSError."""
    found: dict[int, Appended] = {}
    for first, last in _runs(sorted(set(offsets))):
        async for record in read_steadily(consumer, place, first, last + 1):
            if record.offset in offsets:
                found[record.offset] = Appended.of(record)
    return found


async def read_steadily(consumer: Any, place: TopicPartition, first: int, end: int) -> AsyncGenerator[Any, None]:
    """As `read_range`; raises TimeoutError where the next record does not come: a consumer waits for a broker that is
    away as long as it takes."""
    async with aclosing(read_range(consumer, place, first, end)) as records:
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    record = await anext(records)
            except StopAsyncIteration:
                return
            yield record


def _runs(offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges that are read in one go."""
    first = last = None
    for offset in offsets:
        if first is not None and last is not None and offset - last > READ_THROUGH_OFFSETS:
            yield first, last
            first = None
        first, last = offset if first is None else first, offset
    if first is not None and last is not None:
        yield first, last
