"""Publishing records to the documents topic from a command, and following them until they are searchable."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError

from kafka_client import async_clients
from kafka_client.async_clients import LogConsumer
from kafka_client.unreadable_batches import skip_all
from schemas.errors import Failure, Unreachable, complain
from schemas.ids import Position, format_positions
from schemas.kafka_connection import KafkaConnection
from schemas.receipts import NOTHING_DELETED, Receipt, decode_receipt
from schemas.settings import KafkaSettings
from schemas.tokens import format_token
from schemas.topics import TopicNames
from streams.loader.sources import Record

ABSENT = "not there"
IN_FLIGHT_RECORDS = 1_000
IN_FLIGHT_BYTES = 32 * 1024 * 1024
SENT_TOGETHER_BYTES = 64 * 1024  # of a partition; the worker fetches so much at a time
SILENT_SECONDS = 3.0  # a broker that stands still is given up after 40
LONGEST_FETCH_MS = 2_500  # a receipt ends it at once


@dataclass
class Published:
    """What was published so far: how many records, and each partition's first and last offset among them.

    `topic_id` is the cluster's id of the documents topic. `repeats` are positions of tombstones that were sent to
    further partitions: their receipts say nothing new.
    """

    topic_id: str = ""
    records: int = 0
    first: dict[int, int] = field(default_factory=dict)
    reached: dict[int, int] = field(default_factory=dict)
    repeats: set[Position] = field(default_factory=set)

    @property
    def token(self) -> str:
        return format_token(self.reached, self.topic_id)


@dataclass
class Followed:
    """What became of the published records, by their receipts; `absent` are keys of deletes that met no document, which
    `outcomes` counts under ABSENT and not as deleted, `noted` the receipts with notes."""

    outcomes: Counter[str] = field(default_factory=Counter)
    refused: list[Receipt] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    noted: list[Receipt] = field(default_factory=list)
    chunks: int = 0
    deleted_by_repeat: set[str] = field(default_factory=set)

    def take(self, receipt: Receipt) -> None:
        """Count what became of a record."""
        met_nothing = receipt.message == NOTHING_DELETED
        self.outcomes[ABSENT if met_nothing else receipt.outcome] += 1
        self.chunks += receipt.chunks
        if receipt.outcome == "dead_lettered":
            self.refused.append(receipt)
        if receipt.notes:
            self.noted.append(receipt)
        if met_nothing:
            self.absent.append(receipt.key)

    def take_repeat(self, receipt: Receipt) -> None:
        """Of two tombstones of a document the one that comes first finds it, which may be the repeated one."""
        if receipt.message != NOTHING_DELETED:
            self.deleted_by_repeat.add(receipt.key)

    def settle(self) -> None:
        """Count as deleted what only the repeated tombstone found."""
        for key in self.deleted_by_repeat.intersection(self.absent):
            self.absent.remove(key)
            self.outcomes.subtract([ABSENT])
            self.outcomes["deleted"] += 1
        self.outcomes = +self.outcomes


def _unreachable(connection: KafkaConnection) -> Unreachable:
    return Unreachable(f"No Kafka broker answers at {connection}. Start one with 'thalweg up' or 'thalweg kafka'.")


@contextmanager
def telling_of_a_wait(bootstrap_servers: str, after_seconds: float = SILENT_SECONDS) -> Iterator[None]:
    """Say on standard error what is waited for, where the block takes longer than that. On the event loop only."""
    sentence = f"Waiting for the Kafka broker at {bootstrap_servers}, which does not answer. Ctrl-C ends the wait."
    telling = asyncio.get_running_loop().call_later(after_seconds, complain, sentence)
    try:
        yield
    finally:
        telling.cancel()


@asynccontextmanager
async def open_producer(kafka: KafkaSettings, connection: KafkaConnection) -> AsyncIterator[AIOKafkaProducer]:
    """An idempotent producer whose sends wait for all replicas. Raises Unreachable."""
    try:
        with telling_of_a_wait(str(connection)):
            producer = await async_clients.open_producer(
                connection,
                enable_idempotence=True,
                linger_ms=5,
                max_batch_size=SENT_TOGETHER_BYTES,
                max_request_size=kafka.max_record_bytes,
            )
    except (KafkaConnectionError, OSError) as error:
        raise _unreachable(connection) from error
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def open_receipts(kafka: KafkaSettings, connection: KafkaConnection) -> AsyncIterator[LogConsumer]:
    """A consumer of all receipts from now on. Raises Unreachable, and Failure where there is no such topic."""
    topic = TopicNames(kafka.topic_prefix).indexed
    consumer = LogConsumer(topic, connection=connection, fetch_max_wait_ms=LONGEST_FETCH_MS, skip=skip_all)
    try:
        with telling_of_a_wait(str(connection)):
            await consumer.start()
    except (KafkaConnectionError, OSError) as error:
        await consumer.stop()
        raise _unreachable(connection) from error
    try:
        if not consumer.assignment():
            raise Failure(f"There is no topic {topic}; make the topics with 'thalweg topics create'.")
        await consumer.seek_to_end()
        for partition in consumer.assignment():
            await consumer.position(partition)
        yield consumer
    finally:
        await consumer.stop()


async def publish(
    producer: AIOKafkaProducer,
    topic: str,
    records: Iterable[Record],
    published: Published,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Send every record and wait for the broker's word on each; `published` grows as it goes.

    Raises Failure naming the record the broker refused. What was sent before stays sent.
    """
    waiting: list[tuple[Record, asyncio.Future[object]]] = []
    waiting_bytes = 0

    async def settle() -> None:
        for record, sent in waiting:
            try:
                metadata = await sent
            except KafkaError as error:
                raise Failure(f"{record.origin}: the broker refused the record: {error}.") from error
            partition, offset = metadata.partition, metadata.offset  # type: ignore[attr-defined]
            published.first.setdefault(partition, offset)
            published.reached[partition] = max(published.reached.get(partition, -1), offset)
            if record.partition is not None:
                published.repeats.add(Position(partition, offset))
                continue
            published.records += 1
            advance()
        waiting.clear()

    for record in records:
        try:
            sent = await producer.send(
                topic,
                record.value,
                key=str(record.key).encode(),
                partition=record.partition,
                headers=list(record.headers),
            )
        except KafkaError as error:
            raise Failure(f"{record.origin}: the record cannot be sent: {error}.") from error
        waiting.append((record, sent))
        waiting_bytes += len(record.value or b"")
        if len(waiting) >= IN_FLIGHT_RECORDS or waiting_bytes >= IN_FLIGHT_BYTES:
            await settle()
            waiting_bytes = 0
    await settle()


