"""Following topics: one reader for each, without a group, from offsets of our own choosing, for as long as we live."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
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
FETCH_BYTES = 1024 * 1024
CATCH_UP_SECONDS = 2.0
ANSWER_SECONDS = 20.0


class FollowedRecord(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0


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
                    FollowedRecord(record.partition, record.offset, record.key, record.value, record.timestamp)
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


class FoldedTopic(ABC):
    """A topic of one partition that is read from its beginning, and then followed: a class of its
    own keeps what it says, in `_take` and `_forget`."""

    def __init__(self, topic: str, locate_broker: LocateBroker, skip: Skip) -> None:
        self.reached = -1
        """The last offset up to which the topic was read."""
        self._first_end: int | None = None
        self._moved = asyncio.Event()
        self._follower = TopicFollower(
            topic, locate_broker, self._begin, self._take, record_bytes=FETCH_BYTES, skip=skip, passed=self._pass
        )

    async def run(self) -> None:
        await self._follower.run()

    @abstractmethod
    async def _take(self, records: Sequence[FollowedRecord]) -> None:
        """Keep what they say, and call `_reach` with the offset of the last."""

    @abstractmethod
    def _forget(self) -> None:
        """Nothing that was read holds: the topic was made again."""

    @property
    def was_reached(self) -> bool:
        """Whether the topic was read to where it ended when it was first reached."""
        return self._first_end is not None and self.reached >= self._first_end - 1

    @property
    def problem(self) -> str | None:
        """Why the topic cannot be followed just now."""
        return self._follower.problem

    async def wait_for(self, offset: int, seconds: float) -> bool:
        """Until the record at `offset` was read; False where it was not in time."""
        try:
            async with asyncio.timeout(seconds):
                while self.reached < offset:
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    async def read_to(self, end: int) -> None:
        """Until every record before this offset was read. Raises LogUnavailable."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while not await self.wait_for(end - 1, CATCH_UP_SECONDS):
            if self.problem is not None or time.monotonic() > deadline:
                raise LogUnavailable(self.problem or f"it was not read to its end within {ANSWER_SECONDS:g} s")

    async def wait_until_reached(self) -> bool:
        """`was_reached`, after a moment where the service has just begun."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while not self.was_reached:
                    await self._moved.wait()
        return self.was_reached

    def _begin(self, spans: Mapping[int, Span]) -> Mapping[int, int]:
        """From the beginning. A topic that ends before what was read of it was made again: nothing of it holds."""
        if spans[0].end <= self.reached:
            self._first_end, self.reached = None, -1
            self._forget()
        if self._first_end is None:
            self._first_end = spans[0].end
            self._reach(self.reached)
        return {partition: span.beginning for partition, span in spans.items()}

    def _pass(self, positions: Mapping[int, int]) -> None:
        """The last offsets may hold no record: the end of a transaction, for one."""
        if positions[0] - 1 > self.reached:
            self._reach(positions[0] - 1)

    def _reach(self, offset: int) -> None:
        self.reached = max(self.reached, offset)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
