"""The worker on a real Kafka and real stores: what goes in, what comes of it. All stories share one worker."""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from indexer.generation_folders import current_generation
from indexer.graph.snapshots import latest_snapshot, read_graph
from indexer.graph.tables import GraphTables
from indexer.read.community_reader import published_communities, read_communities
from indexer.schema import DocumentRow
from indexer.store_verification import verify_when_complete
from kafka_client.partitioner import murmur2_partition
from query_api.index.text.text_snapshot import TextReader
from schemas.ids import DocumentKey
from schemas.settings import KafkaSettings
from schemas.topics import TopicSpec
from streams.kafka.topics import ensure_topics
from tests.support.kafka import Sent, plaintext, send
from tests.support.processes.worker import PARTITIONS, WorkerProcess, client, partition_of, running_worker
from tests.support.waiting import wait_until

TEXT = "The Rhine flows past Basel. Basel lies in Switzerland. The Rhine is a river of Europe."


def row_of(worker: WorkerProcess, key: str) -> DocumentRow | None:
    generation = current_generation(worker.data_dir)
    assert generation is not None
    name = DocumentKey.parse(key)
    return TextReader.open(generation).snapshot().documents([name]).get(name)


def graph_of(worker: WorkerProcess) -> GraphTables:
    generation = current_generation(worker.data_dir)
    assert generation is not None
    snapshot = latest_snapshot(generation.snapshots_dir)
    assert snapshot is not None
    return read_graph(generation.snapshots_dir, snapshot)


