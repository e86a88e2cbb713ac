"""A partition read to the end it has now, beside the agents: without a group, by consumers of its own."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from aiokafka.errors import KafkaError

from kafka_client.async_clients import LogConsumer, TailReader, open_reader, read_range
from kafka_client.topic_offsets import Span, TopicPartition, first_offsets, spans_at
from kafka_client.unreadable_batches import Skip, skip_none
from schemas.settings import KafkaConnection
from streams.kafka.records import SourceRecord
from streams.runtime.partition_progress import Unreadable

AWAY = (KafkaError, OSError, TimeoutError)


class PartitionReader:
    """Reads committed records of one partition. Methods raise one of AWAY while the broker does not answer, and may be
    called again.

    A batch that cannot be read is in `unreadable` until it is skipped.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        topic: str,
        partition: int,
        skip: Skip = skip_none,
        unreadable: Unreadable | None = None,
    ) -> None:
        self._connection = connection
        self._partition = TopicPartition(topic, partition)
        self._skip = skip
        self._unreadable = Unreadable() if unreadable is None else unreadable

    async def records(self, start: int = 0, since_ms: int = 0) -> AsyncGenerator[SourceRecord, None]:
        """The records from an offset on, or from the first one there is, to the end the partition has now; without
        those before the first one of that time or later."""
        topic, number = self._partition
        async with self._consumer() as consumer:
            span = await self._span(consumer)
            if since_ms:
                start = max(start, (await first_offsets(consumer, topic, {number: span}, since_ms))[number])
            first, end = span.after(start - 1)
            with self._unreadable.noting(self._partition):
                async for record in read_range(consumer, self._partition, first, end):
                    yield SourceRecord.from_kafka(record)

    async def beginning(self) -> int:
        """The first offset there is: above 0 where records were deleted, not where compaction took some."""
        async with self._consumer() as consumer:
            return (await self._span(consumer)).beginning

    async def end(self) -> int:
        """The offset the next record gets."""
        async with self._consumer() as consumer:
            return (await self._span(consumer)).end

    async def _span(self, consumer: LogConsumer) -> Span:
        return (await spans_at(consumer, [self._partition]))[self._partition]

    def _consumer(self, group: str | None = None) -> AbstractAsyncContextManager[LogConsumer]:
        return open_reader(self._connection, group_id=group, skip=self._skip)


class SettingsTopic(PartitionReader):
    """Partition 0 of the curation topic: its settings count before the next document. `group` only stores an offset;
    nobody joins it.

    While a batch cannot be read nothing is indexed, since the settings are not known.
    """

    def __init__(self, connection: KafkaConnection, topic: str, group: str, skip: Skip, unreadable: Unreadable) -> None:
        super().__init__(connection, topic, 0, skip, unreadable)
        self._group = group
        self._reading: LogConsumer | None = None
        self._opened = AsyncExitStack()
        self._tail = TailReader(self._partition)

    async def new_records(self) -> list[SourceRecord]:
        """The records since the last call that returned, up to the end as it is now. One request, if there are none."""
        try:
            if self._reading is None:
                self._reading = await self._opened.enter_async_context(self._consumer())
            with self._unreadable.noting(self._partition):
                return [SourceRecord.from_kafka(record) for record in await self._tail.read_on(self._reading)]
        except AWAY:
            await self.close()
            raise

    async def checked_offset(self) -> int:
        async with self._consumer(self._group) as consumer:
            consumer.assign([self._partition])
            return await consumer.committed(self._partition) or 0

    async def store_checked_offset(self, offset: int) -> None:
        async with self._consumer(self._group) as consumer:
            consumer.assign([self._partition])
            await consumer.commit({self._partition: offset})

    async def close(self) -> None:
        self._reading = None
        await self._opened.aclose()
