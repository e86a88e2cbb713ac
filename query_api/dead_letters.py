"""Dead letters for people: read from the end of their topic a window at a time, escaped for a terminal, and the order
to skip an unreadable batch."""

import asyncio
import codecs
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from kafka_client.async_clients import read_range, unreadable_at
from kafka_client.skipped_batches import SkippedBatches
from kafka_client.unreadable_batches import UnreadableBatch, skip_all
from query_api.index.follower import LocateBroker, LogUnavailable, Span, connect, spans_of
from query_api.ingest.producer import LogWriter, OutgoingRecord
from schemas.clock import rfc3339
from schemas.dead_letters import (
    CONNECT_PREFIX,
    LAST_OFFSET,
    OMITTED_HEADER,
    REASON_HEADER,
    DeadLetterDetail,
    DeadLetterPage,
    DeadLetterSource,
    DeadLetterSummary,
    Extent,
    SkippedBatch,
    encode_skip,
    skip_key,
    skipped_batch_headers,
)
from schemas.errors import MalformedEvent
from schemas.events import DocumentUpsert, decode_document_event
from schemas.ids import Position, format_positions
from schemas.settings import LimitSettings
from schemas.topics import TopicNames

NO_LIMITS = LimitSettings(max_document_bytes=2**62, max_metadata_bytes=2**62)
PREVIEW_BYTES = 2_000
KEY_BYTES = 300


