"""The dead letters topic as it is followed: which letters are open, and how many came within a day."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from indexer.errors import DamagedStore, TransientStoreError
from kafka_client.async_clients import read_range
from kafka_client.unreadable_batches import skip_all
from query_api.dead_letters.open_letters import OpenLetters, WantedLetters, known_letter, subject_of
from query_api.dead_letters.records import LetterRecord
from query_api.dead_letters.resolution import StoredDocument
from query_api.dead_letters.topic_tail import Appended
from query_api.index.follower import LocateBroker, LogUnavailable, Span, connected, first_offsets, spans_of
from query_api.index.search_snapshot import Snapshot
from schemas.ids import DocumentKey
from schemas.receipts import Receipt
from schemas.refusals import explanation
from schemas.topics import TopicNames

DAY_MS = 24 * 60 * 60 * 1000
MINUTE_MS = 60_000
COUNT_SECONDS = 15.0
WOKEN_SECONDS = 0.5  # between two rounds, where receipts tell of one refusal after the other
READ_SECONDS = 10.0  # of one round
ROUND_SECONDS = 30.0
CATCH_UP_SECONDS = 3.0
FETCH_BYTES = 1024 * 1024
FETCH_MS = 20
MAX_REASONS_NAMED = 3
JUDGED_AT_ONCE = 500
UNREADABLE = (KafkaError, OSError, TimeoutError, LogUnavailable)


class RecentDeadLetters:
    """Reads what came since the last round, every quarter of a minute and whenever a receipt tells of a refusal; after
    a restart, all of the last day and as many older letters as `OpenLetters` remembers.

    `reasons` and `open_reasons` are None while nobody knows: Kafka is away, or what there is has not been read to its
    end yet, or the stores were not asked about all of it.
    """

    def __init__(
        self,
        locate_broker: LocateBroker,
        topics: TopicNames,
        snapshot: Callable[[], Snapshot | None] = lambda: None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.reasons: dict[str, int] | None = None
        self.letters = OpenLetters(topics)
        self._locate_broker = locate_broker
        self._topics = topics
        self._snapshot = snapshot
        self._now_ms = now_ms
        self._minutes: dict[int, Counter[str]] = {}
        self._curation_asked: set[int] = set()
        self._curation_read_to = 0
        self._generation: str | None = None
        self._is_judged = False
        self._round = asyncio.Lock()
        self._refused = asyncio.Event()

    @property
    def count(self) -> int | None:
        return None if self.reasons is None else sum(self.reasons.values())

    @property
    def open_reasons(self) -> dict[str, int] | None:
        """Of all open letters that are remembered."""
        return self.letters.open_reasons() if self._is_known else None

    @property
    def open_count(self) -> int | None:
        return len(self.letters.open()) if self._is_known else None

    @property
    def open_last_day(self) -> int | None:
        return sum(self._open_reasons_of_the_day().values()) if self._is_known else None

    def _open_reasons_of_the_day(self) -> dict[str, int]:
        return self.letters.open_reasons(since_ms=self._now_ms() - DAY_MS)

    def open_as(self, wanted: WantedLetters) -> dict[str, int] | None:
        """How many of those asked for are open by reason, whatever their state and reason are to be."""
        return self.letters.open_reasons(wanted._replace(reason=None)) if self._is_known else None

    @property
    def _is_known(self) -> bool:
        return self.reasons is not None and self._is_judged

    async def run(self) -> None:
        while True:
            self._refused.clear()
            try:
                async with asyncio.timeout(ROUND_SECONDS):
                    await self.count_new()
            except UNREADABLE:
                self.reasons = None
            await asyncio.sleep(WOKEN_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(COUNT_SECONDS):
                    await self._refused.wait()

    async def catch_up(self) -> None:
        """A round now, for somebody who waits; where it fails, what was known before holds."""
        with suppress(*UNREADABLE):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                await self.count_new(ask_again=False)

    def note_receipt(self, receipt: Receipt) -> None:
        """Of the generation that is served."""
        self.letters.note_receipt(receipt)
        if receipt.outcome == "dead_lettered":
            self._refused.set()

    async def count_new(self, *, ask_again: bool = True) -> None:
        """One round. With `ask_again` the stores are asked again about some letters: a receipt may have been missed.
        Raises KafkaError, OSError, TimeoutError or LogUnavailable where the topic cannot be read."""
        async with self._round:
            deadline = time.monotonic() + READ_SECONDS
            topic = self._topics.dead_letters
            async with connected(self._locate_broker(), FETCH_BYTES, FETCH_MS, skip_all) as consumer:
                spans = await spans_of(consumer, topic)
                await self._begin(consumer, spans)
                for partition, span in spans.items():
                    self.letters.read_to[partition] = max(self.letters.read_to[partition], span.beginning)
                    await self._read(consumer, TopicPartition(topic, partition), span.end, deadline)
                self.letters.forget_before({partition: span.beginning for partition, span in spans.items()})
                await self._read_curation(consumer)
            self._forget_before(self._now_ms() - DAY_MS)
            is_complete = all(self.letters.read_to[partition] >= span.end for partition, span in spans.items())
            self.reasons = dict(sum(self._minutes.values(), Counter()).most_common()) if is_complete else None
            await self._judge(ask_again=ask_again)

    async def _begin(self, consumer: Any, spans: Mapping[int, Span]) -> None:
        """Where to begin in partitions that were not read yet."""
        if any(span.end < self.letters.read_to.get(partition, 0) for partition, span in spans.items()):
            self.letters.clear()  # the topic was made again
            self._is_judged = False
            self._minutes, self._curation_asked = {}, set()
        new = {partition: span for partition, span in spans.items() if partition not in self.letters.read_to}
        if not new:
            return
        of_the_day = await first_offsets(consumer, self._topics.dead_letters, new, self._now_ms() - DAY_MS)
        remembered = self.letters.capacity // len(spans)
        for partition, span in new.items():
            first = max(span.beginning, min(of_the_day[partition], span.end - remembered))
            self.letters.read_to[partition] = self.letters.complete_from[partition] = first

    async def _read(self, consumer: Any, place: TopicPartition, end: int, deadline: float) -> None:
        """Each record is counted once, wherever this is cut off."""
        if self.letters.read_to[place.partition] >= end:
            return
        day_ago_ms = self._now_ms() - DAY_MS
        records = read_range(consumer, place, self.letters.read_to[place.partition], end)
        async with aclosing(records):
            async for record in records:
                if time.monotonic() > deadline:
                    return
                letter = await asyncio.to_thread(known_letter, LetterRecord.of(record), self._topics)
                self.letters.take(letter)
                if record.timestamp >= day_ago_ms:
                    self._minutes.setdefault(record.timestamp // MINUTE_MS, Counter())[letter.reason] += 1
                self.letters.read_to[place.partition] = record.offset + 1
        self.letters.read_to[place.partition] = end

    async def _read_curation(self, consumer: Any) -> None:
        """Which settings and edits were accepted since they were refused: that topic is short, and read only where a
        letter from it is open."""
        topic = self._topics.curation
        refused = self.letters.open_sources(topic)
        if not refused:
            return
        place = TopicPartition(topic, 0)
        beginning = (await consumer.beginning_offsets([place]))[place]
        end = (await consumer.end_offsets([place]))[place]
        first = max(beginning, self._curation_read_to if refused <= self._curation_asked else min(refused))
        if first >= end:
            return
        async with aclosing(read_range(consumer, place, first, end)) as records:
            async for record in records:
                key = record.key or b""
                if not self.letters.has_source(topic, key, record.offset):
                    accepted = Appended(record.offset, record.offset)
                    stored = StoredDocument(0, accepted, record.timestamp, None, deleted=False)
                    self.letters.note_stored(subject_of(topic, key), stored)
        self._curation_asked, self._curation_read_to = refused, end

    async def _judge(self, *, ask_again: bool) -> None:
        snapshot = self._snapshot()
        if snapshot is None:
            self._is_judged = self.letters.is_judged
            return
        if snapshot.generation != self._generation:
            self.letters.forget_stored()
            self._generation, self._is_judged = snapshot.generation, False
        with suppress(TransientStoreError, DamagedStore):  # which others tell of; asked again in the next round
            while keys := self.letters.unjudged(JUDGED_AT_ONCE):
                await self._ask_stores(snapshot, keys)
            self._is_judged = True
            if ask_again:
                await self._ask_stores(snapshot, self.letters.judged_longest_ago(JUDGED_AT_ONCE))

    async def _ask_stores(self, snapshot: Snapshot, keys: Sequence[DocumentKey]) -> None:
        if keys:
            self.letters.judge(keys, await asyncio.to_thread(snapshot.text.documents, keys))

    def _forget_before(self, first_ms: int) -> None:
        self._minutes = {
            minute: reasons for minute, reasons in self._minutes.items() if minute >= first_ms // MINUTE_MS
        }

    def note(self) -> str | None:
        """A sentence on those that came within a day and are open."""
        if not self._is_known:
            return None
        reasons = self._open_reasons_of_the_day()
        if not reasons:
            return None
        count = sum(reasons.values())
        were, are = ("1 record was", "is") if count == 1 else (f"{count:,} records were", "are")
        return (
            f"{were} refused within a day and {are} not indexed ({in_words(reasons)}): 'thalweg dead-letters list "
            "--open' says why and what to do, 'thalweg dead-letters redrive' sends again what has been repaired."
        )


def by_reason(reasons: Mapping[str, int]) -> str:
    """The most frequent ones, and how many have another."""
    return _summed(reasons, lambda count, reason: f"{count:,} {reason}")


def in_words(reasons: Mapping[str, int]) -> str:
    """As `by_reason`, with what each means."""
    return _summed(reasons, lambda count, reason: f"{explanation(reason).title}: {count:,}")


def _summed(reasons: Mapping[str, int], show: Callable[[int, str], str]) -> str:
    ordered = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    named = [show(count, reason) for reason, count in ordered[:MAX_REASONS_NAMED]]
    others = sum(count for _, count in ordered[MAX_REASONS_NAMED:])
    return ", ".join([*named, *([f"{others:,} others"] if others else [])])
