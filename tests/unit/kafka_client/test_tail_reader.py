"""A partition that is read on to its end, again and again."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from kafka_client.async_clients import TailReader
from kafka_client.topic_offsets import TopicPartition

PLACE = TopicPartition("orders", 0)


class OneTopic:
    """A consumer of a partition with a record at each of these offsets; it cannot read the one at `fails_at`."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = list(offsets)
        self.fails_at: int | None = None
        self.assigned: list[TopicPartition] = []
        self.fetches = 0
        self.at = 0

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {PLACE: max(self.offsets, default=-1) + 1}

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions

    def unsubscribe(self) -> None:
        self.assigned = []

    def seek(self, _place: TopicPartition, offset: int) -> None:
        self.at = offset

    async def position(self, _place: TopicPartition) -> int:
        return self.at

    async def getmany(self, place: TopicPartition, **_: Any) -> dict[TopicPartition, list[SimpleNamespace]]:
        self.fetches += 1
        offset = min(each for each in self.offsets if each >= self.at)
        if offset == self.fails_at:
            raise KafkaConnectionError
        self.at = offset + 1
        return {place: [SimpleNamespace(offset=offset)]}


async def offsets(tail: TailReader, topic: Any) -> list[int]:
    return [record.offset for record in await tail.read_on(topic)]


async def test_each_call_reads_from_the_last_one_to_the_end() -> None:
    topic, tail = OneTopic(0, 2, 3), TailReader(PLACE)
    assert await offsets(tail, topic) == [0, 2, 3]
    topic.offsets.append(7)
    assert await offsets(tail, topic) == [7]
    assert await offsets(tail, topic) == []
    assert (topic.fetches, topic.assigned, tail.next_offset) == (4, [], 8)


async def test_call_that_failed_is_repeated_from_its_beginning() -> None:
    topic, tail = OneTopic(0, 1, 2), TailReader(PLACE)
    topic.fails_at = 1
    with pytest.raises(KafkaConnectionError):
        await tail.read_on(topic)
    topic.fails_at = None
    assert await offsets(tail, topic) == [0, 1, 2]
