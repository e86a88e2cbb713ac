"""What a topic holds of some subjects behind an offset, and by that, whether a letter is to be redriven."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_client.async_clients import read_range
from kafka_client.topic_offsets import TopicPartition
from query_api.dead_letters.letter_state import Letter, RecordId, RecordVersion, state_of, subject_of
from query_api.dead_letters.records import LetterRecord
from schemas.dead_letters import ATTEMPTS_HEADER
from schemas.ids import Position
from schemas.redrive import Outcome

READ_THROUGH_OFFSETS = 200  # between two wanted records: reading on is quicker than seeking
SILENCE_SECONDS = 30.0


@dataclass
class TopicTail:
    """The committed records of the wanted subjects from `first` on and before `read_to`. With `keyed`, a later one of a
    subject replaces an earlier one."""

    place: TopicPartition
    first: int
    subjects: Collection[bytes]
    keyed: bool
    read_to: int = field(init=False)
    newest: dict[bytes, RecordVersion] = field(default_factory=dict)
    """Of each subject that has one, the record that replaces the others: that with the highest origin."""
    redriven_as: dict[RecordId, int] = field(default_factory=dict)
    """Where a record is again."""

    def __post_init__(self) -> None:
        self.read_to = self.first

    async def read_on(self, consumer: Any) -> None:
        """Up to the end that a reader of committed records may see. Raises KafkaError or OSError."""
        end = (await consumer.end_offsets([self.place]))[self.place]
        if end > self.read_to:
            async for record in read_steadily(consumer, self.place, self.read_to, end):
                self.take(record)
            self.read_to = end

    def take(self, record: LetterRecord) -> None:
        subject = subject_of(self.place.topic, record.key, None if record.key else _version(record))
        if subject not in self.subjects:
            return
        found = _version(record)
        before = self.newest.get(subject)
        if self.keyed and (before is None or found.origin >= before.origin):
            self.newest[subject] = found
        self.redriven_as |= {(subject, found.partition, offset): found.offset for offset in found.redrives}


class Decision(NamedTuple):
    """What becomes of a dead letter, and a sentence on why where it is not redriven."""

    outcome: Outcome
    message: str | None = None


def decide(
    letter: Letter, failed_again: Mapping[RecordId, Position], tail: TopicTail, stored: RecordVersion | None
) -> Decision:
    """`redriven` for a letter that is to be; `stored` is None where the stores hold nothing of the document."""
    source = letter.source
    if (again := failed_again.get(letter.failed)) is not None:
        return Decision("already_redriven", f"It was redriven and failed again: that is the dead letter {again}.")
    if (at := tail.redriven_as.get(letter.failed)) is not None:
        return Decision("already_redriven", f"It was redriven as {source.partition}:{at} of {letter.topic}.")
    if stored is not None and stored.partition == source.partition and source.offset in stored.redrives:
        return Decision("already_redriven", f"It was redriven as {source.partition}:{stored.offset}.")
    state, message = state_of(letter, stored, in_log=tail.newest.get(letter.subject))
    return Decision("resolved", message) if state == "resolved" else Decision("redriven")


def _version(record: LetterRecord) -> RecordVersion:
    return RecordVersion(record.partition, record.offset).after(record.header(ATTEMPTS_HEADER))


async def records_at(consumer: Any, place: TopicPartition, offsets: Collection[int]) -> dict[int, RecordVersion]:
    """Those of the offsets that the partition still holds. Raises KafkaError or OSError."""
    found: dict[int, RecordVersion] = {}
    for first, last in _runs(sorted(set(offsets))):
        async for record in read_steadily(consumer, place, first, last + 1):
            if record.offset in offsets:
                found[record.offset] = _version(record)
    return found


async def read_steadily(
    consumer: Any, place: TopicPartition, first: int, end: int
) -> AsyncGenerator[LetterRecord, None]:
    """As `read_range`; raises TimeoutError where the next record does not come: a consumer waits for a broker that is
    away as long as it takes."""
    async with aclosing(read_range(consumer, place, first, end)) as records:
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    record = await anext(records)
            except StopAsyncIteration:
                return
            yield LetterRecord.of(record)


def _runs(offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges that are read in one go."""
    run: list[int] = []
    for offset in offsets:
        if run and offset - run[-1] > READ_THROUGH_OFFSETS:
            yield run[0], run[-1]
            run = []
        run.append(offset)
    if run:
        yield run[0], run[-1]
