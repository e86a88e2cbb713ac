"""The worker and the log it reads: known by the topics' ids, followed when it grows, never mistaken for another."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

from indexer.generations import current_generation, read_manifest
from schemas.receipts import decode_receipt
from schemas.topics import TopicNames
from streams.errors import WorkerExit
from streams.kafka.topics import murmur2_partition, topic_id
from tests.support.kafka import plaintext
from tests.support.processes.worker import PARTITIONS, WorkerProcess, client, running_worker, wait_for
from tests.support.waiting import wait_until


async def administer(kafka: str, *, delete: Sequence[str] = (), partitions: tuple[str, int] | None = None) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        if delete:
            await admin.delete_topics(list(delete))
        if partitions is not None:
            await admin.create_partitions({partitions[0]: NewPartitions(partitions[1])})
    finally:
        await admin.close()


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


async def test_stores_made_again_read_no_contribution_of_the_old_ones(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    with running_worker(kafka, topic_prefix, tmp_path) as worker:
        async with client(kafka, topic_prefix) as user:
            await user.receipts_of([await user.publish("default/a", "The Rhine is a river.")])
        before = current_generation(tmp_path)
        assert before is not None
        recorded = read_manifest(before).log
        assert recorded is not None
        assert recorded.documents == await topic_id(plaintext(kafka), TopicNames(topic_prefix).documents)
        assert await asyncio.to_thread(worker.stop) == 0
        aside = tmp_path / "aside"
        aside.mkdir()
        for name in ("CURRENT", "generations"):
            (tmp_path / name).rename(aside / name)
        worker.start()
        await asyncio.to_thread(worker.wait_ready)
        after = current_generation(tmp_path)
        assert after is not None
        assert after.name != before.name
        await wait_for(
            lambda: worker.metric("thalweg_store_position", store="kuzu", topic=worker.graph_topic) == 0,
            "the log of documents is read again, into a graph topic of its own",
        )


async def test_another_log_of_the_same_name_is_refused_and_the_stores_can_be_published_again(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    names = TopicNames(topic_prefix)
    with running_worker(kafka, topic_prefix, tmp_path / "old") as worker:
        async with client(kafka, topic_prefix) as user:
            await user.receipts_of([await user.publish("rivers/rhine", "The Rhine is a river.", title="Rhine")])
            await user.receipts_of([await user.publish("rivers/gone", None)])
        assert await asyncio.to_thread(worker.stop) == 0
        await administer(kafka, delete=[names.documents])
        said = await asyncio.to_thread(refused_start, worker)
    assert "filled from another log" in said
    assert "thalweg export" in said
    assert "delete the data directory" not in said
    exported = tmp_path / "documents.jsonl"
    thalweg("export", "--data-dir", str(tmp_path / "old"), str(exported))
    with running_worker(kafka, topic_prefix, tmp_path / "new") as worker:
        async with client(kafka, topic_prefix) as user:
            (line,) = exported.read_bytes().splitlines()
            receipt = await user.receipt(await user.publish_bytes("rivers/rhine", line))
            assert (receipt.outcome, receipt.chunks) == ("indexed", 1)


async def test_partitions_added_while_the_worker_runs_are_followed(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    names = TopicNames(topic_prefix)
    with running_worker(kafka, topic_prefix, tmp_path) as worker:
        await administer(kafka, partitions=(names.documents, 5))
        wait_until(lambda: worker.process.poll() is not None, "the worker sees them")
        assert worker.process.returncode == WorkerExit.RESTART
        worker.start()
        await asyncio.to_thread(worker.wait_ready)
        async with client(kafka, topic_prefix) as user:
            for partition in range(5):
                key = f"default/{partition}".encode()
                value = b'{"id": "%d", "content": "Text."}' % partition
                await user.producer.send_and_wait(names.documents, value, key=key, partition=partition)
            await wait_for(
                lambda: worker.metric("thalweg_documents_total", outcome="indexed") == 5, "all partitions are read"
            )
            receipts = [decode_receipt(record.value) for record in await user.read_all(names.indexed, partitions=5)]
    assert {(receipt.partition, receipt.outcome) for receipt in receipts} == {(each, "indexed") for each in range(5)}


@pytest.mark.parametrize("partition", [0, 1])
async def test_a_record_in_a_partition_of_another_partitioner_is_noted(
    kafka: str, topic_prefix: str, tmp_path: Path, partition: int
) -> None:
    with running_worker(kafka, topic_prefix, tmp_path) as worker:
        async with client(kafka, topic_prefix) as user:
            sent = await user.producer.send_and_wait(
                user.names.documents, b'{"id": "a", "content": "Text."}', key=b"default/a", partition=partition
            )
            receipt = await user.receipt((sent.partition, sent.offset))
        expected = murmur2_partition(PARTITIONS)(b"default/a")
        assert bool(receipt.notes) == (partition != expected)
        assert worker.metric("thalweg_misplaced_records_total") == (partition != expected)
