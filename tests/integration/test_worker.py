"""The worker on a real Kafka and real stores: what goes in, what comes of it. All stories share one worker."""

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

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
from schemas.provenance import Retrieval, encode_retrieval
from schemas.settings import KafkaSettings
from tests.support.processes.worker import PARTITIONS, WorkerProcess, client, partition_of
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


def test_an_envelope_ends_up_searchable_in_the_graph_and_with_a_receipt(worker: WorkerProcess) -> None:
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


def test_raw_content_takes_its_id_from_the_key_and_its_metadata_from_headers(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        headers = [("content-type", b"text/html"), ("thalweg-lang", b"en")]
        page = b"<html><head><title>Danube</title></head><body><p>The Danube flows east.</p></body></html>"
        receipt = user.receipt(user.publish_bytes("rivers/a/danube.html", page, headers))
        row = row_of(worker, "rivers/a/danube.html")
    assert receipt.outcome == "indexed"
    assert row is not None
    assert (row.title, row.content_type, row.metadata) == ("Danube", "text/html", {"lang": "en"})


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


def test_poison_among_good_ones_is_buried_with_its_bytes_and_a_reason(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        poison = {
            "bad/json": b'{"id": "json", "content": "cut',
            "bad/type": b'{"id": 7, "collection": "bad", "content": "x"}',
            "bad/empty": b'{"id": "empty", "collection": "bad", "content": "  "}',
            "bad/media": b'{"id": "media", "collection": "bad", "content": "x", "content_type": "image/png"}',
            "bad/other": b'{"id": "another", "collection": "bad", "content": "x"}',
            "nokey": b"{}",
        }
        positions = {}
        good = []
        for key, value in poison.items():
            good.append(user.publish(f"good/{key}", "A good neighbour."))
            positions[key] = user.publish_bytes(key, value)
        assert [receipt.outcome for receipt in user.receipts_of(good)] == ["indexed"] * len(good)
        receipts = user.receipts_of(positions.values())
        assert [receipt.outcome for receipt in receipts] == ["dead_lettered"] * len(poison)
        assert all(receipt.reason and receipt.message for receipt in receipts)
        letters = {message.key.decode(): message for message in user.read_all(user.names.dead_letters)}
        assert {key: letters[key].value for key in poison} == poison
        for key, (partition, offset) in positions.items():
            headers = dict(letters[key].headers)
            assert headers["__connect.errors.topic"].decode() == user.names.documents
            assert headers["__connect.errors.offset"].decode() == str(offset)
            assert headers["__connect.errors.partition"].decode() == str(partition) == str(partition_of(key))
            assert headers["thalweg.reason"]
    assert worker.metric("thalweg_dead_letters_total", reason="not_json") >= 1


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


def test_an_older_version_or_an_upsert_after_its_tombstone_never_wins(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        first = user.publish("versions/a", "Version five.", version=5)
        late = user.publish("versions/a", "Version four, late.", version=4)
        headers = [("ce_specversion", b"1.0"), ("ce_type", b"page.deleted"), ("ce_sequence", b"6")]
        gone = user.publish_bytes("versions/a", b"{}", headers)
        ghost = user.publish("versions/a", "A ghost.", version=6)
        receipts = user.receipts_of([first, late, gone, ghost])
    assert receipts[1].outcome == receipts[3].outcome == "superseded"
    assert receipts[2].outcome == "deleted"
    assert receipts[3].superseded_by == f"{gone[0]}:{gone[1]}"
    row = row_of(worker, "versions/a")
    assert row is not None
    assert (row.live, row.version) == (False, 6)


def test_the_provenance_of_a_retrieval_is_kept(worker: WorkerProcess) -> None:
    retrieval = Retrieval(
        retrieval_id="r-1", query="who?", collection=None, mode="hybrid", at_ms=1, snapshot={}, parameters={}, hits=[]
    )
    with client(worker.kafka, worker.prefix) as user:
        for _ in range(2):
            user.send(user.names.provenance, b"r-1", encode_retrieval(retrieval))
    generation = current_generation(worker.data_dir)
    assert generation is not None

    def kept() -> bool:
        return TextReader.open(generation).snapshot().retrieval("r-1") == retrieval

    wait_until(kept, "the retrieval is in its table")


def test_lag_goes_to_zero_and_the_metrics_tell_it(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        user.receipts_of(user.publish_all((f"lag/{number}", "A few words.") for number in range(20)))

    def told() -> bool:
        return (
            all(
                worker.metric("thalweg_ingest_lag_records", topic=f"{worker.prefix}documents.v1", partition=str(number))
                == 0
                for number in (0, 1)
            )
            and worker.metric("thalweg_store_position", store="graph", topic=worker.contributions) > 0
        )

    wait_until(told, "the lag is told to be zero")
    assert worker.metric("thalweg_documents_total", outcome="indexed") >= 20
    assert worker.metric("thalweg_stage_seconds_count", stage="embed") > 0


def test_a_record_too_large_for_the_limits_is_buried_whole(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        large = b"x" * (11 * 1024 * 1024)
        receipt = user.receipt(user.publish_bytes("large/one", large, [("content-type", b"text/plain")]))
        assert (receipt.outcome, receipt.reason) == ("dead_lettered", "too_large")
        letters = {message.key: message.value for message in user.read_all(user.names.dead_letters)}
        assert letters[b"large/one"] == large


def test_a_dead_letter_too_large_for_its_topic_is_sent_empty_and_says_where_its_bytes_are(
    worker: WorkerProcess,
) -> None:
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
