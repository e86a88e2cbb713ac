"""`thalweg verify` on a real log and real stores: what balances, and what it names where something is gone."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import lancedb
import msgspec
import pyarrow as pa
import pytest

from indexer.generation_folders import Generation, current_generation
from indexer.graph.store import GraphStore
from indexer.integrity.files import CHECKSUMS
from indexer.integrity.row_checksums import with_checksums
from schemas.errors import Exit
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from tests.support.processes.worker import Client, WorkerProcess, client, partition_of, running_worker

PREFIX = "verified."
BAD = b'{"id": "bad", "content": '


@pytest.fixture(scope="module")
def worker(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    with running_worker(kafka, PREFIX, tmp_path_factory.mktemp("verified") / "data") as running:
        yield running


def publish(user: Client) -> None:
    """Documents, of which some are replaced, deleted, of an older version, in two partitions, or refused."""
    positions = user.publish_all([(f"towns/{number}", f"Town {number} lies on the Rhine.") for number in range(40)])
    positions += user.publish_all([(f"towns/{number}", None) for number in range(0, 40, 5)])
    positions += user.publish_all([(f"towns/{number}", f"Town {number} has grown.") for number in range(1, 40, 4)])
    for version in (3, 1):
        positions.append(user.publish("towns/versioned", f"Edition {version} of the town.", version=version))
    other = 1 - partition_of("towns/7")
    positions.append(user.send(user.names.documents, b"towns/7", None, other))
    positions.append(user.publish_bytes("towns/bad", BAD))
    user.receipts_of(positions)


def verified(worker: WorkerProcess, *options: str, kafka: str | None = None) -> tuple[int, dict[str, Any], str]:
    """(exit code, the report, standard error) of the command as a user types it."""
    done = subprocess.run(
        [sys.executable, "-m", "thalweg", "verify", "--json", "--data-dir", str(worker.data_dir), *options],
        env=worker.environment | ({} if kafka is None else {"THALWEG_KAFKA__BOOTSTRAP_SERVERS": kafka}),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, dict(json.loads(done.stdout)) if done.stdout else {}, done.stderr


def generation_of(worker: WorkerProcess) -> Generation:
    generation = current_generation(worker.data_dir)
    assert generation is not None
    return generation


def named(report: dict[str, Any]) -> dict[str, list[str]]:
    return {each["what"]: each["documents"] for each in report["ledger"]["imbalances"]}


def test_the_ledger_balances_beside_a_running_worker(worker: WorkerProcess) -> None:
    with client(worker.kafka, PREFIX) as user:
        publish(user)
        records = len(user.read_all(user.names.documents))
    code, report, _ = verified(worker)
    assert (code, report["ok"], report["ledger"]["balanced"]) == (Exit.OK, True, True)
    ledger = report["ledger"]
    assert ledger["dead_lettered"] == 1
    assert ledger["records"] == sum(ledger[name] for name in ("indexed", "superseded", "deleted", "dead_lettered"))
    assert ledger["records"] <= records  # compaction may have taken some
    assert ledger["indexed"] == report["documents"]


def test_a_sample_derived_again_is_what_is_stored(worker: WorkerProcess) -> None:
    code, report, _ = verified(worker, "--deep", "--sample", "12", "--seed", "7")
    sample = report["sample"]
    assert (code, sample["documents"], sample["differing"], sample["skipped"]) == (Exit.OK, 12, [], [])


@pytest.mark.nightly
def test_verify_without_kafka_compares_the_stores_alone(worker: WorkerProcess) -> None:
    code, report, _ = verified(worker, kafka="127.0.0.1:1")
    assert (code, report["ok"], report["ledger"]) == (Exit.OK, True, None)
    assert "The log was not read, so only the stores were compared" in report["log_note"]


def test_stored_rows_that_differ_from_the_log_are_named(worker: WorkerProcess) -> None:
    """Rows and files that match their checksums, and are not what the log makes of them."""
    before = verified(worker, "--no-log")[1]
    assert worker.stop() == Exit.OK
    generation = generation_of(worker)
    chunks = lancedb.connect(generation.lance_dir).open_table("chunks")
    of_text = chunks.search().where("key = 'towns/2'").to_arrow()
    of_vector = chunks.search().where("key = 'towns/3'").to_arrow()
    rows = of_text.to_pylist() + of_vector.to_pylist()
    rows[0]["text"] = "Another text."
    rows[1]["vector"] = [-number for number in rows[1]["vector"]]
    changed = pa.Table.from_pylist(rows, schema=chunks.schema)
    chunks.merge_insert("row").when_matched_update_all().execute(with_checksums("chunks", changed))
    (generation.lance_dir / CHECKSUMS).unlink()
    graph = GraphStore.open(generation)
    [contributed] = [change for change in contributions(worker) if change.document_id == "4"]
    about = [msgspec.structs.replace(each, surface="Elsewhere") for each in contributed.about]
    key = DocumentKey("towns", "4")
    graph.apply([(key, msgspec.structs.replace(contributed, about=about))], graph.position())
    graph.snapshot()
    code, report, _ = verified(worker, "--deep", "--sample", "100")
    assert (code, report["ledger"]["balanced"]) == (Exit.FAILED, True)
    assert report["sample"]["differing"] == [
        "towns/2: text of its chunks",
        "towns/3: a vector, by 2.000 of its cosine",
        "towns/4: its contribution to the graph",
    ]
    worker.start()
    worker.wait_ready()
    code, report, _ = verified(worker, "--deep", "--repair")
    assert (code, report["repair"]) == (Exit.OK, {"repaired": 3, "kept": 0, "failed": 0, "graph": False})
    code, report, _ = verified(worker, "--deep", "--sample", "100")
    assert (code, report["sample"]["differing"], report["digest"]) == (Exit.OK, [], before["digest"])


def contributions(worker: WorkerProcess) -> list[Contribution]:
    with client(worker.kafka, PREFIX) as user:
        return list(user.graph(worker).values())


@pytest.mark.nightly  # of reports alone: unit tests of `store_verification`
def test_verify_without_a_graph_snapshot_is_not_complete(worker: WorkerProcess) -> None:
    assert worker.stop() == Exit.OK
    snapshots = generation_of(worker).snapshots_dir
    shutil.rmtree(snapshots)
    snapshots.mkdir()
    for options in ((), ("--repair",)):
        code, report, _ = verified(worker, "--wait", "0", *options)
        assert (code, report["ok"], report["complete"]) == (Exit.INCOMPLETE, False, False)
        assert (report["differences"], report["ledger"]["balanced"]) == ([], True)
    worker.start()
    code, report, _ = verified(worker, "--wait", "120")
    assert (code, report["ok"], report["complete"]) == (Exit.OK, True, True)


def test_documents_lost_by_the_stores_are_named_and_repaired(worker: WorkerProcess) -> None:
    before = verified(worker)[1]
    assert worker.stop() == Exit.OK
    generation = generation_of(worker)
    tables = lancedb.connect(generation.lance_dir)
    for table in ("documents", "chunks", "passages"):
        tables.open_table(table).delete("key IN ('towns/2', 'towns/3')")
    (generation.lance_dir / CHECKSUMS).unlink()
    code, report, _ = verified(worker)
    assert (code, report["ok"]) == (Exit.FAILED, False)
    ((what, documents),) = named(report).items()
    assert "neither in the stores nor among the dead letters" in what
    assert sorted(each.partition(" ")[0] for each in documents) == ["towns/2", "towns/3"]
    assert any("towns/2 has revision None in the text" in each for each in report["differences"])

    code, report, complaint = verified(worker, "--repair")
    assert (code, "start it with 'thalweg up'" in complaint) == (Exit.FAILED, True)
    assert report["repair"]["problem"] in complaint
    worker.start()
    worker.wait_ready()
    code, report, _ = verified(worker, "--repair")
    assert (code, report["repair"]) == (Exit.OK, {"repaired": 2, "kept": 0, "failed": 0, "graph": False})
    code, report, _ = verified(worker)
    assert (code, report["digest"]) == (Exit.OK, before["digest"])


def test_repair_of_one_document_or_the_graph_leaves_equal_stores(worker: WorkerProcess) -> None:
    before = verified(worker)[1]
    process = worker.process.pid
    code, report, _ = verified(worker, "--repair", "--document", "towns/9", "--document", "towns/never")
    assert (code, report["repair"]) == (Exit.OK, {"repaired": 1, "kept": 0, "failed": 0, "graph": False})
    code, report, _ = verified(worker, "--repair", "--store", "graph")
    assert (code, report["repair"]) == (Exit.OK, {"repaired": 0, "kept": 0, "failed": 0, "graph": True})
    assert "documents are made again from the log for the graph" in worker.said()
    code, report, _ = verified(worker)
    assert (code, report["ok"], report["digest"]) == (Exit.OK, True, before["digest"])
    assert (worker.process.poll(), worker.process.pid) == (None, process)
