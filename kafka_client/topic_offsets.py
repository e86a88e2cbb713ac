"""Where partitions begin and end, and which of their records come first, as a broker reports it to a consumer."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from aiokafka.errors import KafkaError

from kafka_client.client_internals import fetch_all_metadata
from kafka_client.unreadable_batches import UnreadableBatch

if TYPE_CHECKING:

    class TopicPartition(NamedTuple):
        """aiokafka's own, which has no types."""

        topic: str
        partition: int
else:
    from aiokafka import TopicPartition

log = structlog.get_logger(__name__)

FIRST_RECORD_SECONDS = 2.0
FIRST_RECORD_POLL_MS = 200


class LogUnavailable(Exception):
    """The log cannot be followed just now; the message says why. Tried again after a pause."""


class TopicMissing(LogUnavailable):
    """Kafka answers, and has no such topic."""


class Span(NamedTuple):
    """The offsets a partition holds: `beginning` is the first, `end` the one the next record will get, or the first of
    a transaction that is still open: what follows it nobody may read yet."""

    beginning: int
    end: int

    def after(self, offset: int) -> "Span":
        """Those of them that come after an offset."""
        return Span(min(max(offset + 1, self.beginning), self.end), self.end)


class TimedRecord(NamedTuple):
    """`timestamp_ms` is the record's own, None where it has none."""

    offset: int
    timestamp_ms: int | None


async def spans_at(consumer: Any, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Span]:
    """What each of the partitions holds: two requests."""
    asked = list(partitions)
    beginnings = await consumer.beginning_offsets(asked) if asked else {}
    ends = await consumer.end_offsets(asked) if asked else {}
    return {each: Span(beginnings[each], ends[each]) for each in asked}


async def spans_of(consumer: Any, topic: str) -> dict[int, Span]:
    """What each partition of the topic holds. Raises TopicMissing when there is no such topic."""
    spans = await spans_by_topic(consumer, (topic,))
    if topic not in spans:
        raise TopicMissing(missing(topic))
    return spans[topic]


async def spans_by_topic(consumer: Any, topics: Collection[str]) -> dict[str, dict[int, Span]]:
    """What each partition holds of those topics that are there: three requests, however many topics."""
    cluster = await fetch_all_metadata(consumer)
    there = sorted(cluster.topics().intersection(topics))
    partitions = [
        TopicPartition(topic, partition)
        for topic in there
        for partition in sorted(cluster.partitions_for_topic(topic) or ())
    ]
    spans: dict[str, dict[int, Span]] = {topic: {} for topic in there}
    for each, span in (await spans_at(consumer, partitions)).items():
        spans[each.topic][each.partition] = span
    return spans


async def first_offsets(consumer: Any, topic: str, spans: Mapping[int, Span], since_ms: int | None) -> dict[int, int]:
    """The first offset of each partition whose record is from `since_ms` on, its end where there is none; the beginning
    for None."""
    if since_ms is None:
        return {partition: span.beginning for partition, span in spans.items()}
    found = await consumer.offsets_for_times({TopicPartition(topic, partition): since_ms for partition in spans})
    return {each.partition: spans[each.partition].end if at is None else at.offset for each, at in found.items()}


def missing(topic: str) -> str:
    """What to do about a topic that is not there."""
    return f"there is no topic {topic}: run `thalweg topics --create`, or start the worker"


async def first_records(
    consumer: Any, spans: Mapping[TopicPartition, Span]
) -> dict[TopicPartition, TimedRecord | UnreadableBatch | None]:
    """The first record of each span, or the unreadable batch in its place; None where a span holds none: what is there
    may be only the marks of a transaction, or what compaction left. Without those that could not be read in time.

    Leaves the partitions assigned and paused: aiokafka may lose the cancellation that stops a consumer when that comes
    while an assignment is given up. One fetch for all, as small as the consumer's settings allow.
    """
    found: dict[TopicPartition, TimedRecord | UnreadableBatch | None] = {}
    if not spans.keys() <= consumer.assignment():
        consumer.assign(list(spans))
    consumer.resume(*spans)
    try:
        for place, span in spans.items():
            consumer.seek(place, span.beginning)
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_RECORD_SECONDS):
                for place, span in spans.items():
                    try:
                        found[place] = await _first(consumer, place, span)
                    except UnreadableBatch as batch:
                        found[place] = batch
                    except KafkaError as error:  # such as offsets that were deleted meanwhile
                        log.debug("oldest record not read", topic=place.topic, error=type(error).__name__)
    finally:
        consumer.pause(*spans)
    return found


async def _first(consumer: Any, place: TopicPartition, span: Span) -> TimedRecord | None:
    while await consumer.position(place) < span.end:
        batches = await consumer.getmany(place, timeout_ms=FIRST_RECORD_POLL_MS, max_records=1)
        for record in batches.get(place, ()):
            if record.offset >= span.end:
                return None
            return TimedRecord(record.offset, record.timestamp if record.timestamp >= 0 else None)
    return None
