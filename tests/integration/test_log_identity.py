"""The worker and the log it reads: known by the topics' ids, followed when it grows, never mistaken for another."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from indexer.store_verification import verify_when_complete
from kafka_client.sync_clients import AdminClient
from schemas.receipts import decode_receipt
from schemas.topics import TopicNames
from streams.errors import WorkerExit
from tests.support.kafka import plaintext
from tests.support.processes.worker import WorkerProcess, client, running_worker
from tests.support.waiting import wait_until


def refused_start(worker: WorkerProcess) -> str:
    """What a worker says that ends by itself before it is ready."""
    worker.start()
    wait_until(lambda: worker.process.poll() is not None, "the worker ends by itself")
    assert worker.process.returncode not in (0, WorkerExit.RESTART)
    return worker.said()


def thalweg(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "thalweg", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_log_of_the_same_name_is_refused_and_stores_are_exported(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    names = TopicNames(topic_prefix)
    with running_worker(kafka, topic_prefix, tmp_path / "old") as worker:
        with client(kafka, topic_prefix) as user:
            user.receipts_of([user.publish("rivers/rhine", "The Rhine is a river.", title="Rhine")])
            user.receipts_of([user.publish("rivers/gone", None)])
        assert worker.stop() == 0
        with closing(AdminClient(plaintext(kafka))) as admin:
            admin.delete_topics([names.documents])
        said = refused_start(worker)
    assert "filled from another log" in said
    assert "thalweg export" in said
    assert "delete the data directory" not in said
    exported = tmp_path / "documents.jsonl"
    thalweg("export", "--data-dir", str(tmp_path / "old"), str(exported))
    with running_worker(kafka, topic_prefix, tmp_path / "new") as worker, client(kafka, topic_prefix) as user:
        (line,) = exported.read_bytes().splitlines()
        receipt = user.receipt(user.publish_bytes("rivers/rhine", line))
        assert (receipt.outcome, receipt.chunks) == ("indexed", 1)


@pytest.mark.nightly  # of a graph store alone: unit tests of `graph/store`
def test_lost_contributions_are_made_again_from_the_log(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    """Stores of an earlier version, whose graph came by another topic, begin in the same way."""
    with running_worker(kafka, topic_prefix, tmp_path) as worker, client(kafka, topic_prefix) as user:
        user.receipts_of([user.publish(f"rivers/{name}", f"The {name} is a river.") for name in ("Rhine", "Main")])
        digest = verify_when_complete(tmp_path, 30).digest
        worker.kill()
        with closing(AdminClient(plaintext(kafka))) as admin:
            admin.delete_topics([worker.contributions])
        worker.start()
        worker.wait_ready()
        assert verify_when_complete(tmp_path, 30).digest == digest
        user.receipt(user.publish("rivers/Lahn", "The Lahn is a river."))
        report = verify_when_complete(tmp_path, 30)
        assert (report.ok, report.documents, report.graph_position >= 0) == (True, 3, True)


def test_partitions_added_while_the_worker_runs_are_followed(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    names = TopicNames(topic_prefix)
    with running_worker(kafka, topic_prefix, tmp_path) as worker:
        with closing(AdminClient(plaintext(kafka))) as admin:
            admin.create_partitions({names.documents: 5})
        wait_until(lambda: worker.process.poll() is not None, "the worker sees them")
        assert worker.process.returncode == WorkerExit.RESTART
        worker.start()
        worker.wait_ready()
        with client(kafka, topic_prefix) as user:
            for partition in range(5):
                key = f"default/{partition}".encode()
                value = b'{"id": "%d", "content": "Text."}' % partition
                user.send(names.documents, key, value, partition)
            wait_until(
                lambda: worker.metric("thalweg_documents_total", outcome="indexed") == 5, "all partitions are read"
            )
            receipts = [decode_receipt(record.value) for record in user.read_all(names.indexed)]
    assert {(receipt.partition, receipt.outcome) for receipt in receipts} == {(each, "indexed") for each in range(5)}
