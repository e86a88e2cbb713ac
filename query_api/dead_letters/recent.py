"""How many dead letters came within a day, by reason."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from kafka_client.async_clients import read_range
from kafka_client.unreadable_batches import skip_all
from query_api.dead_letters.records import LetterRecord, reason_of
from query_api.index.follower import LocateBroker, LogUnavailable, connected, first_offsets, spans_of

DAY_MS = 24 * 60 * 60 * 1000
MINUTE_MS = 60_000
COUNT_SECONDS = 15.0
READ_SECONDS = 10.0  # of one round
ROUND_SECONDS = 30.0
FETCH_BYTES = 1024 * 1024
FETCH_MS = 20
MAX_REASONS_NAMED = 3


class RecentDeadLetters:
    """Reads what came since the last round, every quarter of a minute; of a restart, all of the last day.

    `reasons` is None while nobody knows: Kafka is away, or the day has not been read to its end yet.
    """

    def __init__(
        self, locate_broker: LocateBroker, topic: str, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self.reasons: dict[str, int] | None = None
        self._locate_broker = locate_broker
        self._topic = topic
        self._now_ms = now_ms
        self._next: dict[int, int] = {}
        self._minutes: dict[int, Counter[str]] = {}

    @property
    def count(self) -> int | None:
        return None if self.reasons is None else sum(self.reasons.values())

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(ROUND_SECONDS):
                    await self.count_new()
            except (KafkaError, OSError, TimeoutError, LogUnavailable):
                self.reasons = None
            await asyncio.sleep(COUNT_SECONDS)

    async def count_new(self) -> None:
        """One round. Raises KafkaError, OSError, TimeoutError or LogUnavailable where the topic cannot be read."""
        deadline = time.monotonic() + READ_SECONDS
        async with connected(self._locate_broker(), FETCH_BYTES, FETCH_MS, skip_all) as consumer:
            spans = await spans_of(consumer, self._topic)
            if any(span.end < self._next.get(partition, 0) for partition, span in spans.items()):
                self._next, self._minutes = {}, {}  # the topic was made again
            new = {partition: span for partition, span in spans.items() if partition not in self._next}
            if new:
                self._next |= await first_offsets(consumer, self._topic, new, self._now_ms() - DAY_MS)
            for partition, span in spans.items():
                self._next[partition] = max(self._next[partition], span.beginning)
                await self._read(consumer, TopicPartition(self._topic, partition), span.end, deadline)
        self._forget_before(self._now_ms() - DAY_MS)
        is_complete = all(self._next[partition] >= span.end for partition, span in spans.items())
        self.reasons = dict(sum(self._minutes.values(), Counter()).most_common()) if is_complete else None

    async def _read(self, consumer: Any, place: TopicPartition, end: int, deadline: float) -> None:
        """Each record is counted once, wherever this is cut off."""
        if self._next[place.partition] >= end:
            return
        records = read_range(consumer, place, self._next[place.partition], end)
        async with aclosing(records):
            async for record in records:
                if time.monotonic() > deadline:
                    return
                minute = record.timestamp // MINUTE_MS
                self._minutes.setdefault(minute, Counter())[reason_of(LetterRecord.of(record))[:100]] += 1
                self._next[place.partition] = record.offset + 1
        self._next[place.partition] = end

    def _forget_before(self, first_ms: int) -> None:
        self._minutes = {
            minute: reasons for minute, reasons in self._minutes.items() if minute >= first_ms // MINUTE_MS
        }

    def notes(self) -> list[str]:
        if not self.reasons:
            return []
        count = sum(self.reasons.values())
        records = "1 record" if count == 1 else f"{count:,} records"
        note = (
            f"{records} became dead letters within a day ({by_reason(self.reasons)}): 'thalweg dead-letters list' says "
            "why, 'thalweg dead-letters redrive' sends again what has been mended."
        )
        return [note]


def by_reason(reasons: dict[str, int]) -> str:
    """The most frequent ones, and how many have another."""
    ordered = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    named = [f"{count:,} {reason}" for reason, count in ordered[:MAX_REASONS_NAMED]]
    others = sum(count for _, count in ordered[MAX_REASONS_NAMED:])
    return ", ".join([*named, *([f"{others:,} others"] if others else [])])
