"""kafka-python's clients of the embedded brokers, and damage done to a broker's log."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aiokafka.record.util import calc_crc32c
from kafka import KafkaProducer, TopicPartition

from kafka_client import sync_clients
from kafka_client.log_identity import id_of
from schemas.settings import MIB, KafkaConnection

SECONDS = 60.0
LARGEST = 32 * MIB

Damage = Literal["checksum", "codec", "content"]

_CRC, _ATTRIBUTES, _RECORDS = 17, 21, 61  # where they begin in a batch of version 2
_UNKNOWN_CODEC = 7


class Sent(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def plaintext(bootstrap_servers: str) -> KafkaConnection:
    return KafkaConnection(bootstrap_servers=bootstrap_servers)


def topic_id(servers: str, name: str) -> str:
    with closing(sync_clients.AdminClient(plaintext(servers))) as admin:
        return id_of(admin.describe_topics([name])[0])


@contextmanager
def open_producer(servers: str, **settings: Any) -> Iterator[KafkaProducer]:
    settings = {"linger_ms": 5, "max_request_size": LARGEST} | settings
    with closing(sync_clients.open_producer(plaintext(servers), **settings)) as producer:
        yield producer


def send_with(producer: KafkaProducer, topic: str, records: Iterable[Sent]) -> list[tuple[int, int]]:
    """The position of each record, once all are confirmed."""
    sent = [
        producer.send(topic, each.value, each.key, list(each.headers), each.partition, each.timestamp_ms)
        for each in records
    ]
    producer.flush(SECONDS)
    confirmed = [future.get(SECONDS) for future in sent]
    return [(each.partition, each.offset) for each in confirmed]


def send(servers: str, topic: str, *records: Sent, **settings: Any) -> list[tuple[int, int]]:
    with open_producer(servers, **settings) as producer:
        return send_with(producer, topic, records)


def send_batches(servers: str, topic: str, *batches: Sequence[Sent], codec: str) -> list[int]:
    """Each list as one batch; the first offset of each."""
    with open_producer(servers, compression_type=codec, linger_ms=10_000) as producer:
        return [send_with(producer, topic, batch)[0][1] for batch in batches]


def read_all(servers: str, topic: str, start: int = 0) -> list[Any]:
    """Every committed record that each partition of the topic holds now from an offset on."""
    with closing(sync_clients.open_consumer(plaintext(servers), auto_offset_reset="earliest")) as consumer:
        places = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        for place, beginning in consumer.beginning_offsets(places).items():
            consumer.seek(place, max(start, beginning))
        records: list[Any] = []
        while any(consumer.position(place) < ends[place] for place in places):
            for batch in consumer.poll(timeout_ms=500).values():
                records += batch
        return records


def damage_batch(data_dir: Path, topic: str, partition: int, offset: int, how: Damage) -> tuple[int, int]:
    """Damage the batch on disk that holds the offset, as a bad disk or a wrong copy would; its first and last offset.

    The broker does not look into batches that it hands out, and sends them from the file: it may go on running.
    `checksum` changes a byte; `codec` names one that nobody knows and `content` puts in bytes that are no records, both
    under a right checksum.
    """
    segment = data_dir / "kafka" / "log" / f"{topic}-{partition}" / f"{0:020}.log"
    log = bytearray(segment.read_bytes())
    start = 0
    while True:
        first, length = struct.unpack_from(">qi", log, start)
        (delta,) = struct.unpack_from(">i", log, start + 23)
        if first <= offset <= first + delta:
            break
        start += 12 + length
    end = start + 12 + length
    if how == "checksum":
        log[end - 1] ^= 0xFF
    else:
        if how == "codec":
            log[start + _ATTRIBUTES + 1] |= _UNKNOWN_CODEC
        else:
            log[start + _RECORDS : end] = b"\xff" * (end - start - _RECORDS)
        struct.pack_into(">I", log, start + _CRC, calc_crc32c(bytes(log[start + _ATTRIBUTES : end])))
    with segment.open("r+b") as file:
        file.seek(start)
        file.write(log[start:end])
    return first, first + delta
