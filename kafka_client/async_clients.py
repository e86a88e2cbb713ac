"""aiokafka's clients, for event loops: consumers of committed records in whole batches, and producers."""

import asyncio
import copy
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.consumer.fetcher import READ_UNCOMMITTED
from aiokafka.errors import KafkaConnectionError

from kafka_client.security import aiokafka_options, require_access
from kafka_client.unreadable_batches import GuardedFetcher, Skip, UnreadableBatch, skip_none
from schemas.settings import KafkaConnection

READ_COMMITTED = "read_committed"
_POLL_MS = 200


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
            isolation_level=READ_COMMITTED if committed else "read_uncommitted",
            enable_auto_commit=False,
            **aiokafka_options(connection),
            **settings,
        )
        self._connection = connection
        self._skip = skip

    async def start(self) -> None:
        await _start(super(), self._connection)
        GuardedFetcher.guard(self, self._skip)

    async def stop(self) -> None:
        """Aborts its connections: it has nothing more to send (partitions are assigned to it, so it has no group to
        leave), and TLS ends in order only after the answer in flight, with uvloop after 30 s
        (https://github.com/MagicStack/uvloop/issues/471)."""
        if self._fetcher is not None:
            await self._fetcher.close()  # or it takes the end for a fault
        for connection in self._client._conns.values():  # noqa: SLF001 -- aiokafka only ends them in order
            if connection._writer is not None:  # noqa: SLF001
                connection._writer.transport.abort()  # noqa: SLF001
        await super().stop()

    async def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The offset after the last record, also of an open transaction."""
        fetcher = copy.copy(self._fetcher)
        fetcher._isolation_level = READ_UNCOMMITTED  # noqa: SLF001 -- aiokafka asks in one way for all
        found: Mapping[TopicPartition, int] = await fetcher.end_offsets(partitions, None)
        return found


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
