"""What the documents of a collection contributed last, read from the graph topic, which is compacted."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition

from streams.indexing.records import SourceRecord

_POLL_MS = 200


class ContributedRecords:
    """Partition 0 of the topic, with a consumer of its own for each reading, so that no group is disturbed.

    Raises KafkaError, OSError or TimeoutError while the broker does not answer.
    """

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._bootstrap_servers = bootstrap_servers
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
                batches = await consumer.getmany(self._partition, timeout_ms=_POLL_MS)
                for record in batches.get(self._partition, ()):
                    if record.offset < end:
                        yield SourceRecord(record.partition, record.offset, record.timestamp, record.key, record.value)

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap_servers, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        try:
            await consumer.start()
            consumer.assign([self._partition])
            yield consumer
        finally:
            await consumer.stop()
