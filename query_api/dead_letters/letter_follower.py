"""The follower of the dead letters topic: it fills the table of letters, and counts those that came within a day."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError

from indexer.errors import DamagedStore, TransientStoreError
from kafka_client.async_clients import LocateBroker, connected
from kafka_client.topic_offsets import LogUnavailable, Span, TopicPartition, first_offsets, spans_of
from kafka_client.unreadable_batches import skip_all
from query_api.dead_letters.letter_state import Letter, letter_of
from query_api.dead_letters.letter_table import ANY, MAX_LETTERS, LetterFilter, LetterTable
from query_api.dead_letters.topic_tail import read_steadily
from query_api.index.search_snapshot import Snapshot
from schemas.receipts import Receipt
from schemas.refusals import explanation
from schemas.topics import TopicNames

DAY_MS = 24 * 60 * 60 * 1000
MINUTE_MS = 60_000
COUNT_SECONDS = 15.0
WOKEN_SECONDS = 0.5  # between two rounds, where receipts report one refusal after the other
READ_SECONDS = 10.0  # of one round
ROUND_SECONDS = 30.0
CATCH_UP_SECONDS = 3.0
FETCH_BYTES = 1024 * 1024
FETCH_MS = 20  # a fetch that waits for records at a partition's end holds up what is asked next
THREAD_BYTES = 64 * 1024  # a letter this large is decoded in a thread
MAX_REASONS_NAMED = 3
ASKED_AT_ONCE = 500
UNREADABLE = (KafkaError, OSError, TimeoutError, LogUnavailable)


@dataclass(eq=False)
class LetterFollower:
    """Reads what came since the last round, every quarter of a minute, whenever a receipt reports a refusal, and for
    everybody who lists or redrives; after a restart, all of the last day and as many older letters as the table holds.

    `reasons` and `open_reasons` are None while nobody knows: Kafka is away, or what there is has not been read to its
    end yet, or the stores were not asked about all of it.
    """

    locate_broker: LocateBroker
    topics: TopicNames
    snapshot: Callable[[], Snapshot | None] = lambda: None
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    capacity: int = MAX_LETTERS

    def __post_init__(self) -> None:
        self.reasons: dict[str, int] | None = None
        self.table = LetterTable(self.topics, self.capacity)
        self._minutes: dict[int, Counter[str]] = {}
        self._curation_asked: set[int] = set()
        self._curation_read_to = 0
        self._generation: str | None = None
        self._is_asked = False
        self._round = asyncio.Lock()
        self._refused = asyncio.Event()

    @property
    def count(self) -> int | None:
        return None if self.reasons is None else sum(self.reasons.values())

    def open_reasons(self, wanted: LetterFilter = ANY) -> dict[str, int] | None:
        """How many of those asked for are open by reason, of all that are remembered."""
        is_known = self.reasons is not None and self._is_asked
        return self.table.open_reasons(wanted) if is_known else None

    def open_count(self, wanted: LetterFilter = ANY) -> int | None:
        reasons = self.open_reasons(wanted)
        return None if reasons is None else sum(reasons.values())

    def of_last_day(self) -> LetterFilter:
        return LetterFilter(since_ms=self.now_ms() - DAY_MS)

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
        self.table.note_receipt(receipt)
        if receipt.outcome == "dead_lettered":
            self._refused.set()

    async def count_new(self, *, ask_again: bool = True) -> None:
        """One round. With `ask_again` the stores are asked again about some letters: a receipt may have been missed.
        Raises KafkaError, OSError, TimeoutError or LogUnavailable where the topic cannot be read."""
        async with self._round:
            await self._read(time.monotonic() + READ_SECONDS)
            await self._ask_stores(ask_again=ask_again)

    async def read_to_end(self) -> Mapping[int, Span]:
        """Take all letters there are now, however long that takes; what each partition holds. Raises as `count_new`."""
        async with self._round:
            return await self._read()

    async def letters_from(self, firsts: Mapping[int, int]) -> AsyncGenerator[Letter, None]:
        """Every letter of these partitions from an offset on, as far as was read: those that are remembered no longer
        come from the topic. Raises as `count_new`."""
        known = self.table.from_offsets(firsts)
        gone = {at: (first, self.table.complete_from.get(at, first)) for at, first in firsts.items()}
        if any(first < end for first, end in gone.values()):
            async with connected(self.locate_broker(), FETCH_BYTES, FETCH_MS, skip_all) as consumer:
                for partition, (first, end) in gone.items():
                    place = TopicPartition(self.topics.dead_letters, partition)
                    async for record in read_steadily(consumer, place, first, end):
                        yield letter_of(record, self.topics, with_version=False)
        for letter in known:
            yield letter

    async def _read(self, deadline: float | None = None) -> Mapping[int, Span]:
        async with connected(self.locate_broker(), FETCH_BYTES, FETCH_MS, skip_all) as consumer:
            spans = await spans_of(consumer, self.topics.dead_letters)
            await self._begin(consumer, spans)
            for partition, span in spans.items():
                await self._read_partition(consumer, partition, span, deadline)
            self.table.forget_before({partition: span.beginning for partition, span in spans.items()})
            await self._read_curation(consumer)
        first_minute = (self.now_ms() - DAY_MS) // MINUTE_MS
        self._minutes = {minute: reasons for minute, reasons in self._minutes.items() if minute >= first_minute}
        is_complete = all(self.table.read_to[partition] >= span.end for partition, span in spans.items())
        self.reasons = dict(sum(self._minutes.values(), Counter()).most_common()) if is_complete else None
        return spans

    async def _begin(self, consumer: Any, spans: Mapping[int, Span]) -> None:
        """Where to begin in partitions that were not read yet."""
        if any(span.end < self.table.read_to.get(partition, 0) for partition, span in spans.items()):
            self.table.clear()  # the topic was made again
            self._is_asked = False
            self._minutes, self._curation_asked = {}, set()
        new = {partition: span for partition, span in spans.items() if partition not in self.table.read_to}
        if not new:
            return
        of_the_day = await first_offsets(consumer, self.topics.dead_letters, new, self.now_ms() - DAY_MS)
        remembered = self.table.capacity // len(spans)
        for partition, span in new.items():
            first = max(span.beginning, min(of_the_day[partition], span.end - remembered))
            self.table.read_to[partition] = self.table.complete_from[partition] = first

    async def _read_partition(self, consumer: Any, partition: int, span: Span, deadline: float | None) -> None:
        """Each record is counted once, wherever this is cut off."""
        read_to, day_ago_ms = self.table.read_to, self.now_ms() - DAY_MS
        read_to[partition] = max(read_to[partition], span.beginning)
        if read_to[partition] >= span.end:
            return
        place = TopicPartition(self.topics.dead_letters, partition)
        async with aclosing(read_steadily(consumer, place, read_to[partition], span.end)) as records:
            async for record in records:
                if deadline is not None and time.monotonic() > deadline:
                    return
                if len(record.value or b"") >= THREAD_BYTES:
                    letter = await asyncio.to_thread(letter_of, record, self.topics)
                else:
                    letter = letter_of(record, self.topics)
                    await asyncio.sleep(0)  # many of them hold up no search
                self.table.take(letter)
                if record.timestamp_ms >= day_ago_ms:
                    self._minutes.setdefault(record.timestamp_ms // MINUTE_MS, Counter())[letter.reason] += 1
                read_to[partition] = record.offset + 1
        read_to[partition] = span.end

    async def _read_curation(self, consumer: Any) -> None:
        """Which settings and edits were accepted since they were refused: that topic is short, and read only where a
        letter from it is open."""
        topic = self.topics.curation
        refused = self.table.open_sources(topic)
        if not refused:
            return
        span = (await spans_of(consumer, topic))[0]
        first = max(span.beginning, self._curation_read_to if refused <= self._curation_asked else min(refused))
        if first >= span.end:
            return
        async for record in read_steadily(consumer, TopicPartition(topic, 0), first, span.end):
            self.table.note_accepted(topic, record.key or b"", record.offset)
        self._curation_asked, self._curation_read_to = refused, span.end

    async def _ask_stores(self, *, ask_again: bool) -> None:
        snapshot = self.snapshot()
        if snapshot is None:
            self._is_asked = self.table.is_asked
            return
        if snapshot.generation != self._generation:
            self.table.forget_stored()
            self._generation, self._is_asked = snapshot.generation, False
        with suppress(TransientStoreError, DamagedStore):  # which others report; asked again in the next round
            while not self.table.is_asked:
                await self._ask(snapshot)
            self._is_asked = True
            if ask_again:
                await self._ask(snapshot)

    async def _ask(self, snapshot: Snapshot) -> None:
        if keys := self.table.to_ask(ASKED_AT_ONCE):
            self.table.note_rows(keys, await asyncio.to_thread(snapshot.text.documents, keys))

    def note(self) -> str | None:
        """A sentence on those that came within a day and are open."""
        reasons = self.open_reasons(self.of_last_day())
        if not reasons:
            return None
        count = sum(reasons.values())
        were, are = ("1 record was", "is") if count == 1 else (f"{count:,} records were", "are")
        named = most_frequent(reasons, lambda count, reason: f"{explanation(reason).title}: {count:,}")
        return (
            f"{were} refused within a day and {are} not indexed ({named}): 'thalweg dead-letters list --open' says why "
            "and what to do, 'thalweg dead-letters redrive' sends again what has been repaired."
        )


def most_frequent(
    reasons: Mapping[str, int], show: Callable[[int, str], str] = lambda count, reason: f"{count:,} {reason}"
) -> str:
    """The most frequent reasons, and how many letters have another."""
    ordered = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    named = [show(count, reason) for reason, count in ordered[:MAX_REASONS_NAMED]]
    others = sum(count for _, count in ordered[MAX_REASONS_NAMED:])
    return ", ".join([*named, *([f"{others:,} others"] if others else [])])