async def follow(
    receipts: LogConsumer,
    published: Published,
    advance: Callable[[Receipt], None] = lambda _receipt: None,
    *,
    patience_seconds: float = 60.0,
) -> Followed:
    """Read receipts until there is one for everything published.

    Raises Failure when no receipt comes for `patience_seconds`.
    """
    followed = Followed()
    missing = dict(published.reached)
    deadline = time.monotonic() + patience_seconds
    while missing:
        batch = await receipts.getmany(timeout_ms=500)
        for messages in batch.values():
            for message in messages:
                receipt = decode_receipt(message.value)
                deadline = time.monotonic() + patience_seconds
                first = published.first.get(receipt.partition, receipt.offset + 1)
                if not first <= receipt.offset <= published.reached.get(receipt.partition, -1):
                    continue
                if receipt.offset >= missing.get(receipt.partition, receipt.offset + 1):
                    del missing[receipt.partition]
                if (receipt.partition, receipt.offset) in published.repeats:
                    followed.take_repeat(receipt)
                else:
                    followed.take(receipt)
                    advance(receipt)
        if missing and time.monotonic() > deadline:
            raise Failure(
                f"Nothing was indexed for {patience_seconds:.0f} s (waiting for {format_positions(missing)}). "
                "The records are safe in Kafka; is a worker running? See 'thalweg status'."
            )
    followed.settle()
    return followed
