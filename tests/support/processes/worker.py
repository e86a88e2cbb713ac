"""A worker as a user starts it, and a client that publishes to it and reads what comes of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from indexer.changes import Commit
from indexer.generation_folders import current_generation
from kafka_client import sync_clients
from schemas.graph_delta import Contribution, decode_contribution
from schemas.receipts import Receipt, decode_receipt
from schemas.topics import TopicNames
from streams.ports import free_port
from tests.support.contributions import Logged, commits_of, graph_of, pass_over
from tests.support.kafka import Sent, open_producer, plaintext, read_all, send_with
from tests.support.waiting import wait_until

RECEIPT_SECONDS = 60.0
READY_SECONDS = 180.0  # of a worker that starts on a busy machine
PARTITIONS = 2


@dataclass
class WorkerProcess:
    """One `thalweg worker` on a data directory; it embeds by feature hashing, so that it starts quickly."""

    kafka: str
    prefix: str
    data_dir: Path
    settings: dict[str, str] = field(default_factory=dict)
    program: str = "thalweg"  # a module
    log_dir: Path | None = None  # the data directory without one

    @property
    def log_file(self) -> Path:
        return (self.log_dir or self.data_dir) / "worker.log"

    @property
    def environment(self) -> dict[str, str]:
        """For commands of a user of this worker."""
        return os.environ | {
            "THALWEG_KAFKA__BOOTSTRAP_SERVERS": self.kafka,
            "THALWEG_KAFKA__TOPIC_PREFIX": self.prefix,
            "THALWEG_KAFKA__PARTITIONS": str(PARTITIONS),
            "THALWEG_STORAGE__DATA_DIR": str(self.data_dir),
            "THALWEG_EMBEDDING__PROVIDER": "hashing",
            "THALWEG_WORKER__PUBLISH_GRAPH": "false",  # which takes the processor from the tests
            **self.settings,
        }

    def start(self) -> None:
        self.port = free_port()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.program, "worker"],
                env=self.environment | {"THALWEG_WORKER__METRICS_PORT": str(self.port)},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def wait_ready(self) -> None:
        wait_until(self._is_ready, "the worker is ready", READY_SECONDS)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"the worker ended with {self.process.returncode}:\n{self.said()}"
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=2, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def metric(self, name: str, **labels: str) -> float:
        """A sample's value, 0 where there is none yet, or the worker begins again on another generation."""
        wanted = {f'{label}="{value}"' for label, value in labels.items()}
        try:
            text = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=5, trust_env=False).text
        except httpx.TransportError:
            assert self.process.poll() is None, self.said()
            return 0.0
        for line in text.splitlines():
            head, _, value = line.rpartition(" ")
            sample, _, rest = head.partition("{")
            if sample == name and wanted <= set(rest.rstrip("}").split(",")):
                return float(value)
        return 0.0

    @property
    def contributions(self) -> str:
        """Named after the generation, whose name the worker has made up."""
        generation = current_generation(self.data_dir)
        assert generation is not None
        return TopicNames(self.prefix).contributions(generation.name)

    def said(self) -> str:
        return self.log_file.read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running_worker(
    kafka: str, prefix: str, data_dir: Path, program: str = "thalweg", **settings: str
) -> Iterator[WorkerProcess]:
    worker = WorkerProcess(kafka, prefix, data_dir, settings, program)
    worker.start()
    try:
        worker.wait_ready()
        yield worker
    finally:
        if worker.process.poll() is None:
            worker.kill()


@dataclass
class Client:
    """Publishes documents and collects receipts."""

    kafka: str
    names: TopicNames
    producer: KafkaProducer
    receipts: KafkaConsumer
    seen: dict[tuple[int, int], Receipt] = field(default_factory=dict)

    def publish(self, key: str, text: str | None, headers: Any = (), **envelope: Any) -> tuple[int, int]:
        """An envelope with this text, or a delete; its position."""
        return self.publish_bytes(key, envelope_of(key, text, **envelope), headers)

    def publish_bytes(self, key: str, value: bytes | None, headers: Any = ()) -> tuple[int, int]:
        return self.send(self.names.documents, key.encode(), value, partition_of(key), headers)

    def publish_all(self, documents: Iterable[tuple[str, str | None]]) -> list[tuple[int, int]]:
        records = [Sent(key.encode(), envelope_of(key, text), (), partition_of(key)) for key, text in documents]
        return send_with(self.producer, self.names.documents, records)

    def send(
        self, topic: str, key: bytes, value: bytes | None, partition: int | None = None, headers: Any = ()
    ) -> tuple[int, int]:
        [position] = send_with(self.producer, topic, [Sent(key, value, headers, partition)])
        return position

    def receipt(self, position: tuple[int, int]) -> Receipt:
        [receipt] = self.receipts_of([position])
        return receipt

    def receipts_of(self, positions: Iterable[tuple[int, int]]) -> list[Receipt]:
        """The newest receipt of each position, waited for."""
        wanted = list(positions)

        def missing() -> list[tuple[int, int]]:
            self._see_more()
            return [position for position in wanted if position not in self.seen]

        wait_until(lambda: not missing(), lambda: f"receipts of {missing()[:5]} and others", RECEIPT_SECONDS)
        return [self.seen[position] for position in wanted]

    def receipts_where(self, wanted: Callable[[Receipt], bool], count: int) -> list[Receipt]:
        """The newest receipt of each position that is wanted, waited for until there are so many."""

        def found() -> list[Receipt]:
            self._see_more()
            return [receipt for receipt in self.seen.values() if wanted(receipt)]

        wait_until(lambda: len(found()) >= count, lambda: f"{count} receipts: {found()}", RECEIPT_SECONDS)
        return found()

    def _see_more(self) -> None:
        for messages in self.receipts.poll(timeout_ms=200).values():
            for message in messages:
                receipt = decode_receipt(message.value)
                self.seen[receipt.partition, receipt.offset] = receipt

    def read_all(self, topic: str) -> list[Any]:
        """Every committed record the topic holds now."""
        return read_all(self.kafka, topic)

    def commits(self, worker: WorkerProcess) -> list[Commit[Logged]]:
        """What the worker has contributed, from the first commit on."""
        records = self.read_all(worker.contributions)
        return commits_of(((record.key, record.value) for record in records), pass_over)

    def graph(self, worker: WorkerProcess) -> dict[str, Contribution]:
        """The live contribution of each document, by its key."""
        return {key: decode_contribution(value) for key, value in graph_of(self.commits(worker)).items()}


@contextmanager
def client(kafka: str, prefix: str) -> Iterator[Client]:
    """A client on topics that exist: start the worker first."""
    names = TopicNames(prefix)
    connection = plaintext(kafka)
    with (
        open_producer(kafka) as producer,
        closing(sync_clients.open_consumer(connection, auto_offset_reset="earliest")) as receipts,
    ):
        receipts.assign([TopicPartition(names.indexed, number) for number in range(PARTITIONS)])
        yield Client(kafka, names, producer, receipts)


def envelope_of(key: str, text: str | None, **fields: Any) -> bytes | None:
    if text is None:
        return None
    collection, _, document = key.partition("/")
    return msgspec.json.encode({"id": document, "collection": collection, "content": text, **fields})


def partition_of(key: str) -> int:
    """The same partition in every run, so that digests and positions can be compared."""
    return sum(key.encode()) % PARTITIONS
