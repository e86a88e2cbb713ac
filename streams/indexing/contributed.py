"""What the documents of a collection contributed last, read from the graph topic, which is compacted."""

from collections.abc import AsyncIterator, Mapping

from streams.kafka.partition_reader import PartitionReader
from streams.kafka.source_record import SourceRecord


class ContributedRecords:
    """Partition 0 of the topic, read anew each time. Raises what PartitionReader does."""

    def __init__(self, topic: PartitionReader) -> None:
        self._topic = topic

    async def newest(self, collection: str) -> Mapping[bytes, int]:
        """{key: offset} of the live contributions of a collection's documents, in the order of the topic."""
        prefix = f"{collection}/".encode("utf-8", "surrogatepass")
        found: dict[bytes, int] = {}
        async for record in self._topic.records():
            if record.key is not None and record.key.startswith(prefix):
                found.pop(record.key, None)
                if record.value is not None:
                    found[record.key] = record.offset
        return found

    async def read(self, offsets: Mapping[bytes, int]) -> AsyncIterator[SourceRecord]:
        """The records that `newest` named, in its order; without those that compaction has taken meanwhile."""
        async for record in self._topic.records():
            if record.key is not None and offsets.get(record.key) == record.offset:
                yield record
