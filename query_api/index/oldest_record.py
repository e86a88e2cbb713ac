"""The first record of a part of the log: what compaction and the marks of transactions left of it, and its time."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from query_api.index.follower import Span

log = structlog.get_logger(__name__)

FETCH_SECONDS = 2.0
_POLL_MS = 200


class TimedRecord(NamedTuple):
    """`timestamp_ms` is the record's own, None where it has none."""

    offset: int
    timestamp_ms: int | None


async def first_records(
    consumer: Any, spans: Mapping[TopicPartition, Span]
) -> dict[TopicPartition, TimedRecord | None]:
    """The first record of each span, None where a span holds none; without those that could not be read in time.

    Leaves the partitions assigned and paused: aiokafka may lose the cancellation that stops a consumer when that comes
    while an assignment is given up. One fetch for all, as small as the consumer's settings allow.
    """
    found: dict[TopicPartition, TimedRecord | None] = {}
    if not spans.keys() <= consumer.assignment():
        consumer.assign(list(spans))
    consumer.resume(*spans)
    try:
        for place, span in spans.items():
            consumer.seek(place, span.beginning)
        with suppress(TimeoutError):
            async with asyncio.timeout(FETCH_SECONDS):
                for place, span in spans.items():
                    try:
                        found[place] = await _first(consumer, place, span)
                    except KafkaError as error:  # a batch that cannot be read, or offsets that were deleted meanwhile
                        log.debug("oldest record not read", topic=place.topic, error=type(error).__name__)
    finally:
        consumer.pause(*spans)
    return found


async def _first(consumer: Any, place: TopicPartition, span: Span) -> TimedRecord | None:
    while await consumer.position(place) < span.end:
        batches = await consumer.getmany(place, timeout_ms=_POLL_MS, max_records=1)
        for record in batches.get(place, ()):
            if record.offset >= span.end:
                return None
            return TimedRecord(record.offset, record.timestamp if record.timestamp >= 0 else None)
    return None
