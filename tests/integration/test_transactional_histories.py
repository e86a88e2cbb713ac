"""Random transactions that cross each other, with compaction between: the stores hold what a dictionary says, and come
back the same from the log."""

import asyncio
import json
import random
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Message, Producer
from kafka import TopicPartition

from indexer.generation_folders import current_generation
from indexer.store_verification import verify_when_complete
from kafka_client.sync_clients import AdminClient, open_consumer
from query_api.index.text.text_snapshot import TextReader
from schemas.ids import DocumentKey
from schemas.topics import TopicNames, TopicSpec
from streams.faust_app import group_name
from streams.kafka.topics import ensure_topics
from tests.support.effort import examples
from tests.support.kafka import plaintext
from tests.support.processes.worker import PARTITIONS, WorkerProcess, client, partition_of, running_worker
from tests.support.waiting import wait_until

HISTORIES = examples(20, 800)
SEED = 20261123
SECONDS = 30
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "1000",
    "delete.retention.ms": "3600000",
}


@dataclass(order=True)
class Written:
    """A record that a client sent, with its place in the log; `title` None for a delete."""

    partition: int
    offset: int
    key: str = field(compare=False)
    title: str | None = field(compare=False)


@dataclass
class Writer:
    """A producer whose transactions, one after the other, are committed, aborted, or left to the next of its name."""

    servers: str
    topic: str
    log: list[Written]
    name: str = field(default_factory=lambda: uuid4().hex)
    pending: list[Written] = field(default_factory=list)
    is_open: bool = False

    def __post_init__(self) -> None:
        settings = {"bootstrap.servers": self.servers, "transactional.id": self.name, "linger.ms": 0, "log_level": 0}
        self.producer = Producer(settings)
        self.producer.init_transactions(SECONDS)

    def write(self, key: str, title: str | None) -> None:
        if not self.is_open:
            self.producer.begin_transaction()
            self.is_open = True
        collection, _, name = key.partition("/")
        value = title and json.dumps({"id": name, "collection": collection, "title": title, "content": f"On {title}."})

        def sent(error: object, message: Message) -> None:
            assert error is None
            self.pending.append(Written(message.partition(), message.offset(), key, title))

        self.producer.produce(self.topic, key=key, value=value, partition=partition_of(key), on_delivery=sent)
        assert self.producer.flush(SECONDS) == 0

    def end(self, how: str) -> None:
        if how == "commit":
            self.producer.commit_transaction(SECONDS)
            self.log += self.pending
        elif how == "abort":
            self.producer.abort_transaction(SECONDS)
        else:
            self.__post_init__()  # the next of its name: Kafka aborts what the one before left
        self.pending, self.is_open = [], False


def play(writers: list[Writer], seed: int) -> None:
    """One history: a few documents, written and deleted in transactions that cross each other."""
    rng = random.Random(seed)
    for step in range(rng.randint(4, 16)):
        writer = rng.choice(writers)
        if writer.is_open and rng.random() < 0.35:
            writer.end(rng.choices(["commit", "abort", "abandon"], [6, 4, 1])[0])
            continue
        key = f"h{seed - SEED}/{rng.choice('abcd')}"
        writer.write(key, None if rng.random() < 0.3 else f"{key} {step}")
    for writer in rng.sample(writers, len(writers)):
        if writer.is_open:
            writer.end(rng.choice(["commit", "abort"]))


def expected(log: list[Written]) -> dict[str, str]:
    """{key: title} of the documents there are: of each key, the committed record that stands last."""
    newest = {written.key: written.title for written in sorted(log)}
    return {key: title for key, title in newest.items() if title is not None}


def stored(worker: WorkerProcess, keys: set[str]) -> dict[str, str]:
    generation = current_generation(worker.data_dir)
    assert generation is not None
    rows = TextReader.open(generation).snapshot().documents([DocumentKey.parse(key) for key in keys])
    return {str(key): row.title for key, row in rows.items() if row.live}


@pytest.mark.nightly  # plain transactions, in `acceptance/test_transactions`, are tried each time
@pytest.mark.timeout(900)
def test_crossing_transactions_leave_what_was_committed(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    prefix = topic_prefix
    names = TopicNames(prefix)
    asyncio.run(ensure_topics(plaintext(kafka), [TopicSpec(names.documents, PARTITIONS, COMPACTED)]))
    log: list[Written] = []
    writers = [Writer(kafka, names.documents, log) for _ in range(3)]
    keys = {f"h{number}/{name}" for number in range(HISTORIES) for name in "abcd"}
    with running_worker(kafka, prefix, tmp_path / "first") as worker:
        with client(kafka, prefix) as user:
            for half in range(2):
                for number in range(half * HISTORIES // 2, (half + 1) * HISTORIES // 2):
                    play(writers, SEED + number)
                wait_until(lambda: stored(worker, keys) == expected(log), "the stores hold what was committed")
                for partition in range(PARTITIONS):
                    wait_until(lambda p=partition: not lag(worker, names.documents, p), "marks are no lag")
                generation = current_generation(worker.data_dir)
                assert generation is not None
                group = group_name(prefix, generation.name)
                wait_until(lambda group=group: is_all_committed(kafka, group, names.documents), "all is committed")
                wait_until(lambda: len(user.read_all(names.documents)) < len(log), "the log is compacted", 120)
        report = verify_when_complete(worker.data_dir, 60)
        assert report.ok, report.differences
        worker.stop()
    with running_worker(kafka, prefix, tmp_path / "again") as worker:
        wait_until(lambda: stored(worker, keys) == expected(log), "the stores come back")
        again = verify_when_complete(worker.data_dir, 60)
    assert again.ok, again.differences
    assert again.digest == report.digest
    assert again.documents == report.documents == len(expected(log))


def lag(worker: WorkerProcess, topic: str, partition: int) -> float:
    return worker.metric("thalweg_ingest_lag_records", topic=topic, partition=str(partition))


def is_all_committed(kafka: str, group: str, topic: str) -> bool:
    """Whether the group's offsets are at the ends, whatever the log does not hold before them."""
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    with closing(AdminClient(plaintext(kafka))) as admin, closing(open_consumer(plaintext(kafka))) as consumer:
        committed = admin.list_group_offsets({group: places})[group]
        return {place: each.offset for place, each in committed.items()} == consumer.end_offsets(places)
