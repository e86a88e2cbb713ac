"""Dead letters for people: read from the end of their topic a window at a time."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kafka_client.async_clients import connected, read_range
from kafka_client.topic_offsets import TopicPartition, first_offsets, spans_of
from kafka_client.unreadable_batches import skip_all
from query_api.dead_letters.letter_follower import FETCH_BYTES, FETCH_MS, LetterFollower
from query_api.dead_letters.letter_state import Letter, letter_of
from query_api.dead_letters.letter_table import LetterFilter
from query_api.dead_letters.records import LetterRecord, detail, summary
from schemas.dead_letters import DeadLetterDetail, DeadLetterPage, DeadLetterSummary
from schemas.ids import Position, format_positions

WINDOW_RECORDS = 50
LOOKED_AT_MOST = 5_000
PAGE_SECONDS = 8.0
ANSWER_SECONDS = 20.0
READERS = 2


@dataclass
class _Scan:
    """A partition scanned from its newest record down to `low`. Below `high` nothing has been looked at. `found` holds
    (time, offset, letter), the newest first."""

    partition: int
    low: int
    high: int
    found: deque[tuple[int, int, DeadLetterSummary]] = field(default_factory=deque)

    @property
    def is_over(self) -> bool:
        return not self.found and self.high <= self.low

    @property
    def following(self) -> int:
        """The end of what a next page has to look at."""
        return self.found[0][1] + 1 if self.found else max(self.low, self.high)

    @property
    def records_left(self) -> int:
        """Records that have not been looked at; of the scans that have found nothing, the longest goes on first."""
        return self.high - self.low


class LetterPages:
    """Every call reads with a consumer of its own, without a group. Raises KafkaError, OSError, TimeoutError or
    LogUnavailable when the topic cannot be read."""

    def __init__(self, follower: LetterFollower) -> None:
        """Its table names those that are open, and where some are found; it may be behind the topic."""
        self._locate_broker = follower.locate_broker
        self._topics = follower.topics
        self._topic = follower.topics.dead_letters
        self._table = follower.table
        self._readers = asyncio.Semaphore(READERS)

    async def page(
        self, wanted: LetterFilter, *, since_ms: int | None, before: Mapping[int, int], limit: int
    ) -> DeadLetterPage:
        """The newest `limit` letters, by time across partitions and by offset within one, below `before` (partition →
        offset) where it names one.

        A page ends early, with a cursor, when it has looked at LOOKED_AT_MOST records or for PAGE_SECONDS.
        """
        async with self._consumer() as consumer:
            spans = await spans_of(consumer, self._topic)
            firsts = await first_offsets(consumer, self._topic, spans, since_ms)
            ends = {partition: min(span.end, before.get(partition, span.end)) for partition, span in spans.items()}
            scans = [_Scan(partition, low, max(low, ends[partition])) for partition, low in firsts.items()]
            letters: list[DeadLetterSummary] = []
            looked_at = 0
            until = time.monotonic() + PAGE_SECONDS
            while len(letters) < limit and looked_at < LOOKED_AT_MOST and time.monotonic() < until:
                unknown = [scan for scan in scans if not scan.found and not scan.is_over]
                if unknown:
                    longest = max(unknown, key=lambda scan: scan.records_left)
                    looked_at += await self._look_further(consumer, longest, wanted)
                    continue
                newest = max((scan for scan in scans if scan.found), key=lambda scan: scan.found[0][:2], default=None)
                if newest is None:
                    break
                letters.append(newest.found.popleft()[2])
            is_over = all(scan.is_over for scan in scans)
            cursor = None if is_over else format_positions({scan.partition: scan.following for scan in scans})
            return DeadLetterPage(dead_letters=letters, next_cursor=cursor, looked_at=looked_at)

    async def detail(self, record: LetterRecord) -> DeadLetterDetail:
        return await asyncio.to_thread(detail, record, **self._known_of(self._letter(record)))

    async def letter(self, position: Position) -> LetterRecord | None:
        """The whole record, or None where the topic holds none at this position."""
        async with self._consumer() as consumer:
            span = (await spans_of(consumer, self._topic)).get(position.partition)
            if span is None or not span.beginning <= position.offset < span.end:
                return None
            place = TopicPartition(self._topic, position.partition)
            async with aclosing(read_range(consumer, place, position.offset, position.offset + 1)) as records:
                record = await anext(records, None)
            return None if record is None else LetterRecord.of(record)

    async def _look_further(self, consumer: Any, scan: _Scan, wanted: LetterFilter) -> int:
        """What is known to hold none of those asked for is passed over."""
        scan.high = max(scan.low, self._table.look_below(scan.partition, scan.high, wanted))
        if scan.high == scan.low:
            return 0
        first, end = max(scan.low, scan.high - WINDOW_RECORDS), scan.high
        looked_at = 0
        place = TopicPartition(self._topic, scan.partition)
        async for each in read_range(consumer, place, first, end, most_at_once=WINDOW_RECORDS):
            looked_at += 1
            record = LetterRecord.of(each)
            letter = self._letter(record)
            if self._table.matches(letter, wanted):
                # decodes the document: a second for large metadata
                shown = await asyncio.to_thread(summary, record, **self._known_of(letter))
                scan.found.appendleft((record.timestamp_ms, record.offset, shown))
        scan.high = first
        return max(1, looked_at)

    def _letter(self, record: LetterRecord) -> Letter:
        known = self._table.known(Position(record.partition, record.offset))
        return known or letter_of(record, self._topics, with_version=False)

    def _known_of(self, letter: Letter) -> dict[str, str | None]:
        """What it is of, and what became of that."""
        state, message = self._table.state_of(letter)
        names = {"collection": letter.collection, "document_id": letter.document_id}
        return names | {"state": state, "state_message": message}

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[Any]:
        async with (
            self._readers,
            asyncio.timeout(ANSWER_SECONDS),
            connected(self._locate_broker(), FETCH_BYTES, FETCH_MS, skip_all) as consumer,
        ):
            yield consumer
