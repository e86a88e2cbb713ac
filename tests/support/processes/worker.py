"""A worker as a user starts it, and a client that publishes to it and reads what comes of it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from indexer.generations import current_generation
from kafka_client.async_clients import LogConsumer
from schemas.receipts import Receipt, decode_receipt
from schemas.topics import TopicNames
from streams.ports import free_port
from tests.support.kafka import plaintext
from tests.support.waiting import wait_until

PATIENCE_SECONDS = 60.0
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

    def start(self) -> None:
        self.port = free_port()
        environment = {
            "THALWEG_KAFKA__BOOTSTRAP_SERVERS": self.kafka,
            "THALWEG_KAFKA__TOPIC_PREFIX": self.prefix,
            "THALWEG_KAFKA__PARTITIONS": str(PARTITIONS),
            "THALWEG_STORAGE__DATA_DIR": str(self.data_dir),
            "THALWEG_EMBEDDING__PROVIDER": "hashing",
            "THALWEG_WORKER__METRICS_PORT": str(self.port),
            **self.settings,
        }
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with (self.data_dir / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.program, "worker"],
                env=os.environ | environment,
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
        """A sample's value, 0 where there is none yet."""
        wanted = {f'{label}="{value}"' for label, value in labels.items()}
        text = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=5, trust_env=False).text
        for line in text.splitlines():
            head, _, value = line.rpartition(" ")
            sample, _, rest = head.partition("{")
            if sample == name and wanted <= set(rest.rstrip("}").split(",")):
                return float(value)
        return 0.0

    @property
    def graph_topic(self) -> str:
        """Named after the generation, whose name the worker has made up."""
        generation = current_generation(self.data_dir)
        assert generation is not None
        return TopicNames(self.prefix).graph(generation.name)

    def said(self) -> str:
        return (self.data_dir / "worker.log").read_text()

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
    producer: AIOKafkaProducer
    receipts: AIOKafkaConsumer
    seen: dict[tuple[int, int], Receipt] = field(default_factory=dict)

    async def publish(self, key: str, text: str | None, headers: Any = None, **envelope: Any) -> tuple[int, int]:
        """An envelope with this text, or a delete; its position."""
        collection, _, document = key.partition("/")
        value = text and msgspec.json.encode({"id": document, "collection": collection, "content": text, **envelope})
        return await self.publish_bytes(key, value or None, headers)

    async def publish_bytes(self, key: str, value: bytes | None, headers: Any = None) -> tuple[int, int]:
        sent = await self.producer.send_and_wait(
            self.names.documents, value, key=key.encode(), headers=headers, partition=partition_of(key)
        )
        return sent.partition, sent.offset

    async def publish_all(self, documents: Iterable[tuple[str, str | None]]) -> list[tuple[int, int]]:
        return list(await asyncio.gather(*(self.publish(key, text) for key, text in documents)))

    async def receipt(self, position: tuple[int, int]) -> Receipt:
        [receipt] = await self.receipts_of([position])
        return receipt

    async def receipts_of(self, positions: Iterable[tuple[int, int]]) -> list[Receipt]:
        """The newest receipt of each position, waited for."""
        wanted = list(positions)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while missing := [position for position in wanted if position not in self.seen]:
            assert time.monotonic() < deadline, f"no receipts for {len(missing)} records, such as {missing[:5]}"
            await self._see_more()
        return [self.seen[position] for position in wanted]

    async def receipts_where(self, wanted: Callable[[Receipt], bool], count: int) -> list[Receipt]:
        """The newest receipt of each position that is wanted, waited for until there are so many."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found := [receipt for receipt in self.seen.values() if wanted(receipt)]) < count:
            assert time.monotonic() < deadline, (
                f"{len(found)} of {count} receipts: {sorted(each.key for each in found)}"
            )
            await self._see_more()
        return found

    async def _see_more(self) -> None:
        for messages in (await self.receipts.getmany(timeout_ms=500)).values():
            for message in messages:
                receipt = decode_receipt(message.value)
                self.seen[receipt.partition, receipt.offset] = receipt

    async def read_all(self, topic: str, partitions: int = PARTITIONS) -> list[Any]:
        """Every committed record the topic holds now."""
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer = LogConsumer(connection=plaintext(self.kafka), auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign(places)
            ends = await consumer.end_offsets(places)
            await consumer.seek_to_beginning(*places)
            found: list[Any] = []
            while any([await consumer.position(place) < ends[place] for place in places]):
                for messages in (await consumer.getmany(timeout_ms=500)).values():
                    found += messages
            return found
        finally:
            await consumer.stop()


@asynccontextmanager
async def client(kafka: str, prefix: str) -> AsyncIterator[Client]:
    """A client on topics that exist: start the worker first."""
    names = TopicNames(prefix)
    producer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all", linger_ms=5, max_request_size=32 * 1024 * 1024)
    receipts = AIOKafkaConsumer(bootstrap_servers=kafka, enable_auto_commit=False, auto_offset_reset="earliest")
    await producer.start()
    await receipts.start()
    try:
        places = [TopicPartition(names.indexed, number) for number in range(PARTITIONS)]
        receipts.assign(places)
        await receipts.seek_to_beginning(*places)
        yield Client(kafka, names, producer, receipts)
    finally:
        await receipts.stop()
        await producer.stop()


def partition_of(key: str) -> int:
    """The same partition in every run, so that digests and positions can be compared."""
    return sum(key.encode()) % PARTITIONS


async def wait_for(condition: Callable[[], bool], what: str) -> None:
    """The same in a thread, for conditions that ask the worker."""
    await asyncio.to_thread(wait_until, condition, what)
