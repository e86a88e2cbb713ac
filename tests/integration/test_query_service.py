"""The query service on a real Kafka, real tables and a real socket; the test plays the worker, record by record."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from indexer.chunking import ChunkingParameters
from indexer.embedding import HashingEncoder, text_hash
from indexer.generations import FIRST, Generation, Manifest, open_generation
from indexer.linking import contribution
from indexer.preparing import prepare
from indexer.tables import DocumentRow, StoredPosition
from indexer.write.rows import IndexedRows
from indexer.write.vectors import VectorWriter
from query_api.app import create_app
from query_api.searching.engine import load_engine
from query_api.settings import ServiceSettings
from schemas.contributions import encode_contribution
from schemas.events import DocumentUpsert, decode_document_event
from schemas.ids import DocumentKey
from schemas.receipts import Receipt, encode_receipt
from schemas.settings import LimitSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.topic_admin import ensure_topics
from tests.unit.query_api.scripted_engine import ScriptedEngine, make_hit
from tests.unit.query_api.scripted_engine import make_generation as make_scripted_generation

EVENTS = {"Accept": "text/event-stream"}


class StandInWorker:
    """Does what the worker does to one document at a time: rows, contribution, positions, receipt."""

    def __init__(self, generation: Generation, producer: AIOKafkaProducer, names: TopicNames) -> None:
        self._writer = VectorWriter.open(generation, HashingEncoder.dimension)
        self._producer = producer
        self._names = names
        self._encoder = HashingEncoder()

    async def apply(self, key: bytes, value: bytes | None, partition: int, offset: int) -> None:
        event = decode_document_event(key, value, [], LimitSettings())
        now = time.time_ns() // 1_000_000
        rows, graph = self._prepared(event, partition, offset, now)
        self._writer.replace([rows])
        topic = self._names.graph(FIRST)
        sent = await self._producer.send_and_wait(topic, graph, key, partition=0)
        self._writer.store_positions({partition: StoredPosition(offset, sent.offset)})
        receipt = Receipt(
            key=key.decode(),
            outcome="deleted" if value is None else "indexed",
            partition=partition,
            offset=offset,
            generation=FIRST,
            graph_offset=sent.offset,
        )
        await self._producer.send_and_wait(self._names.indexed, encode_receipt(receipt), key, partition=partition)

    def _prepared(self, event: Any, partition: int, offset: int, now: int) -> tuple[IndexedRows, bytes | None]:
        if not isinstance(event, DocumentUpsert):
            gone = DocumentRow(event.key, event.version, partition, offset, now, deleted_at_ms=now)
            return IndexedRows(gone), None
        prepared = prepare(event, ChunkingParameters())
        vectors = self._encoder.encode(prepared.embedding_texts)
        row = DocumentRow(
            key=event.key,
            version=event.version,
            partition=partition,
            offset=offset,
            timestamp_ms=now,
            revision=prepared.revision,
            content_type=prepared.content_type,
            title=prepared.title,
            uri=prepared.uri,
            metadata=prepared.metadata,
            chunks=len(prepared.chunked.chunks),
            passages=len(prepared.chunked.passages),
        )
        hashes = [text_hash(text) for text in prepared.embedding_texts]
        return IndexedRows(row, prepared, vectors, hashes), encode_contribution(contribution(prepared, vectors))


class Stage:
    """A running service, a client of it, the log, and the stand-in worker following the documents topic."""

    def __init__(self, http: httpx.AsyncClient, app: Any, names: TopicNames, kafka: str, data_dir: Path) -> None:
        self.http = http
        self.service = app.state.service
        self.names = names
        self.kafka = kafka
        self.data_dir = data_dir

    async def until(self, condition: Any, seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 -- any condition, not only those that set an event
                await asyncio.sleep(0.01)

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


def settings_for(kafka: str, prefix: str, data_dir: Path, **service: Any) -> ServiceSettings:
    return ServiceSettings.model_validate(
        {
            "kafka": {"bootstrap_servers": kafka, "topic_prefix": prefix, "partitions": 2},
            "storage": {"data_dir": data_dir},
            "embedding": {"provider": "hashing"},
            "service": {"port": 0, **service},
        }
    )


def make_generation(data_dir: Path) -> Generation:
    return open_generation(
        data_dir,
        Manifest(
            generation=FIRST,
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
    settings: ServiceSettings, load: Callable[[], Any] = load_engine
) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    """The service on a free port of a real socket."""
    app = create_app(settings, load=load)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=2))
    running = asyncio.create_task(server.serve())
    async with asyncio.timeout(20):
        while not server.started:  # noqa: ASYNC110 -- uvicorn sets a flag
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as http:
            yield http, app
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def working(kafka: str, names: TopicNames, generation: Generation) -> AsyncIterator[StandInWorker]:
    """The stand-in worker, applying every record of the documents topic."""
    consumer = AIOKafkaConsumer(names.documents, bootstrap_servers=kafka, auto_offset_reset="earliest")
    producer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all")
    await producer.start()
    await consumer.start()
    worker = StandInWorker(generation, producer, names)

    async def follow() -> None:
        async for record in consumer:
            await worker.apply(record.key, record.value, record.partition, record.offset)

    following = asyncio.create_task(follow())
    try:
        yield worker
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await consumer.stop()
        await producer.stop()


@pytest.fixture
async def stage(kafka: str, topic_prefix: str, tmp_path: Path) -> AsyncIterator[Stage]:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    names = TopicNames(topic_prefix)
    await ensure_topics(kafka, topic_specs(settings.kafka, FIRST))
    generation = make_generation(tmp_path)
    async with working(kafka, names, generation), serving(settings) as (http, app):
        stage = Stage(http, app, names, kafka, tmp_path)
        await stage.until(lambda: stage.service.readiness().ready)
        yield stage


async def frames_of(response: httpx.Response) -> AsyncIterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


async def test_every_search_after_a_write_shows_that_write(stage: Stage) -> None:
    for number in range(20):
        token = await stage.put(f"notes/{number}.md", f"# Gauge {number}\n\nReading number{number} of the river gauge.")
        answer = await stage.search(f"number{number}", after=token, wait_seconds=10, k=3)
        assert answer["hits"][0]["document_id"] == f"notes/{number}.md"
        partition, offset = token.split(":")
        assert answer["hits"][0]["source"] == {
            "topic": stage.names.documents, "partition": int(partition), "offset": int(offset), "version": None
        }  # fmt: skip


async def test_a_deleted_document_is_gone_from_every_answer(stage: Stage) -> None:
    kept = await stage.put("a.md", "# Ferry\n\nThe ferry crosses the thalweg.")
    token = await stage.put("b.md", "# Bridge\n\nThe bridge spans the thalweg.")
    found = await stage.search("thalweg", after=f"{kept},{token}")
    assert {hit["document_id"] for hit in found["hits"]} == {"a.md", "b.md"}
    token = (await stage.http.delete("/v1/documents/b.md")).json()["token"]
    answer = await stage.search("thalweg bridge", after=token)
    assert {hit["document_id"] for hit in answer["hits"]} == {"a.md"}
    assert (await stage.http.get("/v1/documents/b.md")).status_code == 404
    assert (await stage.http.get("/v1/documents/b.md/status")).json()["status"] == "deleted"


async def test_a_document_is_followed_from_pending_to_indexed_and_read_back(stage: Stage) -> None:
    text = "# River\n\nThe river is high.\n\n## Ferry\n\nIt does not go."
    token = await stage.put("guides/river.md", text)
    status: dict[str, Any] = {}
    async with asyncio.timeout(20):
        while status.get("status") != "indexed" or not status["in_graph"]:
            status = (await stage.http.get(f"/v1/documents/guides/river.md/status?position={token}")).json()
            assert status["status"] in {"pending", "indexed"}
    assert (status["position"], status["searchable"]) == (token, True)
    document = (await stage.http.get("/v1/documents/guides%2Friver.md")).json()
    assert document["title"] == "River"
    assert "The river is high." in document["text"]
    assert "It does not go." in document["text"]
    listed = (await stage.http.get("/v1/documents?limit=1")).json()
    assert [each["id"] for each in listed["documents"]] == ["guides/river.md"]
    node = (await stage.http.get("/v1/nodes/guides/river.md")).json()
    assert {each["edge"]["kind"] for each in node["neighbours"]} >= {"has_chunk", "about"}
    chunk_id = next(each["node"]["id"] for each in node["neighbours"] if each["node"]["kind"] == "chunk")
    assert (await stage.http.get(f"/v1/chunks/{chunk_id}")).json()["document_id"] == "guides/river.md"


async def test_batches_and_uploads_are_answered_by_member(stage: Stage) -> None:
    batch = [{"id": "a", "content": "one"}, {"id": "b"}, {"id": "c", "content": "three", "collection": "other"}]
    response = await stage.http.post("/v1/documents", json={"documents": batch})
    assert response.status_code == 202
    answer = response.json()
    assert [(each["index"], each["id"], each["collection"]) for each in answer["accepted"]] == [
        (0, "a", "default"), (2, "c", "other")
    ]  # fmt: skip
    assert [(each["index"], each["id"], each["status"]) for each in answer["refused"]] == [(1, "b", 422)]
    files = [("file", ("x.md", b"# Upload\n\nsubmerged")), ("file", ("y.rst", b"Title\n=====\n\nsunken"))]
    response = await stage.http.post("/v1/documents", files=files, data={"collection": "up"})
    token = response.json()["token"]
    found = await stage.search("submerged", collection="up", after=token)
    assert found["hits"][0]["document_id"] == "x.md"
    assert (await stage.http.get("/v1/documents/y.rst?collection=up")).json()["content_type"] == "text/x-rst"


async def test_keys_go_to_the_partition_every_kafka_client_would_choose(stage: Stage) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=stage.kafka)
    await producer.start()
    try:
        for name in ("a", "b/c", "ünïcode", "d"):
            token = await stage.put(name, "text")
            own = await producer.send_and_wait(stage.names.documents, None, f"default/{name}".encode())
            assert token.split(":")[0] == str(own.partition)
    finally:
        await producer.stop()


async def test_a_stream_that_is_cut_off_goes_on_where_it_stopped(stage: Stage) -> None:
    tokens = [
        await stage.put(f"{number}.md", f"# Lock {number}\n\nThe lock keeper writes of lock {number}.")
        for number in range(6)
    ]
    params = {"q": "lock keeper", "k": 6, "after": ",".join(tokens)}
    first: list[tuple[str, str, Any]] = []
    async with stage.http.stream("GET", "/v1/search", params=params, headers=EVENTS) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        async with aclosing(frames_of(response)) as frames:  # type: ignore[type-var]
            async for frame in frames:
                first.append(frame)
                if frame[0] == "hit":
                    break
    await stage.until(lambda: stage.service.streams.reading == 0)
    again = {**EVENTS, "Last-Event-ID": first[-1][1]}
    async with stage.http.stream("GET", "/v1/search", params=params, headers=again) as response:
        rest = [frame async for frame in frames_of(response)]
    whole = first + rest
    retrieval_id = first[0][2]["retrieval_id"]
    assert [identifier for _, identifier, _ in whole] == [f"{retrieval_id}.{seq}" for seq in range(len(whole))]
    assert [body["rank"] for name, _, body in whole if name == "hit"] == [1, 2, 3, 4, 5, 6]
    assert whole[-1][0] == "done"


async def test_the_provenance_of_every_search_arrives_on_the_topic(stage: Stage) -> None:
    token = await stage.put("a.md", "# Weir\n\nThe weir was built in 1901.")
    answers = [await stage.search("weir", after=token) for _ in range(5)]
    consumer = AIOKafkaConsumer(stage.names.provenance, bootstrap_servers=stage.kafka, auto_offset_reset="earliest")
    await consumer.start()
    try:
        seen: dict[str, Any] = {}
        async with asyncio.timeout(20):
            while len(seen) < 5:
                record = await consumer.getone()
                seen[record.key.decode()] = json.loads(record.value)
    finally:
        await consumer.stop()
    for answer in answers:
        record = seen[answer["retrieval_id"]]
        assert record["snapshot"] == answer["snapshot"]
        assert [hit["chunk_id"] for hit in record["hits"]] == [hit["chunk_id"] for hit in answer["hits"]]
        assert record["hits"][0]["source"]["topic"] == stage.names.documents
        looked_up = (await stage.http.get(f"/v1/retrievals/{answer['retrieval_id']}")).json()
        assert looked_up == record


async def test_lag_is_told_against_the_end_of_the_log(stage: Stage) -> None:
    token = await stage.put("a.md", "# One\n\ntext")
    await stage.search("text", after=token)
    status: dict[str, Any] = {}
    async with asyncio.timeout(20):
        while status.get("lag_records") != 0:
            status = (await stage.http.get("/v1/status")).json()
    assert status["positions"] == token
    assert status["graph_position"] == 0
    assert status["readiness"]["kafka"] == "reachable"
    consumer = AIOKafkaConsumer(bootstrap_servers=stage.kafka)
    await consumer.start()
    ends = await consumer.end_offsets([TopicPartition(stage.names.documents, number) for number in range(2)])
    await consumer.stop()
    told = {each["partition"]: each["end"] for each in status["lag"] if each["topic"] == stage.names.documents}
    assert told == {partition.partition: end for partition, end in ends.items()}


async def test_a_token_of_a_partition_that_is_not_there_is_refused(stage: Stage) -> None:
    await stage.until(lambda: stage.service.log_watch.partition_count(stage.names.documents) == 2)
    response = await stage.http.get("/v1/search", params={"q": "x", "after": "7:1"})
    assert response.status_code == 400
    assert "0 to 1" in response.json()["detail"]


async def test_a_service_started_later_catches_up_from_the_tables_and_the_topic(
    stage: Stage, kafka: str, topic_prefix: str
) -> None:
    token = ",".join(
        [await stage.put(f"{number}.md", f"# Pier {number}\n\nBeacon {number} stands there.") for number in range(5)]
    )
    await stage.search("beacon", after=token)
    settings = settings_for(kafka, topic_prefix, stage.data_dir)
    async with serving(settings) as (http, app):
        later = Stage(http, app, stage.names, kafka, stage.data_dir)
        await later.until(lambda: later.service.readiness().ready)
        answer = await later.search("beacon", after=token, k=5)
        assert len(answer["hits"]) == 5
        assert answer["snapshot"]["graph_position"] == 4


async def test_searches_go_on_without_kafka_and_writes_say_so(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    names = TopicNames(topic_prefix)
    await ensure_topics(kafka, topic_specs(settings.kafka, FIRST))
    generation = make_generation(tmp_path)
    async with working(kafka, names, generation), serving(settings) as (http, app):
        stage = Stage(http, app, names, kafka, tmp_path)
        await stage.until(lambda: stage.service.readiness().ready)
        token = await stage.put("a.md", "# Quay\n\nThe quay is empty.")
        await stage.search("quay", after=token)
    nowhere = settings_for("127.0.0.1:1", topic_prefix, tmp_path, write_timeout_seconds=1, provenance_flush_seconds=0)
    async with serving(nowhere) as (http, app):
        stage = Stage(http, app, names, kafka, tmp_path)
        await stage.until(lambda: stage.service.readiness().ready)
        assert (await stage.search("quay", mode="keyword"))["hits"][0]["document_id"] == "a.md"
        began = time.monotonic()
        response = await http.put("/v1/documents/b.md", content="x", headers={"Content-Type": "text/plain"})
        assert response.status_code == 503
        assert time.monotonic() - began < 4
        assert (await http.get("/readyz")).json()["kafka"] == "unreachable"
        assert stage.service.provenance.dropped == 0
        assert len(stage.service.provenance) == 1


async def test_topics_that_are_not_there_yet_are_told_and_then_found(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    settings = settings_for(kafka, topic_prefix, tmp_path, write_timeout_seconds=1)
    async with serving(settings) as (http, app):
        stage = Stage(http, app, TopicNames(topic_prefix), kafka, tmp_path)
        await stage.until(lambda: stage.service.log_watch.reachable)
        assert "thalweg topics create" in str((await http.get("/readyz")).json()["notes"])
        response = await http.put("/v1/documents/a", content="x", headers={"Content-Type": "text/plain"})
        assert response.status_code == 503
        await ensure_topics(kafka, topic_specs(settings.kafka, FIRST))
        await stage.until(lambda: stage.service.log_watch.missing is None)
        await stage.until(lambda: stage.service.keeper.receipts_tail.problem is None)
        assert await stage.put("a", "x")


async def test_a_record_the_topic_does_not_take_is_a_413(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    small = settings.kafka.model_copy(update={"max_record_bytes": 100_000})
    await ensure_topics(kafka, topic_specs(small, FIRST))
    async with serving(settings) as (http, _):
        text = "a line of text that is stored\n" * 10_000
        response = await http.put("/v1/documents/a", content=text, headers={"Content-Type": "text/plain"})
        assert response.status_code == 413
        assert "max.message.bytes" in response.json()["detail"]
        batch = [{"id": "a", "content": text}, {"id": "b", "content": "short"}]
        response = await http.post("/v1/documents", json=batch)
        assert response.status_code == 413


@pytest.mark.parametrize("headers", [{}, EVENTS])
async def test_the_search_stops_when_its_client_hangs_up(tmp_path: Path, headers: dict[str, str]) -> None:
    make_scripted_generation(tmp_path)
    engine = ScriptedEngine(hits=[make_hit(1), make_hit(2)], hold_at=1)
    settings = settings_for("127.0.0.1:1", "none.", tmp_path, provenance_flush_seconds=0)
    async with serving(settings, load=lambda: engine) as (http, app):
        stage = Stage(http, app, TopicNames("none."), "127.0.0.1:1", tmp_path)
        await stage.until(lambda: stage.service.readiness().ready)
        with pytest.raises(httpx.ReadTimeout):
            await http.get("/v1/search", params={"q": "river"}, headers=headers, timeout=0.3)
        await stage.until(lambda: engine.cancelled == 1)
        assert stage.service.streams.reading == 0


async def test_a_silent_stream_is_kept_alive_by_comments(tmp_path: Path) -> None:
    make_scripted_generation(tmp_path)
    engine = ScriptedEngine(hits=[make_hit(1)], hold_at=0)
    settings = settings_for("127.0.0.1:1", "none.", tmp_path, keep_alive_seconds=0.05, provenance_flush_seconds=0)
    async with serving(settings, load=lambda: engine) as (http, app):
        stage = Stage(http, app, TopicNames("none."), "127.0.0.1:1", tmp_path)
        await stage.until(lambda: stage.service.readiness().ready)
        async with http.stream("GET", "/v1/search", params={"q": "river"}, headers=EVENTS) as response:
            lines = []
            async for line in response.aiter_lines():
                lines.append(line)
                if line.startswith(":"):
                    engine.go_on.set()
        assert ": keep-alive" in lines
        assert "event: done" in lines


async def test_a_key_is_a_document_key(stage: Stage) -> None:
    token = await stage.put("deep/er/est.md", "# Deep\n\nVery deep.")
    await stage.search("deep", after=token)
    assert DocumentKey("default", "deep/er/est.md") in stage.service.snapshot().text.documents(
        [DocumentKey("default", "deep/er/est.md")]
    )
