"""The clients that write documents agree on a key's partition."""

from types import SimpleNamespace
from typing import Any

from aiokafka.partitioner import DefaultPartitioner as AiokafkaPartitioner
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import DefaultPartitioner as KafkaPythonPartitioner

from kafka_client.partitioner import murmur2_partition


@given(st.binary(max_size=200), st.integers(1, 64))
def test_both_clients_and_the_loader_put_a_key_into_the_same_partition(key: bytes, partitions: int) -> None:
    numbers = list(range(partitions))
    cluster: Any = SimpleNamespace(
        topics=lambda: {"documents"},
        partitions_for_topic=lambda _topic: set(numbers),
        available_partitions_for_topic=lambda _topic: set(numbers),
    )
    expected = murmur2_partition(partitions)(key)
    assert AiokafkaPartitioner()(key, numbers, numbers) == expected
    assert KafkaPythonPartitioner().partition("documents", key, key, None, None, cluster) == expected
