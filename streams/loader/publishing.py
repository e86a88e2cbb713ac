"""Where the records of a command go: the port, and the documents topic itself, followed until they are searchable."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Timer
from typing import Any, Protocol

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import CorruptRecordError, KafkaError

from kafka_client import sync_clients
from kafka_client.partitioner import murmur2_partition
from kafka_client.security import require_answer
from schemas.errors import Failure, Unreachable, complain
from schemas.ids import Position, format_positions
from schemas.progress_bars import Bars
from schemas.receipts import NOTHING_DELETED, UNKNOWN_FIELDS, Receipt, decode_receipt, format_token
from schemas.runtime import find_running
from schemas.settings import KafkaConnection, KafkaSettings
from schemas.topics import TopicNames
from streams.loader.folders import KnownDocument, Refused
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
    further partitions: their receipts say nothing new. `began_seconds` is when the first record was sent, by the
    monotonic clock.
    """

    began_seconds: float = field(default_factory=time.monotonic)
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
    `outcomes` counts under ABSENT and not as deleted, `noted` keys with the notes of their receipts,
    but for unknown fields, which a load counts itself, `of_keys` {key: outcome}."""

    outcomes: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    noted: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    chunks: int = 0
    of_keys: dict[str, str] = field(default_factory=dict)
    deleted_by_repeat: set[str] = field(default_factory=set)

    def take(self, receipt: Receipt) -> None:
        """Count what became of a record."""
        met_nothing = receipt.message == NOTHING_DELETED
        outcome = ABSENT if met_nothing else receipt.outcome
        self.outcomes[outcome] += 1
        self.of_keys[receipt.key] = outcome
        self.chunks += receipt.chunks
        if receipt.outcome == "dead_lettered":
            self.refused.append(Refused(receipt.key, receipt.reason or "unknown", receipt.message or ""))
        notes = tuple(note for note in receipt.notes if not note.startswith(UNKNOWN_FIELDS))
        if notes:
            self.noted.append((receipt.key, notes))
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
            self.of_keys[key] = "deleted"
        self.outcomes = +self.outcomes


class Publisher(Protocol):
    """Where records go, and what is there already. Everything may be done twice: the same rows come of it."""

    def send(
        self, records: Iterable[Record], published: Published, bars: Bars, patience_seconds: float | None
    ) -> Followed:
        """Send every record in order, and follow them until they are searchable; None as the patience follows nothing.

        `published` grows as it goes, and holds after a failure what was confirmed before. Raises Unreachable where
        nothing answers, and Failure when nothing happens for `patience_seconds`.
        """
        ...

    def documents(self, collection: str) -> list[KnownDocument]:
        """The live documents of the collection, as the stores have them. Raises Failure where they are not known."""
        ...

    def collections_with(self, document_id: str) -> list[str]:
        """The collections in which a document of this id is live; none where the stores are not known."""
        ...


@dataclass(frozen=True)
class KafkaPublisher:
    """Sends to the documents topic, and reads the receipts. What is there it reads in the data directory's stores."""

    kafka: KafkaSettings
    connection: KafkaConnection
    data_dir: Path

    def send(
        self, records: Iterable[Record], published: Published, bars: Bars, patience_seconds: float | None
    ) -> Followed:
        try:
            return self._send(records, published, bars, patience_seconds)
        except KafkaError as error:
            raise Unreachable(f"Kafka went away at {self.connection} ({type(error).__name__}).") from error

    def _send(
        self, records: Iterable[Record], published: Published, bars: Bars, patience_seconds: float | None
    ) -> Followed:
        from streams.kafka.stores_log import own_documents_topic  # the stores' manifest, which --url does not need

        documents = TopicNames(self.kafka.topic_prefix).documents
        followed = Followed()
        with (
            open_receipts(self.kafka, self.connection) as receipts,
            open_producer(self.kafka, self.connection) as producer,
        ):
            topic = asyncio.run(own_documents_topic(self.connection, self.kafka, self.data_dir))
            published.topic_id = topic.topic_id
            sent = bars("published")
            published.began_seconds = time.monotonic()
            everywhere = with_repeated_tombstones(records, self.data_dir, topic.partitions)
            publish(producer, documents, everywhere, published, sent.advance)
            sent.set(published.records, published.records)
            if patience_seconds is not None:
                searchable = bars("searchable", published.records)
                followed = follow(
                    receipts,
                    published,
                    lambda _receipt: searchable.advance(),
                    timeout_seconds=patience_seconds,
                )
        return followed

    def documents(self, collection: str) -> list[KnownDocument]:
        from indexer.errors import IncompatibleGeneration, TransientStoreError  # LanceDB, which only this needs
        from indexer.generation_folders import current_generation
        from indexer.read.rows import DocumentLookup

        if current_generation(self.data_dir) is None and find_running(self.data_dir) is None:
            raise Failure(
                f"There are no stores in {self.data_dir}, so what was loaded before is not known here. Name the data "
                "directory with --data-dir, or the query service with --url."
            )
        try:
            rows = DocumentLookup.open(self.data_dir).in_collection(collection)
        except (IncompatibleGeneration, TransientStoreError) as error:
            raise Failure(str(error)) from error
        return [KnownDocument.of(row.key.document_id, row.own_metadata, row.stated_fields) for row in rows]

    def collections_with(self, document_id: str) -> list[str]:
        from indexer.read.rows import DocumentLookup  # LanceDB, which only this needs

        return DocumentLookup.open(self.data_dir).collections_with(document_id)


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
            raise Failure(f"There is no topic {topic}; make the topics with 'thalweg topics --create'.")
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
                f"A receipt cannot be read: {error}. The records are safe in Kafka; 'thalweg status' shows how many "
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


def with_repeated_tombstones(records: Iterable[Record], data_dir: Path, partitions: int) -> Iterator[Record]:
    """The records, and after each tombstone one for every other partition in which its document was seen.

    A tombstone removes the records of its own partition only: others would bring the document back when the stores are
    rebuilt. Which these are is known where the stores are on this machine.
    """
    from indexer.read.rows import DocumentLookup  # LanceDB, which only deletes need

    stores: DocumentLookup | None = None
    for record in records:
        yield record
        if record.value is not None:
            continue
        stores = stores or DocumentLookup.open(data_dir)
        row = stores.find(record.key)
        if row is not None:
            belongs = murmur2_partition(partitions)(record.key.encoded())
            yield from (
                replace(record, partition=partition)
                for partition in sorted({row.partition, *row.other_partitions} - {belongs})
                if partition < partitions
            )
