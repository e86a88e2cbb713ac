"""A partition that is read on to its end, again and again, by readers who want all that is there."""

from typing import Any

from kafka_client.async_clients import LogConsumer, read_range
from kafka_client.topic_offsets import TopicPartition


class TailReader:
    """`next_offset` is where the next call begins: after one that failed, where that one did."""

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
