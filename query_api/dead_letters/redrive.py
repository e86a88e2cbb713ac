"""Redriving: records of dead letters are sent again to the topics they came from, where nothing newer replaced them.

1. Read the dead letters topic from the first letter asked for to its end: which letters match, and which letters are of
   records that were redriven before and failed again.
2. Read the matching letters again, some at a time. For those of one partition:
   a. read on in the partition behind what the stores show, and look up in the stores what they hold;
   b. judge each letter by that (`resolution`);
   c. append the records of those that are still to be redriven, in the order in which they first came, on the condition
      that nobody appends to their keys meanwhile; else begin again with a.
3. Follow them: wait until the stores show the positions, and count those that are dead letters again.

It may be killed at any point and started again, also twice at the same time: what is in the log is not sent again.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from aiokafka import TopicPartition

from kafka_client.unreadable_batches import Skip, skip_all
from query_api.dead_letters.conditional_append import ConditionalAppender, Overtaken, TakenOver
from query_api.dead_letters.records import NO_LIMITS, LetterRecord, own_headers, reason_of
from query_api.dead_letters.resolution import Candidate, Failures, StoredDocument, Verdict, candidate_of, judge
from query_api.dead_letters.topic_tail import Appended, TopicTail, read_steadily, records_at
from query_api.index.follower import LocateBroker, Span, connected, first_offsets, spans_by_topic, spans_of
from query_api.index.search_snapshot import Snapshot
from query_api.ingest.producer import OutgoingRecord, RecordRefused
from schemas.dead_letters import ATTEMPTS_HEADER, decode_attempts, encode_attempts
from schemas.errors import MalformedEvent
from schemas.events import decode_document_event
from schemas.ids import DocumentKey, Position
from schemas.topics import TopicNames

BATCH_LETTERS = 200
BATCH_BYTES = 4 * 1024 * 1024
FETCH_BYTES = 4 * 1024 * 1024
FETCH_MS = 20  # a fetch that waits for records holds up what is asked next
MAX_TURNS = 10
TURN_SECONDS = (0.2, 2.0)  # for which another process that redrives is let go first

R = TypeVar("R")
Read = Callable[[Callable[[], R]], Awaitable[R]]


class RedriveFailed(Exception):
    """It cannot go on; the message says why and what to do."""


@dataclass(frozen=True)
class Selection:
    """Which dead letters; None for any."""

    ids: frozenset[Position] | None = None
    reasons: frozenset[str] | None = None
    collection: str | None = None
    since_ms: int | None = None

    def matches(self, letter: LetterRecord) -> bool:
        return (
            (self.ids is None or (letter.partition, letter.offset) in self.ids)
            and (self.reasons is None or reason_of(letter) in self.reasons)
            and (self.collection is None or (letter.key or b"").startswith(f"{self.collection}/".encode()))
            and (self.since_ms is None or letter.timestamp_ms >= self.since_ms)
        )


class Progress(Protocol):
    """What a redrive reports as it goes."""

    def to_look_at(self, records: int) -> None: ...
    def looked_at(self, letter: LetterRecord, *, matches: bool) -> None: ...
    def judged(self, letter: LetterRecord, verdict: Verdict, appended: Position | None, topic: str | None) -> None: ...


@dataclass
class _Survey:
    """What step 1 found: by partition of the dead letters topic, the first and the last matching offset; by partition
    that letters came from, their keys and the first offset."""

    found: dict[int, tuple[int, int]] = field(default_factory=dict)
    failures: Failures = field(default_factory=Failures)
    keys: dict[TopicPartition, set[bytes]] = field(default_factory=dict)
    first: dict[TopicPartition, int] = field(default_factory=dict)


class Redriver:
    """Redrives once; made for each time."""

    def __init__(
        self,
        *,
        topics: TopicNames,
        locate_broker: LocateBroker,
        snapshot: Callable[[], Snapshot],
        read: Read[Any],
        skip: Skip,
        max_record_bytes: int,
        dry_run: bool,
        progress: Progress,
    ) -> None:
        self._topics = topics
        self._locate_broker = locate_broker
        self._snapshot = snapshot
        self._read = read
        self._skip = skip
        self._dry_run = dry_run
        self._progress = progress
        self._appender = ConditionalAppender(locate_broker, f"{topics.prefix}redrive", max_record_bytes)
        self._log: Any = None
        self.letter_ends: dict[int, int] = {}  # of the dead letters topic, when it was read
        self._survey = _Survey()
        self._spans: dict[str, dict[int, Span]] = {}
        self._tails: dict[TopicPartition, TopicTail] = {}
        self._seen: set[tuple[TopicPartition, int]] = set()

    async def run(self, selection: Selection) -> None:
        """Steps 1 and 2. Raises RedriveFailed, KafkaError, OSError, TimeoutError, LogUnavailable."""
        broker = self._locate_broker()
        try:
            async with (
                connected(broker, FETCH_BYTES, FETCH_MS, skip_all) as letters,
                connected(broker, FETCH_BYTES, FETCH_MS, self._skip) as self._log,
            ):
                if not self._dry_run:
                    await self._appender.open()  # before anything is read: what a killed redrive left open is aborted
                reached = self._snapshot().reached
                await self._look(letters, selection)  # 1
                await self._open_tails(letters, reached)
                for partition, (first, last) in sorted(self._survey.found.items()):  # 2
                    await self._redrive_partition(letters, selection, partition, first, last)
        finally:
            await self._appender.close()

    async def _look(self, consumer: Any, selection: Selection) -> None:
        topic = self._topics.dead_letters
        spans = await spans_of(consumer, topic)
        self.letter_ends = {partition: span.end for partition, span in spans.items()}
        firsts = await _first_offsets(consumer, topic, spans, selection)
        self._progress.to_look_at(sum(max(0, spans[at].end - first) for at, first in firsts.items()))
        for partition, first in firsts.items():
            records = read_steadily(consumer, TopicPartition(topic, partition), first, spans[partition].end)
            async with aclosing(records):
                async for record in records:
                    self._take(LetterRecord.of(record), selection)

    def _take(self, letter: LetterRecord, selection: Selection) -> None:
        self._survey.failures.add(letter)
        matches = selection.matches(letter)
        self._progress.looked_at(letter, matches=matches)
        if not matches:
            return
        first, _ = self._survey.found.get(letter.partition, (letter.offset, letter.offset))
        self._survey.found[letter.partition] = first, letter.offset
        candidate = candidate_of(letter, self._topics)
        if isinstance(candidate, Candidate):
            place = _place(candidate)
            self._survey.keys.setdefault(place, set()).add(candidate.key)
            offset = candidate.source.offset
            self._survey.first[place] = min(self._survey.first.get(place, offset), offset)

    async def _open_tails(self, consumer: Any, reached: Mapping[int, int]) -> None:
        """A tail begins behind what the stores show; of a topic that they say nothing of, behind the first letter."""
        self._spans = await spans_by_topic(consumer, {place.topic for place in self._survey.keys})
        for place, keys in self._survey.keys.items():
            span = self._spans.get(place.topic, {}).get(place.partition)
            if span is None:
                continue
            shown = self._survey.first[place]
            if place.topic == self._topics.documents:
                shown = reached.get(place.partition, -1)
            self._tails[place] = TopicTail(place, max(shown + 1, span.beginning), keys)

    async def _redrive_partition(
        self, consumer: Any, selection: Selection, partition: int, first: int, last: int
    ) -> None:
        batch: list[LetterRecord] = []
        size = 0
        records = read_steadily(consumer, TopicPartition(self._topics.dead_letters, partition), first, last + 1)
        async with aclosing(records):
            async for record in records:
                letter = LetterRecord.of(record)
                if not selection.matches(letter):
                    continue
                batch.append(letter)
                size += len(letter.value or b"")
                if len(batch) == BATCH_LETTERS or size >= BATCH_BYTES:
                    await self._redrive_batch(batch)
                    batch, size = [], 0
        await self._redrive_batch(batch)

    async def _redrive_batch(self, letters: Sequence[LetterRecord]) -> None:
        by_place: dict[TopicPartition, list[Candidate]] = {}
        for letter in letters:
            candidate = self._checked(letter)
            if isinstance(candidate, Verdict):
                self._progress.judged(letter, candidate, None, None)
            else:
                by_place.setdefault(_place(candidate), []).append(candidate)
        for place, found in by_place.items():
            is_documents = place.topic == self._topics.documents
            candidates = await asyncio.to_thread(_with_versions, found) if is_documents else found
            await self._redrive(place, sorted(candidates, key=lambda each: (each.origin, each.source.offset)))

    def _checked(self, letter: LetterRecord) -> Candidate | Verdict:
        """The candidate, unless its record cannot be sent to where it came from or was met in another letter."""
        candidate = candidate_of(letter, self._topics)
        if isinstance(candidate, Verdict):
            return candidate
        place, offset = _place(candidate), candidate.source.offset
        partitions = self._spans.get(place.topic)
        if partitions is None:
            return Verdict("refused", f"The topic {place.topic} is gone.")
        if place.partition not in partitions:
            return Verdict("refused", f"The topic {place.topic} has no partition {place.partition} any more.")
        if offset >= partitions[place.partition].end:
            return Verdict(
                "refused", f"It came from an earlier topic {place.topic}: there is no offset {offset} in this one yet."
            )
        if (place, offset) in self._seen:
            return Verdict("already_redriven", "Another dead letter of the same record was dealt with before.")
        self._seen.add((place, offset))
        return candidate

    async def _redrive(self, place: TopicPartition, candidates: Sequence[Candidate]) -> None:
        """Steps a, b and c, for letters of one partition."""
        keyed = place.topic != self._topics.provenance
        for _ in range(MAX_TURNS):
            verdicts = await self._judged(place, candidates, keyed=keyed)
            wanted = [each for each, verdict in zip(candidates, verdicts, strict=True) if verdict.outcome == "redriven"]
            offsets: dict[Position, int] = {}
            if wanted and not self._dry_run:
                records = [_again(each) for each in wanted]
                try:
                    appended = await self._appender.append(
                        place, records, looked_to=self._tails[place].read_to, keyed=keyed
                    )
                except Overtaken:
                    continue
                except TakenOver:
                    await asyncio.sleep(random.uniform(*TURN_SECONDS))
                    continue
                except RecordRefused as error:
                    await self._redrive_alone(place, candidates, wanted, error)
                    return
                offsets = {each.position: offset for each, offset in zip(wanted, appended, strict=True)}
            for each, verdict in zip(candidates, verdicts, strict=True):
                offset = offsets.get(each.position)
                at = None if offset is None else Position(place.partition, offset)
                self._progress.judged(each.letter, verdict, at, place.topic)
            return
        raise RedriveFailed(
            f"Others keep writing to {place.topic} partition {place.partition}, or redrive too. Run it again in a "
            "while: nothing is redriven twice."
        )

    async def _redrive_alone(
        self,
        place: TopicPartition,
        candidates: Sequence[Candidate],
        wanted: Sequence[Candidate],
        error: RecordRefused,
    ) -> None:
        """Which of several records the topic refuses is found by sending them one by one."""
        if len(candidates) > 1:
            for each in candidates:
                await self._redrive(place, [each])
            return
        for each in wanted:
            self._progress.judged(each.letter, Verdict("refused", str(error)), None, None)

    async def _judged(self, place: TopicPartition, candidates: Sequence[Candidate], *, keyed: bool) -> list[Verdict]:
        """The stores first, then the log behind them: what they do not show yet is met there."""
        tail = self._tails[place]
        stored: dict[DocumentKey, StoredDocument] = {}
        if place.topic == self._topics.documents:
            snapshot = self._snapshot()
            if snapshot.reached.get(place.partition, -1) < tail.first - 1:
                raise RedriveFailed("The stores were switched to older ones meanwhile. Run it again.")
            await tail.read_on(self._log)
            stored = await self._stored(snapshot, tail, candidates)
        else:
            await tail.read_on(self._log)
        failures = self._survey.failures
        return [
            judge(each, failures, tail, stored.get(each.document) if each.document else None, keyed=keyed)
            for each in candidates
        ]

    async def _stored(
        self, snapshot: Snapshot, tail: TopicTail, candidates: Sequence[Candidate]
    ) -> dict[DocumentKey, StoredDocument]:
        keys = [each.document for each in candidates if each.document is not None]
        rows = await self._read(lambda: snapshot.text.documents(keys))
        partition = tail.place.partition
        unread = [
            row.offset for row in rows.values() if row.partition == partition and row.offset not in tail.by_offset
        ]
        records = tail.by_offset | await records_at(self._log, tail.place, unread)
        return {
            key: StoredDocument(
                row.partition,
                (records.get(row.offset) if row.partition == partition else None) or Appended(row.offset, row.offset),
                row.timestamp_ms,
                row.version,
                deleted=not row.live,
            )
            for key, row in rows.items()
        }


async def count_failed_again(
    locate_broker: LocateBroker, topic: str, since: Mapping[int, int], redriven: frozenset[Position]
) -> int:
    """Of these dead letters, how many were redriven and became one again: letters from the offsets `since` on."""
    failed: set[str] = set()
    names = {str(position) for position in redriven}
    async with connected(locate_broker(), FETCH_BYTES, FETCH_MS, skip_all) as consumer:
        for partition, span in (await spans_of(consumer, topic)).items():
            first = max(span.beginning, since.get(partition, 0))
            async for record in read_steadily(consumer, TopicPartition(topic, partition), first, span.end):
                earlier = decode_attempts(LetterRecord.of(record).header(ATTEMPTS_HEADER))
                failed |= {earlier[-1].letter} & names if earlier else set()
    return len(failed)


async def _first_offsets(consumer: Any, topic: str, spans: Mapping[int, Span], selection: Selection) -> dict[int, int]:
    """Of each partition that may hold a letter that is asked for, where to begin."""
    if selection.ids is not None:
        firsts: dict[int, int] = {}
        for partition, offset in selection.ids:
            firsts[partition] = min(offset, firsts.get(partition, offset))
        return {at: max(first, spans[at].beginning) for at, first in firsts.items() if at in spans}
    return await first_offsets(consumer, topic, spans, selection.since_ms)


def _place(candidate: Candidate) -> TopicPartition:
    return TopicPartition(candidate.source.topic, candidate.source.partition)


def _again(candidate: Candidate) -> OutgoingRecord:
    """The original record, with its earlier attempts."""
    attempts = (ATTEMPTS_HEADER, encode_attempts(candidate.attempts()))
    return OutgoingRecord(candidate.letter.key, candidate.letter.value, (*own_headers(candidate.letter), attempts))


def _with_versions(candidates: Iterable[Candidate]) -> list[Candidate]:
    """With what the worker would read of them, as far as it can."""
    return [_with_version(each) for each in candidates]


def _with_version(candidate: Candidate) -> Candidate:
    letter = candidate.letter
    try:
        document = DocumentKey.parse(candidate.key.decode())
    except (UnicodeDecodeError, MalformedEvent):
        return candidate
    try:
        event = decode_document_event(letter.key, letter.value, own_headers(letter), NO_LIMITS)
    except MalformedEvent:
        return replace(candidate, document=document)
    return replace(candidate, document=document, version=event.version)
