"""Reading a partition from an offset to the end it has now, without a group."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import TopicPartition

from kafka_client.async_clients import LogConsumer
from kafka_client.unreadable_batches import Skip, skip_none
from schemas.kafka_connection import KafkaConnection
from streams.kafka.source_record import SourceRecord
from streams.runtime.progress import TopicPartition as Place
from streams.runtime.progress import Unreadable

_POLL_MS = 200


class PartitionReader:
    """One partition, read with consumers of its own so that no group is disturbed. Only committed records are seen.

    Raises KafkaError, OSError or TimeoutError while the broker does not answer.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        topic: str,
        partition: int,
        skip: Skip = skip_none,
        unreadable: Unreadable | None = None,
    ) -> None:
        """A batch that cannot be read stands in `unreadable` until `skip` passes it by."""
        self._connection = connection
        self._skip = skip
        self._unreadable = Unreadable() if unreadable is None else unreadable
        self._partition = TopicPartition(topic, partition)

    async def records(self, start: int = 0) -> AsyncIterator[SourceRecord]:
        """The records from an offset on, or from the first one there is, to the end the partition has now."""
        async with self._consumer() as consumer:
            end = (await consumer.end_offsets([self._partition]))[self._partition]
            beginning = (await consumer.beginning_offsets([self._partition]))[self._partition]
            consumer.seek(self._partition, min(max(start, beginning), end))
            while await consumer.position(self._partition) < end:
                with self._unreadable.noting(Place(*self._partition)):
                    batches = await consumer.getmany(self._partition, timeout_ms=_POLL_MS)
                for record in batches.get(self._partition, ()):
                    if record.offset < end:
                        yield SourceRecord(record.partition, record.offset, record.timestamp, record.key, record.value)

    async def end(self) -> int:
        """The offset the next record gets."""
        async with self._consumer() as consumer:
            ends = await consumer.end_offsets([self._partition])
        return int(ends[self._partition])

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[LogConsumer]:
        consumer = LogConsumer(connection=self._connection, auto_offset_reset="earliest", skip=self._skip)
        try:
            await consumer.start()
            consumer.assign([self._partition])
            yield consumer
        finally:
            await consumer.stop()
