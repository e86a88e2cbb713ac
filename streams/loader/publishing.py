"""Publishing records to the documents topic from a command, and following them until they are searchable."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Timer
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import CorruptRecordError, KafkaError

from kafka_client import sync_clients
from kafka_client.security import require_answer
from schemas.errors import Failure, Unreachable, complain
from schemas.ids import Position, format_positions
from schemas.receipts import NOTHING_DELETED, Receipt, decode_receipt, format_token
from schemas.settings import KafkaConnection, KafkaSettings
from schemas.topics import TopicNames
from streams.loader.sources import Record

ABSENT = "not there"
IN_FLIGHT_RECORDS = 1_000
IN_FLIGHT_BYTES = 32 * 1024 * 1024
SENT_TOGETHER_BYTES = 64 * 1024  # of a partition; the worker fetches so much at a time
SILENT_SECONDS = 3.0
CONNECT_MS = 40_000  # then a broker that does not answer is given up
CLOSE_SECONDS = 5.0
_POLL_MS = 500
_ADVICE = "Start one with 'thalweg up' or 'thalweg kafka'."
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
    """What became of the published records, by their receipts; `absent` are keys of deletes of unknown documents, which
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


@contextmanager
def announcing_a_wait(connection: KafkaConnection, after_seconds: float = SILENT_SECONDS) -> Iterator[None]:
    """Say on standard error what is waited for, where the block takes longer than that."""
    sentence = f"Waiting for the Kafka broker at {connection}, which does not answer. Ctrl-C ends the wait."
    announcement = Timer(after_seconds, complain, [sentence])
    announcement.daemon = True
    announcement.start()
    try:
        yield
    finally:
        announcement.cancel()


@contextmanager
def open_producer(kafka: KafkaSettings, connection: KafkaConnection) -> Iterator[KafkaProducer]:
    """An idempotent producer whose sends wait for all replicas. Raises Unreachable or AccessDenied."""
    with _reaching(connection):
        producer = sync_clients.open_producer(
            connection,
            connect_ms=CONNECT_MS,
            linger_ms=5,
            batch_size=SENT_TOGETHER_BYTES,
            max_request_size=kafka.max_record_bytes,
        )
    try:
        yield producer
    finally:
        producer.close(timeout=CLOSE_SECONDS)


@contextmanager
def open_receipts(kafka: KafkaSettings, connection: KafkaConnection) -> Iterator[KafkaConsumer]:
    """A consumer of all receipts from now on. Raises Unreachable or AccessDenied, and Failure where there is no such
    topic."""
    topic = TopicNames(kafka.topic_prefix).indexed
    with _reaching(connection):
        consumer = sync_clients.open_consumer(
            connection, connect_ms=CONNECT_MS, fetch_max_wait_ms=LONGEST_FETCH_MS, max_poll_records=IN_FLIGHT_RECORDS
        )
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        if not partitions:
            raise Failure(f"There is no topic {topic}; make the topics with 'thalweg topics create'.")
        consumer.assign(partitions)
        consumer.seek_to_end()
        for partition in partitions:
            consumer.position(partition)
        yield consumer
    finally:
        consumer.close()


@contextmanager
def _reaching(connection: KafkaConnection) -> Iterator[None]:
    with announcing_a_wait(connection):
        require_answer(connection, _ADVICE, seconds=CONNECT_MS / 1000)  # one try: kafka-python retries without end
        try:
            yield
        except (KafkaError, OSError) as error:
            raise Unreachable(f"No Kafka broker answers at {connection}. {_ADVICE}") from error


def publish(
    producer: KafkaProducer,
    topic: str,
    records: Iterable[Record],
    published: Published,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Send every record and wait for the broker's word on each; `published` grows as it goes.

    Raises Failure naming the record the broker refused. What was sent before stays sent.
    """
    waiting: list[tuple[Record, Any]] = []
    waiting_bytes = 0

    def settle() -> None:
        for record, sent in waiting:
            try:
                metadata = sent.get()
            except KafkaError as error:
                raise Failure(f"{record.origin}: the broker refused the record: {error}.") from error
            partition, offset = metadata.partition, metadata.offset
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
            sent = producer.send(
                topic,
                record.value,
                str(record.key).encode(),
                partition=record.partition,
                headers=list(record.headers),
            )
        except KafkaError as error:
            raise Failure(f"{record.origin}: the record cannot be sent: {error}.") from error
        waiting.append((record, sent))
        waiting_bytes += len(record.value or b"")
        if len(waiting) >= IN_FLIGHT_RECORDS or waiting_bytes >= IN_FLIGHT_BYTES:
            settle()
            waiting_bytes = 0
    settle()


def follow(
    receipts: KafkaConsumer,
    published: Published,
    advance: Callable[[Receipt], None] = lambda _receipt: None,
    *,
    timeout_seconds: float = 60.0,
) -> Followed:
    """Read receipts until there is one for everything published.

    Raises Failure when no receipt comes for `timeout_seconds`.
    """
    followed = Followed()
    missing = dict(published.reached)
    deadline = time.monotonic() + timeout_seconds
    while missing:
        try:
            batch = receipts.poll(timeout_ms=_POLL_MS)
        except CorruptRecordError as error:
            raise Failure(
                f"A receipt cannot be read: {error}. The records are safe in Kafka; 'thalweg status' says how far they "
                "are indexed."
            ) from error
        for messages in batch.values():
            for message in messages:
                receipt = decode_receipt(message.value)
                deadline = time.monotonic() + timeout_seconds
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
                f"Nothing was indexed for {timeout_seconds:.0f} s (waiting for {format_positions(missing)}). "
                "The records are safe in Kafka; is a worker running? See 'thalweg status'."
            )
    followed.settle()
    return followed
