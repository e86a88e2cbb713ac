"""Dead letters for people: read from the end of their topic a window at a time."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiokafka import TopicPartition

from kafka_client.async_clients import read_range
from kafka_client.unreadable_batches import skip_all
from query_api.dead_letters.open_letters import (
    ANY,
    KnownLetter,
    OpenLetters,
    WantedLetters,
    known_letter,
    nearest_below,
)
from query_api.dead_letters.records import LetterRecord, detail, summary
from query_api.index.follower import LocateBroker, connected, first_offsets, spans_of
from schemas.dead_letters import DeadLetterDetail, DeadLetterPage, DeadLetterSummary
from schemas.ids import Position, format_positions
from schemas.topics import TopicNames

WINDOW_RECORDS = 50
LOOKED_AT_MOST = 5_000
PAGE_SECONDS = 8.0
ANSWER_SECONDS = 20.0
FETCH_BYTES = 1024 * 1024
FETCH_MS = 20  # a fetch that waits for records at a partition's end holds up what is asked next
READERS = 2

Summary = TypeVar("Summary", bound=DeadLetterSummary)


@dataclass
class _Scan:
    """A partition scanned from its newest record down to `low`. Below `high` nothing has been looked at.

    `found` holds (time, offset, letter), the newest first. From the offset `known_from` on, those asked for stand at
    the offsets `wanted`, ascending, and what lies between is passed over.
    """

    partition: int
    low: int
    high: int
    known_from: int
    wanted: Sequence[int] = ()
    found: deque[tuple[int, int, DeadLetterSummary]] = field(default_factory=deque)

    @property
    def is_over(self) -> bool:
        return not self.found and self.high <= self.low

    @property
    def following(self) -> int:
        """The end of what a next page has to look at."""
        return self.found[0][1] + 1 if self.found else max(self.low, self.high)


def _records_left(scan: _Scan) -> int:
    """Records that have not been looked at; of the scans that have found nothing, the longest goes on first."""
    return scan.high - scan.low


class DeadLetterReader:
    """Every call reads with a consumer of its own, without a group. Raises KafkaError, OSError, TimeoutError or
    LogUnavailable when the topic cannot be read."""

    def __init__(
        self,
        locate_broker: LocateBroker,
        topics: TopicNames,
        letters: OpenLetters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`letters` says which are open, and where some are found; it may be behind the topic."""
        self._locate_broker = locate_broker
        self._topics = topics
        self._topic = topics.dead_letters
        self._letters = letters
        self._clock = clock
        self._readers = asyncio.Semaphore(READERS)

    async def page(
        self, wanted: WantedLetters, *, since_ms: int | None, before: Mapping[int, int], limit: int
    ) -> DeadLetterPage:
        """The newest `limit` letters, by time across partitions and by offset within one, below `before` (partition →
        offset) where it names one.

        A page ends early, with a cursor, when it has looked at LOOKED_AT_MOST records or for PAGE_SECONDS.
        """
        async with self._consumer() as consumer:
            spans = await spans_of(consumer, self._topic)
            scans = [
                self._scan(
                    partition, low, min(spans[partition].end, before.get(partition, spans[partition].end)), wanted
                )
                for partition, low in (await first_offsets(consumer, self._topic, spans, since_ms)).items()
            ]
            letters: list[DeadLetterSummary] = []
            looked_at = 0
            until = self._clock() + PAGE_SECONDS
            while len(letters) < limit and looked_at < LOOKED_AT_MOST and self._clock() < until:
                unknown = max(
                    (scan for scan in scans if not scan.found and not scan.is_over), key=_records_left, default=None
                )
                if unknown is not None:
                    looked_at += await self._look_further(consumer, unknown, wanted)
                    continue
                newest = max((scan for scan in scans if scan.found), key=lambda scan: scan.found[0][:2], default=None)
                if newest is None:
                    break
                letters.append(newest.found.popleft()[2])
            is_over = all(scan.is_over for scan in scans)
            cursor = None if is_over else format_positions({scan.partition: scan.following for scan in scans})
            return DeadLetterPage(dead_letters=letters, next_cursor=cursor, looked_at=looked_at)

    async def detail(self, record: LetterRecord) -> DeadLetterDetail:
        return self._placed(await asyncio.to_thread(detail, record), self._known(record))

    async def letter(self, position: Position) -> LetterRecord | None:
        """The whole record, or None where the topic holds none at this position."""
        async with self._consumer() as consumer:
            span = (await spans_of(consumer, self._topic)).get(position.partition)
            if span is None or not span.beginning <= position.offset < span.end:
                return None
            records = self._records(consumer, position.partition, position.offset, position.offset + 1)
            async with aclosing(records):
                return await anext(records, None)

    def _scan(self, partition: int, low: int, end: int, wanted: WantedLetters) -> _Scan:
        """Where only some are asked for, those that are remembered need not be searched for."""
        scan = _Scan(partition, low, max(low, end), known_from=2**63)
        if wanted != ANY and (known_from := self._letters.complete_from.get(partition)) is not None:
            scan.known_from, scan.wanted = known_from, self._letters.offsets(partition, wanted)
        return scan

    async def _look_further(self, consumer: Any, scan: _Scan, wanted: WantedLetters) -> int:
        self._skip_known(scan)
        if scan.high == scan.low:
            return 0
        first, end = max(scan.low, scan.high - WINDOW_RECORDS), scan.high
        looked_at = 0
        async for record in self._records(consumer, scan.partition, first, end):
            looked_at += 1
            known = self._known(record)
            standing = self._letters.standing(known)
            if wanted.names(known) and wanted.state in (None, standing.state):
                letter = await asyncio.to_thread(summary, record)  # decodes the document: a second for large metadata
                scan.found.appendleft((record.timestamp_ms, record.offset, self._placed(letter, known)))
        scan.high = first
        return max(1, looked_at)

    def _skip_known(self, scan: _Scan) -> None:
        """Lower `high` to behind the next letter that is asked for. What came since they were read is looked at."""
        if not scan.known_from < scan.high <= self._letters.read_to.get(scan.partition, 0):
            return
        nearest = nearest_below(scan.wanted, scan.high)
        scan.high = max(scan.low, scan.known_from if nearest is None else nearest + 1)

    def _known(self, record: LetterRecord) -> KnownLetter:
        at = Position(record.partition, record.offset)
        return self._letters.known(at) or known_letter(record, self._topics, with_version=False)

    def _placed(self, letter: Summary, known: KnownLetter) -> Summary:
        """With what it is of, and what became of that."""
        standing = self._letters.standing(known)
        return letter.model_copy(
            update={
                "collection": known.collection,
                "document_id": None if known.document is None else known.document.document_id,
                "state": standing.state,
                "state_message": standing.message,
            }
        )

    async def _records(self, consumer: Any, partition: int, first: int, end: int) -> AsyncGenerator[LetterRecord, None]:
        place = TopicPartition(self._topic, partition)
        async for record in read_range(consumer, place, first, end, most_at_once=WINDOW_RECORDS):
            yield LetterRecord.of(record)

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[Any]:
        async with (
            self._readers,
            asyncio.timeout(ANSWER_SECONDS),
            connected(self._locate_broker(), FETCH_BYTES, FETCH_MS, skip_all) as consumer,
        ):
            yield consumer
