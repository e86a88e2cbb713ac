"""The query service on a real Kafka, real tables and a real socket; a stand-in plays the worker, record by record."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from indexer.changes import encode_mark
from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.embedding.encoder import HashingEncoder, text_hash
from indexer.generation_folders import Generation, Manifest, open_generation
from indexer.linking import contribution
from indexer.schema import DocumentRow, StoredPosition
from indexer.write.change_encoding import encode_changes
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from kafka_client import sync_clients
from query_api.app import create_app
from query_api.cli.server import ServiceProtocol
from query_api.service_health import readiness
from query_api.settings import RerankerSettings, ServiceSettings
from schemas.events import DocumentUpsert, decode_document_event
from schemas.graph_delta import encode_contribution
from schemas.receipts import Receipt, encode_receipt
from schemas.settings import LimitSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.topics import ensure_topics
from tests.support.constants import changed
from tests.support.kafka import Sent, open_producer, plaintext, send_with
from tests.support.waiting import eventually

EVENTS = {"Accept": "text/event-stream"}


GENERATION = "g0001-5f3a9c"
PARTITIONS = 2


class StandInWorker:
    """Does what the worker does to one document at a time: rows, contribution, positions, receipt."""

    def __init__(self, generation: Generation, producer: KafkaProducer, names: TopicNames) -> None:
        self._writer = LanceWriter.open(generation, HashingEncoder.dimension)
        self._producer = producer
        self._names = names
        self._encoder = HashingEncoder()

    def apply(self, key: bytes, value: bytes | None, partition: int, offset: int) -> None:
        event = decode_document_event(key, value, [], LimitSettings())
        now = time.time_ns() // 1_000_000
        rows, graph = self._prepared(event, partition, offset, now)
        changes = encode_changes([rows], {rows.row.key: graph})
        sent = [Sent(*record) for record in (*changes, (None, encode_mark({partition: (offset, now)})))]
        (*_, (_, mark)) = send_with(self._producer, self._names.contributions(GENERATION), sent)
        self._writer.replace([rows])
        self._writer.store_positions({partition: StoredPosition(offset, mark)})
        receipt = Receipt(
            key=key.decode(),
            outcome="deleted" if value is None else "indexed",
            partition=partition,
            offset=offset,
            generation=GENERATION,
        )
        send_with(self._producer, self._names.indexed, [Sent(key, encode_receipt(receipt), partition=partition)])

    def _prepared(self, event: Any, partition: int, offset: int, now: int) -> tuple[IndexedRows, bytes | None]:
        if not isinstance(event, DocumentUpsert):
            gone = DocumentRow(event.key, event.version, partition, offset, now, deleted_at_ms=now)
            return IndexedRows(gone), None
        prepared = prepare(event, ChunkingParameters())
        vectors = self._encoder.encode(prepared.embedding_texts)
        row = DocumentRow.from_prepared(
            prepared, version=event.version, partition=partition, offset=offset, timestamp_ms=now
        )
        hashes = [text_hash(text) for text in prepared.embedding_texts]
        return IndexedRows(row, prepared, vectors, hashes), encode_contribution(contribution(prepared, vectors))


class LiveService:
    """A running service, a client of it, the log, and the stand-in worker following the documents topic."""

    def __init__(self, http: httpx.AsyncClient, app: Any, names: TopicNames, kafka: str, data_dir: Path) -> None:
        self.http = http
        self.service = app.state.service
        self.names = names
        self.kafka = kafka
        self.data_dir = data_dir

    async def search(self, query: str, **params: Any) -> dict[str, Any]:
        response = await self.http.get("/v1/search", params={"q": query, **params})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def put(self, document_id: str, text: str) -> str:
        response = await self.http.put(
            f"/v1/documents/{document_id}", content=text, headers={"Content-Type": "text/markdown"}
        )
        assert response.status_code == 202, response.text
        return str(response.json()["token"])


def settings_for(
    kafka: str, prefix: str, data_dir: Path, *, reranker: RerankerSettings | None = None, **service: Any
) -> ServiceSettings:
    return ServiceSettings.model_validate(
        {
            "kafka": {"bootstrap_servers": kafka, "topic_prefix": prefix, "partitions": PARTITIONS},
            "storage": {"data_dir": data_dir},
            "embedding": {"provider": "hashing"},
            "reranker": reranker or RerankerSettings(),
            "service": {"port": 0, **service},
        }
    )


def make_generation(data_dir: Path) -> Generation:
    return open_generation(
        data_dir,
        Manifest(
            generation=GENERATION,
            embedding_provider=HashingEncoder.provider,
            embedding_model=HashingEncoder.model,
            embedding_digest=HashingEncoder.digest,
            dimension=HashingEncoder.dimension,
            chunk_characters=300,
            chunk_overlap=50,
            passage_characters=1400,
            passage_overlap=0.15,
            extractor="test",
        ),
    )


@asynccontextmanager
async def serving(
    settings: ServiceSettings, constants: Mapping[str, Any] | None = None, **given: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    """The service on a free port of a real socket; `constants` of the product are changed while it runs."""
    with changed(constants or {}):
        async with _serving(settings, **given) as running:
            yield running


@asynccontextmanager
async def _serving(settings: ServiceSettings, **given: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    app = create_app(settings, **given)
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, http=ServiceProtocol, log_config=None, timeout_graceful_shutdown=2)
    )
    running = asyncio.create_task(server.serve())
    await eventually(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as http:
            yield http, app
    finally:
        server.should_exit = True
        await running


@contextmanager
def working(kafka: str, names: TopicNames, generation: Generation) -> Iterator[None]:
    """The stand-in worker, in a thread, applying every record of the documents topic."""
    ended = threading.Event()

    def follow(producer: KafkaProducer, consumer: KafkaConsumer) -> None:
        worker = StandInWorker(generation, producer, names)
        while not ended.is_set():
            for records in consumer.poll(timeout_ms=50).values():
                for record in records:
                    worker.apply(record.key, record.value, record.partition, record.offset)

    with (
        open_producer(kafka, linger_ms=0) as producer,
        closing(sync_clients.open_consumer(plaintext(kafka), auto_offset_reset="earliest")) as consumer,
    ):
        consumer.assign([TopicPartition(names.documents, number) for number in range(PARTITIONS)])
        following = threading.Thread(target=follow, args=(producer, consumer))
        following.start()
        try:
            yield
        finally:
            ended.set()
            following.join()


@asynccontextmanager
async def live_service(
    kafka: str, topic_prefix: str, data_dir: Path, reranker: RerankerSettings | None = None
) -> AsyncIterator[LiveService]:
    """New topics, an empty generation, the stand-in worker, and a service that is ready."""
    settings = settings_for(kafka, topic_prefix, data_dir, reranker=reranker)
    names = TopicNames(topic_prefix)
    await ensure_topics(plaintext(kafka), topic_specs(settings.kafka, GENERATION))
    generation = make_generation(data_dir)
    with working(kafka, names, generation):
        async with serving(settings) as (http, app):
            live = LiveService(http, app, names, kafka, data_dir)
            await eventually(lambda: readiness(live.service).ready and live.service.log_identity.topic_id)
            yield live


async def frames_of(response: httpx.Response) -> AsyncIterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}
