"""What a reader of a real log gets: committed records, all that can be read, and a word on what cannot."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition

from kafka_client.async_clients import LogConsumer, unreadable_at
from kafka_client.skipped_batches import SkippedBatches
from kafka_client.unreadable_batches import Skip, UnreadableBatch, skip_all, skip_none
from schemas.dead_letters import Extent, encode_skip, skip_key
from schemas.topics import TopicSpec
from streams.embedded_kafka.broker import EmbeddedKafka
from streams.kafka.topics import ensure_topics
from tests.support.kafka import Damage, Sent, damage_batch, plaintext, send, send_batches


class Broker(NamedTuple):
    servers: str
    data_dir: Path


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    data_dir = tmp_path_factory.mktemp("kafka")
    with EmbeddedKafka(data_dir) as running:
        yield Broker(running.bootstrap_servers, data_dir)


@pytest.fixture
async def topic(broker: Broker) -> str:
    """With two partitions; beside it, one of orders."""
    name = f"log-{uuid4().hex[:8]}"
    specs = [TopicSpec(name, 2, {}), TopicSpec(f"{name}.orders", 1, {"cleanup.policy": "compact"})]
    await ensure_topics(plaintext(broker.servers), specs)
    return name


def append(broker: Broker, topic: str, partition: int, *batches: Sequence[str]) -> None:
    """Each list as one batch."""
    made = [[Sent(value.encode(), value.encode(), partition=partition) for value in values] for values in batches]
    send_batches(broker.servers, topic, *made, codec="zstd")


@asynccontextmanager
async def reader(broker: Broker, topic: str, *partitions: int, skip: Skip = skip_none) -> AsyncIterator[LogConsumer]:
    consumer = LogConsumer(connection=plaintext(broker.servers), auto_offset_reset="earliest", skip=skip)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, partition) for partition in partitions])
        yield consumer
    finally:
        await consumer.stop()


async def read(consumer: LogConsumer, into: list[str], count: int, *, past: UnreadableBatch | None = None) -> None:
    """Append what comes, until there is so much. Raises UnreadableBatch, but for the batch `past`."""
    async with asyncio.timeout(20):
        while len(into) < count:
            try:
                batches = await consumer.getmany(timeout_ms=200)
            except UnreadableBatch as error:
                if past is None or error.first != past.first:
                    raise
                continue
            for records in batches.values():
                into += [record.value.decode() for record in records]


@pytest.mark.parametrize("how", ["checksum", "codec", "content"])
async def test_reader_names_the_unreadable_batch_and_returns_the_rest(broker: Broker, topic: str, how: Damage) -> None:
    append(broker, topic, 0, ["a", "b"], ["c", "d", "e"], ["f"])
    append(broker, topic, 1, ["g", "h"], ["i"])
    assert damage_batch(broker.data_dir, topic, 0, 3, how) == (2, 4)
    values: list[str] = []
    async with reader(broker, topic, 0, 1) as consumer:
        with pytest.raises(UnreadableBatch) as met:
            await read(consumer, values, 7)
        batch = met.value
        assert (batch.topic, batch.partition, batch.first, batch.last, batch.fault) == (topic, 0, 2, 4, how)
        assert f"thalweg dead-letters skip {topic} 0:2" in str(batch)
        append(broker, topic, 1, ["j"])
        await read(consumer, values, 6, past=batch)
    assert sorted(values) == ["a", "b", "g", "h", "i", "j"]
    async with reader(broker, topic, 0, skip=skip_all) as consumer:
        values = []
        await read(consumer, values, 3)
    assert values == ["a", "b", "f"]


async def test_skip_order_lets_readers_pass_one_unreadable_batch(broker: Broker, topic: str) -> None:
    append(broker, topic, 0, ["a"], ["b", "c"], ["d"], ["e"])
    for offset in (1, 4):
        damage_batch(broker.data_dir, topic, 0, offset, "checksum")
    place = TopicPartition(topic, 0)
    assert await unreadable_at(plaintext(broker.servers), place, 0, seconds=10) is None  # a record stands there
    found = await unreadable_at(plaintext(broker.servers), place, 1, seconds=10)
    assert found is not None
    skipped = SkippedBatches(lambda: plaintext(broker.servers), f"{topic}.orders")
    values: list[str] = []
    async with reader(broker, topic, 0, skip=skipped) as consumer:
        with pytest.raises(UnreadableBatch):
            await read(consumer, values, 3)
        order = Extent(topic, 0, found.first, found.last)
        send(broker.servers, f"{topic}.orders", Sent(skip_key(order), encode_skip(order, found.fault)))
        await read(consumer, values, 2, past=found)
        assert values == ["a", "d"]
        with pytest.raises(UnreadableBatch) as met:
            await read(consumer, values, 3)
        assert met.value.first == 4


async def test_records_of_open_or_aborted_transactions_are_not_read(broker: Broker, topic: str) -> None:
    place = TopicPartition(topic, 0)
    producer = AIOKafkaProducer(bootstrap_servers=broker.servers, transactional_id=uuid4().hex)
    await producer.start()
    values: list[str] = []
    try:
        async with reader(broker, topic, 0) as consumer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"committed", b"k", partition=0)
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted", b"k", partition=0)
            await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"open", b"k", partition=0)
            await read(consumer, values, 1)
            assert values == ["committed"]
            assert (await consumer.end_offsets([place]), await consumer.high_watermarks([place])) == (
                {place: 4},
                {place: 5},
            )
            await eventually_at(consumer, place, 4)
            await producer.commit_transaction()
            await read(consumer, values, 2)
            assert values == ["committed", "open"]
    finally:
        await producer.stop()


async def eventually_at(consumer: LogConsumer, place: TopicPartition, offset: int) -> None:
    async with asyncio.timeout(20):
        while await consumer.position(place) < offset:
            assert not await consumer.getmany(timeout_ms=100)