class LetterRecord(NamedTuple):
    """A record of the topic, undecoded."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]

    @property
    def omitted(self) -> bool:
        return any(name == OMITTED_HEADER for name, _ in self.headers)


def reason_of(record: LetterRecord) -> str:
    """As a summary tells it, without reading the value."""
    return next((escaped(text, PREVIEW_BYTES) for name, text in record.headers if name == REASON_HEADER), "unknown")


def summary(record: LetterRecord) -> DeadLetterSummary:
    return DeadLetterSummary(**_summary(record))


def detail(record: LetterRecord) -> DeadLetterDetail:
    value = record.value or b""
    own = [(name, text) for name, text in record.headers if not _is_error_header(name)]
    return DeadLetterDetail(
        **_summary(record),
        headers={name: escaped(text, KEY_BYTES) for name, text in own},
        preview=escaped(value, PREVIEW_BYTES, keep="\n\t"),
        preview_is_all=len(value) <= PREVIEW_BYTES and not record.omitted,
    )


def escaped(content: bytes, most_bytes: int, keep: str = "") -> str:
    """The beginning as text. What is no UTF-8, and every character that does not print, is escaped, but for `keep`."""
    is_all = len(content) <= most_bytes
    text = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(content[:most_bytes], final=is_all)
    return "".join(each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text)


def _summary(record: LetterRecord) -> dict[str, Any]:
    error = {name: escaped(text or b"", PREVIEW_BYTES) for name, text in record.headers if _is_error_header(name)}
    return {
        "position": f"{record.partition}:{record.offset}",
        "key": None if record.key is None else escaped(record.key, KEY_BYTES),
        "source": _source(error),
        "stage": error.get(CONNECT_PREFIX + "stage", "unknown"),
        "reason": reason_of(record),
        "message": error.get(CONNECT_PREFIX + "exception.message", ""),
        "at": rfc3339(record.timestamp_ms),
        "bytes": None if record.value is None else len(record.value),
        "content_bytes": None if record.omitted else _content_bytes(record),
        "omitted": error.get(OMITTED_HEADER),
    }


def _content_bytes(record: LetterRecord) -> int | None:
    try:
        event = decode_document_event(record.key, record.value, record.headers, NO_LIMITS)
    except MalformedEvent:
        return None
    return len(event.content) if isinstance(event, DocumentUpsert) else None


def _is_error_header(name: str) -> bool:
    return name.startswith(CONNECT_PREFIX) or name in (REASON_HEADER, OMITTED_HEADER)


def _source(error: Mapping[str, str]) -> DeadLetterSource | None:
    topic, partition, offset = (error.get(CONNECT_PREFIX + name, "") for name in ("topic", "partition", "offset"))
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        return None
    last = error.get(CONNECT_PREFIX + LAST_OFFSET, "")
    return DeadLetterSource(
        topic=topic,
        partition=int(partition),
        offset=int(offset),
        last_offset=int(last) if last.isdecimal() else None,
    )


WINDOW_RECORDS = 50
LOOKED_AT_MOST = 5_000
PAGE_SECONDS = 8.0
ANSWER_SECONDS = 20.0
FETCH_BYTES = 1024 * 1024
READERS = 2
DAY_MS = 24 * 60 * 60 * 1000
COUNT_SECONDS = 15.0


@dataclass
class _Scan:
    """A partition scanned from its newest record down to `low`. Below `high` nothing has been looked at.

    `found` holds (time, offset, letter), the newest first.
    """

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


def _records_left(scan: _Scan) -> int:
    """Records that have not been looked at; of the scans that have found nothing, the longest goes on first."""
    return scan.high - scan.low


class DeadLetterReader:
    """Every call reads with a consumer of its own, without a group. Raises KafkaError, OSError, TimeoutError or
    LogUnavailable when the topic cannot be read."""

    def __init__(self, locate_broker: LocateBroker, topic: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._locate_broker = locate_broker
        self._topic = topic
        self._clock = clock
        self._readers = asyncio.Semaphore(READERS)

    async def page(
        self, *, reason: str | None, since_ms: int | None, before: Mapping[int, int], limit: int
    ) -> DeadLetterPage:
        """The newest `limit` letters, by time across partitions and by offset within one, below `before` (partition →
        offset) where it names one.

        A page ends early, with a cursor, when it has looked at LOOKED_AT_MOST records or for PAGE_SECONDS.
        """
        async with self._consumer() as consumer:
            spans = await spans_of(consumer, self._topic)
            scans = [
                _Scan(partition, low, max(low, min(spans[partition].end, before.get(partition, spans[partition].end))))
                for partition, low in (await self._lows(consumer, spans, since_ms)).items()
            ]
            letters: list[DeadLetterSummary] = []
            looked_at = 0
            until = self._clock() + PAGE_SECONDS
            while len(letters) < limit and looked_at < LOOKED_AT_MOST and self._clock() < until:
                unknown = max(
                    (scan for scan in scans if not scan.found and not scan.is_over), key=_records_left, default=None
                )
                if unknown is not None:
                    looked_at += await self._look_further(consumer, unknown, reason)
                    continue
                newest = max((scan for scan in scans if scan.found), key=lambda scan: scan.found[0][:2], default=None)
                if newest is None:
                    break
                letters.append(newest.found.popleft()[2])
            is_over = all(scan.is_over for scan in scans)
            cursor = None if is_over else format_positions({scan.partition: scan.following for scan in scans})
            return DeadLetterPage(dead_letters=letters, next_cursor=cursor, looked_at=looked_at)

    async def count_since(self, since_ms: int) -> int:
        """How many letters came since then, by their offsets."""
        async with self._consumer() as consumer:
            spans = await spans_of(consumer, self._topic)
            lows = await self._lows(consumer, spans, since_ms)
            return sum(span.end - max(span.beginning, lows[partition]) for partition, span in spans.items())

    async def letter(self, position: Position) -> LetterRecord | None:
        """The whole record, or None where the topic holds none at this position."""
        async with self._consumer() as consumer:
            span = (await spans_of(consumer, self._topic)).get(position.partition)
            if span is None or not span.beginning <= position.offset < span.end:
                return None
            records = self._records(consumer, position.partition, position.offset, position.offset + 1)
            async with aclosing(records):
                return await anext(records, None)

    async def _lows(self, consumer: Any, spans: Mapping[int, Span], since_ms: int | None) -> dict[int, int]:
        """The first offset of each partition that is late enough."""
        if since_ms is None:
            return {partition: span.beginning for partition, span in spans.items()}
        asked = {TopicPartition(self._topic, partition): since_ms for partition in spans}
        found = await consumer.offsets_for_times(asked)
        return {each.partition: spans[each.partition].end if at is None else at.offset for each, at in found.items()}

    async def _look_further(self, consumer: Any, scan: _Scan, reason: str | None) -> int:
        first, end = max(scan.low, scan.high - WINDOW_RECORDS), scan.high
        looked_at = 0
        async for record in self._records(consumer, scan.partition, first, end):
            looked_at += 1
            if reason is None or reason_of(record) == reason:
                letter = await asyncio.to_thread(summary, record)  # decodes the document: a second for large metadata
                scan.found.appendleft((record.timestamp_ms, record.offset, letter))
        scan.high = first
        return max(1, looked_at)

    async def _records(self, consumer: Any, partition: int, first: int, end: int) -> AsyncGenerator[LetterRecord, None]:
        place = TopicPartition(self._topic, partition)
        async for record in read_range(consumer, place, first, end, most_at_once=WINDOW_RECORDS):
            headers = [(name, value or b"") for name, value in record.headers]
            yield LetterRecord(record.partition, record.offset, record.timestamp, record.key, record.value, headers)

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[Any]:
        async with self._readers, asyncio.timeout(ANSWER_SECONDS):
            consumer = await connect(self._locate_broker(), FETCH_BYTES, skip=skip_all)
            try:
                yield consumer
            finally:
                await consumer.stop()


class RecentDeadLetters:
    """Counts again every quarter of a minute; `count` is that of the last day, None while nobody knows it."""

    def __init__(self, reader: DeadLetterReader) -> None:
        self.count: int | None = None
        self._reader = reader

    async def run(self) -> None:
        while True:
            try:
                self.count = await self._reader.count_since(time.time_ns() // 1_000_000 - DAY_MS)
            except (KafkaError, OSError, TimeoutError, LogUnavailable):
                self.count = None
            await asyncio.sleep(COUNT_SECONDS)

    def notes(self) -> list[str]:
        if not self.count:
            return []
        records = "1 record" if self.count == 1 else f"{self.count:,} records"
        return [f"{records} became dead letters within a day: 'thalweg dead-letters list' says which, and why."]


SKIP_SECONDS = 10.0
SPAN_BYTES = 1024 * 1024


class NothingToSkip(Exception):
    """There is no unreadable batch at that offset; the message says what is."""


async def skip_batch(
    topics: TopicNames, place: TopicPartition, offset: int, locate_broker: LocateBroker, writer: LogWriter
) -> SkippedBatch:
    """Order all readers to go on behind the unreadable batch that holds the offset. May be repeated: one letter, one
    order.

    Raises NothingToSkip; LogUnavailable, KafkaError, OSError or TimeoutError where the log cannot be read, and
    BrokerUnavailable where it did not confirm.
    """
    servers = locate_broker()
    if servers is None:
        raise LogUnavailable("no Kafka is known")
    consumer = await connect(servers, SPAN_BYTES)
    try:
        partitions = len(await spans_of(consumer, place.topic))
    finally:
        await consumer.stop()
    if place.partition >= partitions:
        raise NothingToSkip(f"{place.topic} has the partitions 0 to {partitions - 1}.")
    found = await unreadable_at(servers, place, offset, seconds=SKIP_SECONDS)
    if found is None or not found.first <= offset <= found.last:
        raise NothingToSkip(f"{place.topic} partition {place.partition} holds no unreadable batch at offset {offset}.")
    ordered = SkippedBatches(locate_broker, topics.curation)
    await ordered.refresh()
    if not ordered.includes(found):
        await writer.publish(topics.dead_letters, [_letter(found)])
        extent = Extent(found.topic, found.partition, found.first, found.last)
        await writer.publish(topics.curation, [OutgoingRecord(skip_key(extent), encode_skip(extent, found.fault))])
    return SkippedBatch(
        topic=found.topic, partition=found.partition, first=found.first, last=found.last, fault=found.fault
    )


def _letter(found: UnreadableBatch) -> OutgoingRecord:
    """Without key and bytes: nobody can read them. (aiokafka sends no record that has neither key nor value.)"""
    headers = skipped_batch_headers(found.topic, found.partition, found.first, found.last, found.fault)
    return OutgoingRecord(None, b"", headers)
