"""aiokafka's clients, for event loops: consumers of committed records in whole batches, and producers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from kafka_client import client_internals
from kafka_client.security import aiokafka_options, require_access
from kafka_client.topic_offsets import LogUnavailable, TopicPartition
from kafka_client.unreadable_batches import Skip, UnreadableBatch, skip_none
from schemas.settings import KafkaConnection

POLL_MS = 500
REQUEST_TIMEOUT_MS = 10_000
_POLL_MS = 200

LocateBroker = Callable[[], KafkaConnection | None]
"""The cluster to use now, or None while no Kafka is known. Asked again at every connection."""


class LogConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka is not typed
    """Reads committed records only; `end_offsets` is the last stable offset of each partition. No automatic commits.
    With `committed=False` it reads those of open and of aborted transactions too.

    `getmany` raises UnreadableBatch at an unreadable batch that is not skipped: records before it have been returned,
    other partitions lose nothing, and the next call raises again.
    """

    def __init__(
        self,
        *topics: str,
        connection: KafkaConnection,
        skip: Skip = skip_none,
        committed: bool = True,
        **settings: Any,
    ) -> None:
        """`settings` are those of aiokafka."""
        super().__init__(
            *topics,
            isolation_level="read_committed" if committed else "read_uncommitted",
            enable_auto_commit=False,
            **aiokafka_options(connection),
            **settings,
        )
        self._connection = connection
        self._skip = skip

    async def start(self) -> None:
        await _start(super(), self._connection)
        client_internals.GuardedFetcher.guard(self, self._skip)

    async def stop(self) -> None:
        """Aborts its connections: it has nothing more to send (partitions are assigned to it, so it has no group to
        leave), and TLS ends in order only after the answer in flight, with uvloop after 30 s
        (https://github.com/MagicStack/uvloop/issues/471)."""
        await client_internals.abort_connections(self)
        await super().stop()

    async def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The offset after the last record, also of an open transaction."""
        return await client_internals.end_offsets_uncommitted(self, partitions)


async def open_consumer(
    connection: KafkaConnection, *, skip: Skip = skip_none, committed: bool = True, **settings: Any
) -> LogConsumer:
    """A started consumer without topics. Raises KafkaError or OSError; AccessDenied where waiting does not help."""
    consumer = LogConsumer(connection=connection, skip=skip, committed=committed, **settings)
    try:
        await consumer.start()
    except BaseException:
        await consumer.stop()
        raise
    return consumer


@asynccontextmanager
async def open_reader(
    connection: KafkaConnection, *, skip: Skip = skip_none, **settings: Any
) -> AsyncIterator[LogConsumer]:
    """A consumer as by `open_consumer` that starts at the first record, until the end of the block."""
    consumer = await open_consumer(connection, skip=skip, auto_offset_reset="earliest", **settings)
    try:
        yield consumer
    finally:
        await consumer.stop()


async def connect(
    connection: KafkaConnection | None,
    record_bytes: int,
    longest_fetch_ms: int = POLL_MS,
    skip: Skip = skip_none,
    *,
    committed: bool = True,
) -> LogConsumer:
    """A consumer as by `open_consumer`, without a group, for those who live on without a broker. Raises LogUnavailable
    where none is known, too.

    A fetch that waits for records holds up other questions on the same connection, for `longest_fetch_ms` at most.
    """
    if connection is None:
        raise LogUnavailable(
            "no Kafka is known: start `thalweg up` on this data directory, or set THALWEG_KAFKA__BOOTSTRAP_SERVERS"
        )
    return await open_consumer(
        connection,
        client_id="thalweg",
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


async def open_producer(connection: KafkaConnection, **settings: Any) -> AIOKafkaProducer:
    """A started producer whose sends wait for all replicas; raises as `open_consumer` does."""
    producer = AIOKafkaProducer(acks="all", **aiokafka_options(connection), **settings)
    try:
        await _start(producer, connection)
    except BaseException:
        await producer.stop()
        raise
    return producer


async def _start(client: Any, connection: KafkaConnection) -> None:
    try:
        await client.start()
    except KafkaConnectionError:
        await require_access(connection)
        raise


async def read_range(
    consumer: AIOKafkaConsumer, partition: TopicPartition, first: int, end: int, *, most_at_once: int | None = None
) -> AsyncGenerator[Any, None]:
    """The records of a partition from offset `first` on and before `end`. It is the only one assigned then.

    Raises UnreadableBatch, KafkaError or OSError.
    """
    consumer.assign([partition])
    consumer.seek(partition, first)
    while await consumer.position(partition) < end:
        batches = await consumer.getmany(partition, timeout_ms=_POLL_MS, max_records=most_at_once)
        for record in batches.get(partition, ()):
            if record.offset < end:
                yield record


class TailReader:
    """A partition that is read on to its end, again and again. `next_offset` is where the next call begins: after one
    that failed, where that one did."""

    def __init__(self, partition: TopicPartition, next_offset: int = 0) -> None:
        self.partition = partition
        self.next_offset = next_offset

    async def read_on(self, consumer: LogConsumer) -> list[Any]:
        """The records since the last call that returned, to the end as it is now. One request, if there are none.

        Leaves nothing assigned: a fetch that waits for records would delay the next request for the end. Raises
        UnreadableBatch, KafkaError or OSError.
        """
        end = (await consumer.end_offsets([self.partition]))[self.partition]
        if end <= self.next_offset:
            return []
        records = [record async for record in read_range(consumer, self.partition, self.next_offset, end)]
        consumer.unsubscribe()
        self.next_offset = end
        return records


async def unreadable_at(
    connection: KafkaConnection,
    partition: TopicPartition,
    offset: int,
    *,
    seconds: float,
    skip: Skip = skip_none,
    to_the_end: bool = False,
) -> UnreadableBatch | None:
    """The unreadable batch that a reader meets next from this offset on, or None. It looks up to the first record, or
    past all of them `to_the_end`.

    Raises KafkaError, OSError or TimeoutError.
    """
    async with asyncio.timeout(seconds), open_reader(connection, group_id=None, skip=skip) as consumer:
        try:
            end = (await consumer.end_offsets([partition]))[partition]
            most_at_once = None if to_the_end else 1
            async for _ in read_range(consumer, partition, offset, end, most_at_once=most_at_once):
                if not to_the_end:
                    break
        except UnreadableBatch as found:
            return found
    return None
