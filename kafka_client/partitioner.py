"""Which partition a key belongs to, as Kafka's clients have it by default."""

from collections.abc import Callable
from functools import lru_cache

from kafka.partitioner.default import murmur2

_REMEMBERED_KEYS = 4_096


def murmur2_partition(partitions: int) -> Callable[[bytes], int]:
    """The partition of each key in a topic of so many: murmur2 without its sign, modulo the number, as the Java client,
    kafka-python and aiokafka have it."""

    @lru_cache(_REMEMBERED_KEYS)
    def partition_of(key: bytes) -> int:
        return int(murmur2(key) & 0x7FFFFFFF) % partitions

    return partition_of
