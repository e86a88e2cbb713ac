"""Redriving: records of dead letters are sent again to the topics they came from, where nothing newer replaced them.

1. Take all dead letters from the first one asked for to the end of their topic, remembered or read: which ones match,
   and which ones are of records that were redriven before and failed again.
2. Read the matching letters, some at a time. For those of one partition:
   a. read on in the partition behind what the stores show, and look up in the stores what they hold;
   b. decide about each letter by that (`decide`);
   c. append the records of those that are still to be redriven, in the order in which they first came, on the condition
      that nobody appends to their keys meanwhile; else begin again with a.
3. Follow them: wait until the stores show the positions, and count those that are dead letters again.

It may be killed at any point and started again, also twice at the same time: what is in the log is not sent again.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from kafka_client.async_clients import connected
from kafka_client.topic_offsets import Span, TopicPartition, first_offsets, spans_by_topic
from kafka_client.unreadable_batches import Skip, skip_all
from query_api.dead_letters.conditional_append import ConditionalAppender, Overtaken, TakenOver
from query_api.dead_letters.letter_follower import LetterFollower, most_frequent
from query_api.dead_letters.letter_state import Letter, RecordId, RecordVersion, letter_of, version_of
from query_api.dead_letters.letter_table import LetterFilter
from query_api.dead_letters.records import KEY_BYTES, LetterRecord, escaped
from query_api.dead_letters.topic_tail import Decision, TopicTail, decide, read_steadily, records_at
from query_api.index.search_snapshot import Snapshot
from query_api.ingest.producer import OutgoingRecord, RecordRefused
from query_api.operations.jobs import Job
from schemas.clock import rfc3339
from schemas.dead_letters import (
    ATTEMPTS_HEADER,
    EarlierAttempt,
    decode_attempts,
    encode_attempts,
)
from schemas.ids import DocumentKey, Position
from schemas.receipts import format_token
from schemas.redrive import MAX_LISTED, Outcome, RedrivenLetter, RedriveOrder, RedriveState
from schemas.topics import TopicNames

BATCH_LETTERS = 200
BATCH_BYTES = 4 * 1024 * 1024
FETCH_BYTES = 4 * 1024 * 1024
FETCH_MS = 20  # a fetch that waits for records holds up what is asked next
MAX_TRIES = 10
PAUSE_SECONDS = (0.2, 2.0)  # for which another process that redrives is let go first

R = TypeVar("R")
Read = Callable[[Callable[[], R]], Awaitable[R]]


class RedriveFailed(Exception):
    """It cannot go on; the message says why and what to do."""


@dataclass(kw_only=True)
class Redrive(Job):
    """One of them, with its progress. `reached` is how far it wrote to the documents topic, by partition."""

    order: RedriveOrder
    wanted: LetterFilter
    stage: Literal["reading", "redriving", "following"] = "reading"
    to_look_at: int = 0
    looked_at: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    other_reasons: Counter[str] = field(default_factory=Counter)
    letters: list[RedrivenLetter] = field(default_factory=list)
    redriven: set[RecordId] = field(default_factory=set)
    reached: dict[int, int] = field(default_factory=dict)
    failed_again: int | None = None

    @property
    def is_exclusive(self) -> bool:
        """One that has sent all it will, and follows, is no hindrance."""
        return self.state == "running" and self.stage != "following"

    def matches(self, letter: Letter) -> bool:
        """Whether it is asked for; counted."""
        matches = self.wanted.matches(letter)
        self.looked_at += 1
        (self.reasons if matches else self.other_reasons)[letter.reason] += 1
        return matches

    def decided(self, letter: Letter, key: bytes | None, decision: Decision, appended: Position | None = None) -> None:
        self.stage = "redriving"
        self.outcomes[decision.outcome] += 1
        if appended is not None:
            self.redriven.add(letter.failed)
        if len(self.letters) < MAX_LISTED:
            self.letters.append(
                RedrivenLetter(
                    position=str(letter.position),
                    key=None if key is None else escaped(key, KEY_BYTES),
                    reason=letter.reason,
                    outcome=decision.outcome,
                    message=decision.message,
                    redriven_as=None if appended is None else str(appended),
                )
            )

    def shown(self, topic_id: str, *, with_letters: bool) -> RedriveState:
        return RedriveState(
            id=self.id,
            order=self.order,
            state=self.state,
            stage=self.stage if self.state == "running" else "ended",
            created_at=self.created_at,
            ended_at=self.ended_at,
            to_look_at=self.to_look_at,
            looked_at=self.looked_at,
            matched=self.reasons.total(),
            redriven=self.outcomes["redriven"],
            resolved=self.outcomes["resolved"],
            already_redriven=self.outcomes["already_redriven"],
            refused=self.outcomes["refused"],
            failed_again=self.failed_again,
            reasons=dict(self.reasons.most_common()),
            token=format_token(self.reached, topic_id) or None,
            letters=self.letters if with_letters else [],
            message=self.message,
        )

    def why_none(self) -> str:
        """A sentence where no letter is asked for, with the reasons of those there are."""
        order = self.order
        if not self.other_reasons:
            return "There are no dead letters" + (" since then." if order.since else ".")
        asked = [
            *([f"with the reason {' or '.join(order.reason)}"] if order.reason else []),
            *([f"of the collection {order.collection!r}"] if order.collection else []),
            *(["since then"] if order.since else []),
        ]
        return (
            f"There is no dead letter {' '.join(asked)}. Among those there are: {most_frequent(self.other_reasons)}. "
            "'thalweg dead-letters list' shows them."
        )


class Candidate(NamedTuple):
    """A dead letter whose record can be sent again."""

    record: LetterRecord
    letter: Letter

    def again(self) -> OutgoingRecord:
        """The original record, with its earlier attempts."""
        record, source = self.record, self.letter.source
        earlier = decode_attempts(record.header(ATTEMPTS_HEADER))
        failed = EarlierAttempt(
            number=earlier[-1].number + 1 if earlier else 1,
            reason=self.letter.reason,
            stage=record.stage[:40],
            at=rfc3339(record.timestamp_ms),
            letter=str(self.letter.position),
            source=f"{source.partition}:{source.offset}",
        )
        attempts = (ATTEMPTS_HEADER, encode_attempts([*earlier, failed]))
        return OutgoingRecord(record.key, record.value, (*record.own_headers, attempts))


@dataclass(kw_only=True)
class Redriver:
    """Redrives once; made for each time."""

    redrive: Redrive
    follower: LetterFollower
    snapshot: Callable[[], Snapshot]
    read: Read[Any]
    skip: Skip
    max_record_bytes: int
    _log: Any = None
    _letter_ends: dict[int, int] = field(default_factory=dict)
    _found: dict[int, tuple[int, int]] = field(default_factory=dict)  # by partition, the first and last letter
    _failed_again: dict[RecordId, Position] = field(default_factory=dict)
    _spans: dict[str, dict[int, Span]] = field(default_factory=dict)  # of the topics that letters came from
    _tails: dict[TopicPartition, TopicTail] = field(default_factory=dict)
    _seen: set[RecordId] = field(default_factory=set)

    def __post_init__(self) -> None:
        locate, name = self.follower.locate_broker, f"{self._topics.prefix}redrive"
        self._appender = ConditionalAppender(locate, name, self.max_record_bytes)

    @property
    def _topics(self) -> TopicNames:
        return self.follower.topics

    async def run(self) -> None:
        """Steps 1 and 2. Raises RedriveFailed, KafkaError, OSError, TimeoutError, LogUnavailable."""
        broker = self.follower.locate_broker()
        try:
            async with (
                connected(broker, FETCH_BYTES, FETCH_MS, skip_all) as letters,
                connected(broker, FETCH_BYTES, FETCH_MS, self.skip) as self._log,
            ):
                if not self.redrive.order.dry_run:
                    await self._appender.open()  # before anything is read: what a killed redrive left open is aborted
                reached = self.snapshot().reached
                await self._survey(letters, reached)  # 1
                for partition, (first, last) in sorted(self._found.items()):  # 2
                    await self._redrive_partition(letters, partition, first, last)
        finally:
            await self._appender.close()

    async def count_failed_again(self) -> int:
        """How many of those redriven are dead letters again. Raises as `run`."""
        await self.follower.read_to_end()
        letters = self.follower.letters_from(self._letter_ends)
        again = {each async for letter in letters for each in letter.failed_before}
        return len(again & self.redrive.redriven)

    async def _survey(self, consumer: Any, reached: Mapping[int, int]) -> None:
        spans = await self.follower.read_to_end()
        self._letter_ends = {partition: span.end for partition, span in spans.items()}
        firsts = await self._first_offsets(consumer, spans)
        self.redrive.to_look_at = sum(max(0, spans[at].end - first) for at, first in firsts.items())
        subjects: dict[TopicPartition, set[bytes]] = {}
        oldest: dict[TopicPartition, int] = {}
        async for letter in self.follower.letters_from(firsts):
            self._failed_again |= dict.fromkeys(letter.failed_before, letter.position)
            if not self.redrive.matches(letter):
                continue
            partition, offset = letter.position
            first, last = self._found.get(partition, (offset, offset))
            self._found[partition] = min(first, offset), max(last, offset)
            place, offset = letter.place, letter.source.offset
            if self._topics.is_read(place.topic):
                subjects.setdefault(place, set()).add(letter.subject)
                oldest[place] = min(oldest.get(place, offset), offset)
        self._spans = await spans_by_topic(consumer, {place.topic for place in subjects})
        for place, wanted in subjects.items():
            span = self._spans.get(place.topic, {}).get(place.partition)
            if span is not None:  # the tail begins behind what the stores show; where they show nothing, the letters
                shown = reached.get(place.partition, -1) if place.topic == self._topics.documents else oldest[place]
                keyed = place.topic != self._topics.provenance
                self._tails[place] = TopicTail(place, max(shown + 1, span.beginning), wanted, keyed)

    async def _first_offsets(self, consumer: Any, spans: Mapping[int, Span]) -> dict[int, int]:
        """Of each partition that may hold a letter that is asked for, where to begin."""
        wanted = self.redrive.wanted
        if wanted.ids is None:
            return await first_offsets(consumer, self._topics.dead_letters, spans, wanted.since_ms)
        firsts = dict(sorted(wanted.ids, reverse=True))  # by partition, the lowest
        return {at: max(first, spans[at].beginning) for at, first in firsts.items() if at in spans}

    async def _redrive_partition(self, consumer: Any, partition: int, first: int, last: int) -> None:
        batch: list[LetterRecord] = []
        size = 0
        place = TopicPartition(self._topics.dead_letters, partition)
        async for record in read_steadily(consumer, place, first, last + 1):
            if not self.redrive.wanted.matches(letter_of(record, self._topics, with_version=False)):
                continue
            batch.append(record)
            size += len(record.value or b"")
            if len(batch) == BATCH_LETTERS or size >= BATCH_BYTES:
                await self._redrive_batch(batch)
                batch, size = [], 0
        await self._redrive_batch(batch)

    async def _redrive_batch(self, records: Sequence[LetterRecord]) -> None:
        letters = await asyncio.to_thread(lambda: [letter_of(each, self._topics) for each in records])
        by_place: dict[TopicPartition, list[Candidate]] = {}
        for record, letter in zip(records, letters, strict=True):
            if (why_not := self._why_not(record, letter)) is not None:
                self.redrive.decided(letter, record.key, Decision("refused", why_not))
            elif letter.failed in self._seen:
                message = "Another dead letter of the same record was dealt with before."
                self.redrive.decided(letter, record.key, Decision("already_redriven", message))
            else:
                self._seen.add(letter.failed)
                by_place.setdefault(letter.place, []).append(Candidate(record, letter))
        for place, found in by_place.items():
            found.sort(key=lambda each: (each.letter.source.origin, each.letter.source.offset))
            await self._redrive_from(place, found)

    def _why_not(self, record: LetterRecord, letter: Letter) -> str | None:
        """Why the record cannot be sent to where it came from."""
        if letter.topic is None:
            return "Its headers do not say which topic it came from. Send its document again."
        return _incomplete(record) or self._misplaced(letter.place, letter.source.offset)

    def _misplaced(self, place: TopicPartition, offset: int) -> str | None:
        """Why the topic cannot take it back."""
        if not self._topics.is_read(place.topic):
            return f"It came from {place.topic}, which is not a topic of Thalweg's: repair it there, and send it again."
        partitions = self._spans.get(place.topic)
        if partitions is None:
            return f"The topic {place.topic} is gone."
        if place.partition not in partitions:
            return f"The topic {place.topic} has no partition {place.partition} any more."
        if offset >= partitions[place.partition].end:
            return f"It came from an earlier topic {place.topic}: there is no offset {offset} in this one yet."
        return None

    async def _redrive_from(self, place: TopicPartition, candidates: Sequence[Candidate]) -> None:
        """Steps a, b and c, for letters of one partition."""
        tail = self._tails[place]
        for _ in range(MAX_TRIES):
            decisions = await self._decisions(tail, candidates)
            wanted = [each for each, made in zip(candidates, decisions, strict=True) if made.outcome == "redriven"]
            appended: list[int] = []
            if wanted and not self.redrive.order.dry_run:
                records = [each.again() for each in wanted]
                try:
                    appended = await self._appender.append(place, records, looked_to=tail.read_to, keyed=tail.keyed)
                except Overtaken:
                    continue
                except TakenOver:
                    await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
                    continue
                except RecordRefused as error:
                    if len(candidates) > 1:  # which of them it is, sending them one by one shows
                        for each in candidates:
                            await self._redrive_from(place, [each])
                        return
                    decisions = [Decision("refused", str(error))]
            self._note(place, candidates, decisions, appended)
            return
        raise RedriveFailed(
            f"Others keep writing to {place.topic} partition {place.partition}, or redrive too. Run it again in a "
            "while: nothing is redriven twice."
        )

    def _note(
        self,
        place: TopicPartition,
        candidates: Sequence[Candidate],
        decisions: Sequence[Decision],
        appended: Sequence[int],
    ) -> None:
        """`appended` are the offsets of those that were to be redriven."""
        positions = (Position(place.partition, offset) for offset in appended)
        for each, decision in zip(candidates, decisions, strict=True):
            at = next(positions, None) if decision.outcome == "redriven" else None
            self.redrive.decided(each.letter, each.record.key, decision, at)
        if appended and place.topic == self._topics.documents:
            self.redrive.reached[place.partition] = appended[-1]

    async def _decisions(self, tail: TopicTail, candidates: Sequence[Candidate]) -> list[Decision]:
        """The stores first, then the log behind them: what they do not show yet is met there."""
        stored: dict[DocumentKey, RecordVersion] = {}
        snapshot, is_of_documents = self.snapshot(), tail.place.topic == self._topics.documents
        if is_of_documents and snapshot.reached.get(tail.place.partition, -1) < tail.first - 1:
            raise RedriveFailed("The stores were switched to older ones meanwhile. Run it again.")
        await tail.read_on(self._log)
        if is_of_documents:
            stored = await self._stored(snapshot, tail.place, candidates)
        letters = [each.letter for each in candidates]
        return [
            decide(each, self._failed_again, tail, stored.get(each.document) if each.document else None)
            for each in letters
        ]

    async def _stored(
        self, snapshot: Snapshot, place: TopicPartition, candidates: Sequence[Candidate]
    ) -> dict[DocumentKey, RecordVersion]:
        """What the stores hold of their documents, with what the log knows of the records those are from."""
        keys = [each.letter.document for each in candidates if each.letter.document is not None]
        rows = await self.read(lambda: snapshot.text.documents(keys))
        here = {key: row.offset for key, row in rows.items() if row.partition == place.partition}
        records = await records_at(self._log, place, set(here.values()))
        redrives = {key: records[offset].redrives for key, offset in here.items() if offset in records}
        return {key: version_of(row, redrives.get(key, frozenset())) for key, row in rows.items()}


def _incomplete(record: LetterRecord) -> str | None:
    """Why the letter does not hold what its record was."""
    source = record.source
    if source is not None and source.last_offset is not None:
        return "It stands for a batch that nobody can read. Send again what that held, if you know."
    if record.omitted is not None:
        size = f"({record.omitted}); {record.where} may still hold them"
        return f"Its bytes were too large to be kept {size}. Send the document again."
    if record.key is None and record.value is None:
        return "It has neither key nor value."
    return None
