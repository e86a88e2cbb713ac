"""Following topics: one reader for each, without a group, from offsets of our own choosing, for as long as we live."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from kafka_client.async_clients import LogConsumer, open_consumer
from kafka_client.security import AccessDenied
from kafka_client.unreadable_batches import Skip, UnreadableBatch, skip_none
from schemas.settings import KafkaConnection

log = structlog.get_logger(__name__)

POLL_MS = 500
LONGEST_FETCH_MS = 2_500  # of who follows only: a record ends it at once, and each fetch costs the broker and us
REQUEST_TIMEOUT_MS = 10_000
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 2.0

LocateBroker = Callable[[], KafkaConnection | None]
"""The cluster to use now, or None while no Kafka is known. Asked again at every connection."""


class FollowedRecord(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Span(NamedTuple):
    """The offsets a partition holds: `beginning` is the first, `end` the one the next record will get, or the first of
    a transaction that is still open: what follows it nobody may read yet."""

    beginning: int
    end: int


class LogUnavailable(Exception):
    """The log cannot be followed just now; the message says why. Tried again after a pause."""


class TopicMissing(LogUnavailable):
    """Kafka answers, and has no such topic."""


Begin = Callable[[Mapping[int, Span]], Mapping[int, int]]
"""Called at every connection: the first offset to read of each partition. May raise LogUnavailable."""

Take = Callable[[Sequence[FollowedRecord]], Awaitable[None]]
"""Called with records in offset order within a partition; after a reconnection some may come again."""


class TopicFollower:
    """Hands every record of a topic to `take`, from where `begin` says, reconnecting forever."""

    def __init__(
        self,
        topic: str,
        locate_broker: LocateBroker,
        begin: Begin,
        take: Take,
        *,
        record_bytes: int,
        skip: Skip,
        passed: Callable[[Mapping[int, int]], None] | None = None,
    ) -> None:
        """A batch that cannot be read, and that is not skipped, is a `problem`: what comes after it waits. `passed` is
        called with the next offset of each partition, also behind offsets that hold no record."""
        self.topic = topic
        self.problem: str | None = "not connected yet"
        self._locate_broker = locate_broker
        self._begin = begin
        self._take = take
        self._passed = passed
        self._record_bytes = record_bytes
        self._skip = skip

    async def run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._follow()
                pause = FIRST_PAUSE_SECONDS
            except (KafkaError, OSError, LogUnavailable) as error:
                plain = isinstance(error, (UnreadableBatch, AccessDenied)) or not isinstance(error, KafkaError)
                problem = str(error) if plain else f"{type(error).__name__}: {error}"
                if self.problem != problem:
                    log.warning("topic cannot be followed", topic=self.topic, problem=problem)
                if self.problem is None:
                    pause = FIRST_PAUSE_SECONDS
                self.problem = problem
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _follow(self) -> None:
        """One connection: until the broker moves to another address or fails, or the topic gets more partitions."""
        servers = self._locate_broker()
        consumer = await connect(servers, self._record_bytes, LONGEST_FETCH_MS, self._skip)
        try:
            spans = await spans_of(consumer, self.topic)
            first = self._begin(spans)
            consumer.assign([TopicPartition(self.topic, partition) for partition in spans])
            for partition in spans:
                consumer.seek(TopicPartition(self.topic, partition), first[partition])
            if self.problem is not None:
                log.info("following topic", topic=self.topic, offsets=dict(first))
            self.problem = None
            while self._locate_broker() == servers and not self._has_more_partitions(consumer, len(spans)):
                batches: Mapping[Any, Sequence[Any]] = await consumer.getmany(timeout_ms=POLL_MS)
                records = [
                    FollowedRecord(record.partition, record.offset, record.key, record.value)
                    for batch in batches.values()
                    for record in batch
                ]
                if records:
                    await self._take(records)
                if self._passed is not None:
                    self._passed({each.partition: await consumer.position(each) for each in consumer.assignment()})
        finally:
            await consumer.stop()

    def _has_more_partitions(self, consumer: Any, followed: int) -> bool:
        return len(consumer.partitions_for_topic(self.topic) or ()) > followed


async def connect(
    connection: KafkaConnection | None,
    record_bytes: int,
    longest_fetch_ms: int = POLL_MS,
    skip: Skip = skip_none,
    *,
    committed: bool = True,
) -> LogConsumer:
    """A started consumer without group or topics. Raises KafkaError, OSError or LogUnavailable.

    A fetch that waits for records holds up other questions on the same connection, for `longest_fetch_ms` at most.
    """
    if connection is None:
        raise LogUnavailable(
            "no Kafka is known: start `thalweg up` on this data directory, or set THALWEG_KAFKA__BOOTSTRAP_SERVERS"
        )
    return await open_consumer(
        connection,
        client_id="thalweg-query",
        group_id=None,
        auto_offset_reset="none",
        max_partition_fetch_bytes=record_bytes,
        fetch_max_bytes=max(record_bytes, 50 * 1024 * 1024),
        fetch_max_wait_ms=longest_fetch_ms,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        metadata_max_age_ms=30_000,
        skip=skip,
        committed=committed,
    )


@asynccontextmanager
async def connected(
    connection: KafkaConnection | None, record_bytes: int, longest_fetch_ms: int = POLL_MS, skip: Skip = skip_none
) -> AsyncIterator[LogConsumer]:
    """A consumer as by `connect`, until the end of the block."""
    consumer = await connect(connection, record_bytes, longest_fetch_ms, skip)
    try:
        yield consumer
    finally:
        await consumer.stop()


async def spans_of(consumer: Any, topic: str) -> dict[int, Span]:
    """What each partition of the topic holds. Raises TopicMissing when there is no such topic."""
    spans = await spans_by_topic(consumer, (topic,))
    if topic not in spans:
        raise TopicMissing(missing(topic))
    return spans[topic]


async def spans_by_topic(consumer: Any, topics: Collection[str]) -> dict[str, dict[int, Span]]:
    """What each partition holds of those topics that are there: three requests, however many topics."""
    # `consumer.topics()` asks the same and keeps only the names; `partitions_for_topic` knows assigned topics only
    cluster = await consumer._client.fetch_all_metadata()  # noqa: SLF001
    there = sorted(cluster.topics().intersection(topics))
    partitions = [
        TopicPartition(topic, partition)
        for topic in there
        for partition in sorted(cluster.partitions_for_topic(topic) or ())
    ]
    beginnings = await consumer.beginning_offsets(partitions) if partitions else {}
    ends = await consumer.end_offsets(partitions) if partitions else {}
    spans: dict[str, dict[int, Span]] = {topic: {} for topic in there}
    for each in partitions:
        spans[each.topic][each.partition] = Span(beginnings[each], ends[each])
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
