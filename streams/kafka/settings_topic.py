"""The curation topic read to its end whenever asked, beside the agents: its settings count before the next document."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from kafka_client.async_clients import LogConsumer
from kafka_client.unreadable_batches import Skip
from schemas.kafka_connection import KafkaConnection
from streams.kafka.source_record import SourceRecord
from streams.runtime.progress import TopicPartition as Place
from streams.runtime.progress import Unreadable

AWAY = (KafkaError, OSError, TimeoutError)
_POLL_MS = 200


class SettingsTopic:
    """Partition 0 of a topic, from its beginning. `group` only keeps an offset; nobody joins it.

    Its methods raise one of AWAY while the broker does not answer, and may be called again. Between two calls nothing
    is fetched: a fetch that waits for records would hold up the question where the topic ends. A batch that cannot be
    read stands in `unreadable` until `skip` passes it by: nothing is indexed meanwhile, for nobody knows how.
    """

    def __init__(self, connection: KafkaConnection, topic: str, group: str, skip: Skip, unreadable: Unreadable) -> None:
        self._connection = connection
        self._partition = TopicPartition(topic, 0)
        self._group = group
        self._skip = skip
        self._unreadable = unreadable
        self._consumer: LogConsumer | None = None
        self._next = 0

    async def news(self) -> list[SourceRecord]:
        """The records since the last call that returned, up to the end as it is now. One request, if there are none."""
        try:
            consumer = await self._started()
            end = (await consumer.end_offsets([self._partition]))[self._partition]
            if end <= self._next:
                return []
            consumer.assign([self._partition])
            consumer.seek(self._partition, self._next)
            records: list[SourceRecord] = []
            while await consumer.position(self._partition) < end:
                with self._unreadable.noting(Place(*self._partition)):
                    batches = await consumer.getmany(self._partition, timeout_ms=_POLL_MS)
                records += [
                    SourceRecord(record.partition, record.offset, record.timestamp, record.key, record.value)
                    for record in batches.get(self._partition, ())
                ]
            self._next = await consumer.position(self._partition)
            consumer.unsubscribe()
        except AWAY:
            await self.close()
            raise
        return records

    async def judged_up_to(self) -> int:
        async with self._member() as consumer:
            return await consumer.committed(self._partition) or 0

    async def keep_judged(self, offset: int) -> None:
        async with self._member() as consumer:
            await consumer.commit({self._partition: offset})

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    async def _started(self) -> LogConsumer:
        if self._consumer is None:
            self._consumer = await self._new(None)
        return self._consumer

    @asynccontextmanager
    async def _member(self) -> AsyncIterator[LogConsumer]:
        """A consumer that may ask for and keep the group's offset; for the rare record that is refused."""
        consumer = await self._new(self._group)
        try:
            consumer.assign([self._partition])
            yield consumer
        finally:
            await consumer.stop()

    async def _new(self, group: str | None) -> LogConsumer:
        consumer = LogConsumer(
            connection=self._connection, group_id=group, auto_offset_reset="earliest", skip=self._skip
        )
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
        return consumer
