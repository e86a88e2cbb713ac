"""What the documents of a collection contributed last, read from the graph topic, which is compacted."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiokafka import TopicPartition

from kafka_client.consumers import LogConsumer
from kafka_client.unreadable_batches import Skip, skip_none
from streams.indexing.records import SourceRecord
from streams.progress.partitions import TopicPartition as Place
from streams.progress.partitions import Unreadable

_POLL_MS = 200


class ContributedRecords:
    """Partition 0 of the topic, with a consumer of its own for each reading, so that no group is disturbed.

    Raises KafkaError, OSError or TimeoutError while the broker does not answer.
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, skip: Skip = skip_none, unreadable: Unreadable | None = None
    ) -> None:
        """A batch that cannot be read stands in `unreadable` until `skip` passes it by."""
        self._bootstrap_servers = bootstrap_servers
        self._skip = skip
        self._unreadable = Unreadable() if unreadable is None else unreadable
        self._partition = TopicPartition(topic, 0)

    async def newest(self, collection: str) -> Mapping[bytes, int]:
        """{key: offset} of the live contributions of a collection's documents, in the order of the topic."""
        prefix = f"{collection}/".encode("utf-8", "surrogatepass")
        found: dict[bytes, int] = {}
        async for record in self._all():
            if record.key is not None and record.key.startswith(prefix):
                found.pop(record.key, None)
                if record.value is not None:
                    found[record.key] = record.offset
        return found

    async def read(self, offsets: Mapping[bytes, int]) -> AsyncIterator[SourceRecord]:
        """The records that `newest` named, in its order; without those that compaction has taken meanwhile."""
        async for record in self._all():
            if record.key is not None and offsets.get(record.key) == record.offset:
                yield record

    async def _all(self) -> AsyncIterator[SourceRecord]:
        """From the beginning of the topic to the end it has now."""
        async with self._consumer() as consumer:
            end = (await consumer.end_offsets([self._partition]))[self._partition]
            await consumer.seek_to_beginning(self._partition)
            while await consumer.position(self._partition) < end:
                with self._unreadable.noting(Place(*self._partition)):
                    batches = await consumer.getmany(self._partition, timeout_ms=_POLL_MS)
                for record in batches.get(self._partition, ()):
                    if record.offset < end:
                        yield SourceRecord(record.partition, record.offset, record.timestamp, record.key, record.value)

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[LogConsumer]:
        consumer = LogConsumer(bootstrap_servers=self._bootstrap_servers, auto_offset_reset="earliest", skip=self._skip)
        try:
            await consumer.start()
            consumer.assign([self._partition])
            yield consumer
        finally:
            await consumer.stop()
