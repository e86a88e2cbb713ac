"""Orders to the worker from other processes: records of the curation topic, sent and followed."""

import time
from collections.abc import Iterator
from contextlib import closing

from kafka import TopicPartition

from kafka_client.sync_clients import open_consumer, open_producer
from schemas.settings import KafkaConnection

SEND_SECONDS = 30.0
POLL_MS = 500


def send_order(connection: KafkaConnection, topic: str, key: bytes, value: bytes) -> int:
    """Its offset, once the broker has confirmed it. Raises KafkaError."""
    with closing(open_producer(connection)) as producer:
        return int(producer.send(topic, value, key, partition=0).get(SEND_SECONDS).offset)


def follow_order(connection: KafkaConnection, topic: str, key: bytes, offset: int) -> Iterator[bytes | None]:
    """The value of every later record of this key; None about twice a second while there is no other."""
    with closing(open_consumer(connection)) as consumer:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek(place, offset + 1)
        while True:
            records = [each for batch in consumer.poll(timeout_ms=POLL_MS).values() for each in batch]
            found = [each.value for each in records if each.key == key]
            yield from found
            if not found:
                time.sleep(0 if records else POLL_MS / 1000)
                yield None
