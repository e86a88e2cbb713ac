"""Following topics: one reader for each, without a group, from offsets of our own choosing, for as long as we live."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import structlog
from aiokafka.errors import KafkaError

from kafka_client.async_clients import POLL_MS, LocateBroker, connect
from kafka_client.security import AccessDenied
from kafka_client.topic_offsets import (
    LogUnavailable,
    Span,
    TopicPartition,
    spans_of,
)
from kafka_client.unreadable_batches import Skip, UnreadableBatch

log = structlog.get_logger(__name__)

LONGEST_FETCH_MS = 2_500  # of who follows only: a record ends it at once, and each fetch costs the broker and us
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 2.0


class FollowedRecord(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


Begin = Callable[[Mapping[int, Span]], Mapping[int, int]]
"""Called at every connection: the first offset to read of each partition. May raise LogUnavailable."""

Take = Callable[[Sequence[FollowedRecord]], Awaitable[None]]
"""Called with records in offset order within a partition; after a reconnection some may come again."""


@dataclass(eq=False)
class TopicFollower:
    """Hands every record of a topic to `take`, from where `begin` says, reconnecting forever. A batch that cannot be
    read, and that is not skipped, is a `problem`: what comes after it waits. `passed` is called with the next offset of
    each partition, also behind offsets that hold no record."""

    topic: str
    locate_broker: LocateBroker
    begin: Begin
    take: Take
    _: KW_ONLY
    record_bytes: int
    skip: Skip
    passed: Callable[[Mapping[int, int]], None] | None = None
    problem: str | None = "not connected yet"

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
        servers = self.locate_broker()
        consumer = await connect(servers, self.record_bytes, LONGEST_FETCH_MS, self.skip)
        try:
            spans = await spans_of(consumer, self.topic)
            first = self.begin(spans)
            consumer.assign([TopicPartition(self.topic, partition) for partition in spans])
            for partition in spans:
                consumer.seek(TopicPartition(self.topic, partition), first[partition])
            if self.problem is not None:
                log.info("following topic", topic=self.topic, offsets=dict(first))
            self.problem = None
            while self.locate_broker() == servers and not self._has_more_partitions(consumer, len(spans)):
                batches: Mapping[Any, Sequence[Any]] = await consumer.getmany(timeout_ms=POLL_MS)
                records = [
                    FollowedRecord(record.partition, record.offset, record.key, record.value)
                    for batch in batches.values()
                    for record in batch
                ]
                if records:
                    await self.take(records)
                if self.passed is not None:
                    self.passed({each.partition: await consumer.position(each) for each in consumer.assignment()})
        finally:
            await consumer.stop()

    def _has_more_partitions(self, consumer: Any, followed: int) -> bool:
        return len(consumer.partitions_for_topic(self.topic) or ()) > followed
