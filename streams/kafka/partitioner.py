"""Where Kafka's default partitioner puts a key, and whether a topic still has as many partitions as it had."""

import asyncio
from collections.abc import Callable
from functools import lru_cache

from kafka.partitioner.default import murmur2

from schemas.errors import Failure
from schemas.kafka_connection import KafkaConnection
from schemas.topics import TopicSpec
from streams.errors import RestartNeeded
from streams.kafka.topics import inspect_topics

LOOK_SECONDS = 10.0
_REMEMBERED_KEYS = 4_096


class PartitionsAdded(RestartNeeded):
    """The documents topic has more partitions than when the worker started: it follows them from its next start on."""


def murmur2_partition(partitions: int) -> Callable[[bytes], int]:
    """The partition of each key in a topic of so many: murmur2 without its sign, modulo the number, as the Java client,
    kafka-python and aiokafka have it by default."""

    @lru_cache(_REMEMBERED_KEYS)
    def partition_of(key: bytes) -> int:
        return int(murmur2(key) & 0x7FFFFFFF) % partitions

    return partition_of


async def watch_partitions(connection: KafkaConnection, topic: str, partitions: int) -> None:
    """Look for ever; a broker that is away is asked again. Raises PartitionsAdded."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            (report,) = await inspect_topics(connection, [TopicSpec(topic, partitions, {})])
        except Failure:
            continue
        if report.partitions > partitions:
            raise PartitionsAdded(
                f"{topic} now has {report.partitions} partitions and had {partitions}: the worker starts again to "
                "follow them."
            )