def test_envelope_is_indexed_contributed_and_receipted(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        receipt = user.receipt(user.publish("rivers/rhine", TEXT, title="Rhine", version=3))
        assert (receipt.outcome, receipt.version, receipt.key) == ("indexed", 3, "rivers/rhine")
        assert receipt.chunks >= 1
        assert receipt.entities >= 2
        assert set(receipt.seconds) >= {"decode", "prepare", "embed", "store", "contribute"}
        row = row_of(worker, "rivers/rhine")
        assert row is not None
        assert (row.title, row.version, row.offset) == ("Rhine", 3, receipt.offset)
        commit = next(each for each in user.commits(worker) if DocumentKey("rivers", "rhine") in each.changes)
        change = commit.changes[DocumentKey("rivers", "rhine")]
        assert (change.contribution and change.contribution.revision) == receipt.revision
        assert commit.reached[receipt.partition][0] >= receipt.offset
    report = verify_when_complete(worker.data_dir, 30)
    assert report.ok, report.differences


def test_entities_that_documents_relate_become_communities(worker: WorkerProcess) -> None:
    text = "Basel lies on the Rhine. Mainz lies on the Rhine. Basel and Mainz trade with Cologne on the Rhine."
    with client(worker.kafka, worker.prefix) as user:
        user.receipts_of([user.publish(f"trade/{number}", f"{text} Note {number}.") for number in range(3)])
    generation = current_generation(worker.data_dir)
    assert generation is not None

    def communities() -> list[dict[str, Any]]:
        for newest in published_communities(generation.communities_dir)[:1]:
            with suppress(FileNotFoundError):
                rows = read_communities(generation.communities_dir, newest).communities.to_pylist()
                return [row for row in rows if row["collection"] == "trade"]
        return []

    wait_until(lambda: bool(communities()), "the communities are published")
    found = communities()[0]
    assert {"Basel", "Cologne", "Mainz", "Rhine"} >= set(found["title"].split(", "))
    assert found["summary"][0]["text"] in text
    assert found["summary"][0]["document_id"] in {"0", "1", "2"}


def test_graph_is_published_for_cypher(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        user.receipt(user.publish("cypher/rhine", TEXT, title="Rhine"))
    generation = current_generation(worker.data_dir)
    assert generation is not None
    wait_until(lambda: worker.metric("thalweg_graph_publications_total", outcome="done"), "a graph is published")
    command = [sys.executable, "-m", "thalweg", "cypher", "MATCH (d:Document) RETURN count(*) AS documents", "--json"]
    answer = subprocess.run(command, env=worker.environment, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout)[0]["documents"] >= 1
    assert f"Graph of generation {generation.name} as of " in answer.stderr
    assert worker.metric("thalweg_graph_publications_total", outcome="failed") == 0


def test_updates_and_deletes_are_exact_in_both_stores(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        user.publish("lakes/one", "Lake Constance lies by Bregenz and Lindau. " * 30, title="Lake Constance")
        user.publish("lakes/two", "Lake Geneva lies by Lausanne.", title="Lake Geneva")
        user.publish("lakes/one", "Lake Zurich lies by Rapperswil.", title="Lake Zurich")
        last = user.publish("lakes/two", None)
        receipts = user.receipts_of([last, (partition_of("lakes/one"), last[1])])
        assert receipts[0].outcome == "deleted"
        report = verify_when_complete(worker.data_dir, 30)
        assert report.ok, report.differences
        wait_until(lambda: "lausanne" not in names(worker), "the deleted document's names are gone")
        found = names(worker)
        assert "rapperswil" in found
        assert not found & {"lake geneva", "lausanne", "bregenz", "lindau", "lake constance"}
    one, two = row_of(worker, "lakes/one"), row_of(worker, "lakes/two")
    assert one is not None
    assert two is not None
    assert (one.title, one.chunks, two.live) == ("Lake Zurich", 1, False)


def names(worker: WorkerProcess) -> set[str]:
    entities = graph_of(worker).entities
    lakes = [row for row in entities.to_pylist() if row["collection"] == "lakes"]
    return {row["name"] for row in lakes}


def test_dead_letter_too_large_for_its_topic_is_sent_empty(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        graph = worker.contributions
        foreign = b"x" * (KafkaSettings().max_record_bytes - 150)  # with the headers of a dead letter it is too large
        _, offset = user.send(graph, b"large/foreign", foreign)
        user.receipt(user.publish("large/after", "The graph goes on."))
        wait_until(lambda: worker.metric("thalweg_dead_letters_total", reason="bad_contribution") == 1, "it is buried")
        letters = {message.key: message for message in user.read_all(user.names.dead_letters)}
    letter = letters[b"large/foreign"]
    headers = {name: value.decode() for name, value in letter.headers}
    assert letter.value == b""
    assert headers["thalweg.value.omitted"] == f"{len(foreign)} bytes"
    assert (headers["__connect.errors.topic"], headers["__connect.errors.offset"]) == (graph, str(offset))
    report = verify_when_complete(worker.data_dir, 30)
    assert report.ok, report.differences


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_a_record_in_a_partition_of_another_partitioner_is_noted(worker: WorkerProcess, partition: int) -> None:
    before = worker.metric("thalweg_misplaced_records_total")
    with client(worker.kafka, worker.prefix) as user:
        document = b'{"id": "a", "content": "Text."}'
        receipt = user.receipt(user.send(user.names.documents, b"default/a", document, partition))
    is_misplaced = partition != murmur2_partition(PARTITIONS)(b"default/a")
    assert bool(receipt.notes) == is_misplaced
    assert worker.metric("thalweg_misplaced_records_total") - before == is_misplaced


def test_rows_of_a_mapped_topic_become_documents_once(kafka: str, tmp_path: Path) -> None:
    """Also those that come while the worker is away, and to a rebuild nothing comes again."""
    prefix, topic = f"mapped-{uuid4().hex[:8]}.", f"shop-{uuid4().hex[:8]}"
    mapping = {topic: {"collection": "rivers", "content": "text", "metadata": {"length": "km"}}}
    options = {"THALWEG_INGEST__MAPPINGS": json.dumps(mapping)}

    def row(number: int, text: str | None) -> Sent:
        after = None if text is None else {"id": number, "text": text, "km": 1233}
        change = {"before": {"id": number}, "after": after, "op": "d" if text is None else "c", "source": {}}
        return Sent(str(number).encode(), json.dumps(change).encode())

    asyncio.run(ensure_topics(plaintext(kafka), [TopicSpec(topic, 3, {})]))
    send(kafka, topic, row(1, TEXT), row(2, "The Main flows into the Rhine."), Sent(b"9", b"no row"), row(2, None))
    with running_worker(kafka, prefix, tmp_path / "data", **options) as worker, client(kafka, prefix) as user:
        wait_until(lambda: row_of(worker, "rivers/1") is not None, "the row is a document")
        found = row_of(worker, "rivers/1")
        assert found is not None
        assert found.metadata["length"] == 1233
        wait_until(lambda: bool(user.read_all(user.names.dead_letters)), "what is no row is a dead letter")
        sent = sorted(record.key for record in user.read_all(user.names.documents))
        worker.stop()
    send(kafka, topic, row(3, TEXT))
    with running_worker(kafka, prefix, tmp_path / "data", **options) as worker, client(kafka, prefix) as user:
        wait_until(lambda: row_of(worker, "rivers/3") is not None, "the row that came meanwhile is a document")
        assert sorted(record.key for record in user.read_all(user.names.documents)) == [*sent, b"rivers/3"]
        gone = row_of(worker, "rivers/2")
        assert gone is not None
        assert gone.deleted_at_ms is not None
