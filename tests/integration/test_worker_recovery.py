"""The worker is stopped, killed, robbed of its stores: it ends up as if nothing had happened."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource

from indexer.generation_folders import Generation, current_generation, read_manifest
from indexer.graph.snapshots import published_snapshots
from indexer.store_verification import verify_when_complete
from kafka_client.sync_clients import AdminClient, open_consumer
from query_api.index.worker_state import SILENT_SECONDS, WorkerMonitor
from schemas.errors import Exit
from schemas.runtime import read_state
from schemas.topics import TopicNames
from tests.support.constants import PROGRAM, given
from tests.support.kafka import plaintext, topic_id
from tests.support.processes.worker import WorkerProcess, client, running_worker
from tests.support.waiting import wait_until

SMALL_COMMITS = given({"streams.worker_agents.COMMIT_DOCUMENTS": 20})
DOCUMENTS = 250
PLACES = ("Basel", "Mainz", "Cologne", "Rotterdam", "Vienna", "Budapest", "Belgrade")


def history() -> list[tuple[str, str | None]]:
    """500 records: every document twice, each seventh deleted in the end, each eleventh brought back unchanged."""
    first = [(f"towns/{n}", f"Town number {n} lies near {PLACES[n % 7]} on a river.") for n in range(DOCUMENTS)]
    second: list[tuple[str, str | None]] = []
    for number, (key, text) in enumerate(first):
        changed = (
            f"Town number {number} has moved to {PLACES[(number + 3) % 7]}, says Mr. Miller of {PLACES[number % 7]}."
        )
        second.append((key, None if number % 7 == 0 else text if number % 11 == 0 else changed))
    return [*first, *second]


def digest_of(data_dir: Path) -> str:
    report = verify_when_complete(data_dir, 40)
    assert report.ok, report.differences
    assert report.documents == sum(text is not None for _, text in history()[DOCUMENTS:])
    return report.digest


@pytest.fixture(scope="module")
def undisturbed(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WorkerProcess, str]]:
    """A worker that has read the history in peace, and the digest of its stores."""
    with running_worker(kafka, "undisturbed.", tmp_path_factory.mktemp("undisturbed") / "data") as worker:
        with client(kafka, "undisturbed.") as user:
            user.receipts_of(user.publish_all(history()))
        yield worker, digest_of(worker.data_dir)


def test_load_through_stop_and_kill_leaves_undisturbed_stores(
    kafka: str, topic_prefix: str, tmp_path: Path, undisturbed: tuple[WorkerProcess, str]
) -> None:
    data_dir = tmp_path / "data"
    seconds = 0.0
    monitor = WorkerMonitor(data_dir, clock=lambda: seconds)

    def state() -> str:
        monitor.look()
        return monitor.status().state

    with (
        running_worker(kafka, topic_prefix, data_dir, PROGRAM, **SMALL_COMMITS) as worker,
        client(kafka, topic_prefix) as user,
    ):
        positions = user.publish_all(history())
        user.receipts_of(positions[:60])
        assert worker.stop() == Exit.OK
        stopped = read_state(data_dir)
        assert stopped is not None
        assert stopped.phase == "stopped"

        worker.start()
        user.receipts_of(positions[:160])
        wait_until(lambda: state() == "running", "the worker's state says so")
        worker.kill()
        assert state() == "running"
        seconds += SILENT_SECONDS + 1
        assert state() == "silent"
        assert any("its last sign of life" in note for note in monitor.notes())

        worker.start()
        user.receipts_of(positions)
        wait_until(lambda: state() == "running", "the worker's state says so")
        assert monitor.status().crashes_in_ten_minutes == 1
        assert digest_of(data_dir) == undisturbed[1]
        user.receipts_of(user.publish_all(history()))
        assert digest_of(data_dir) == undisturbed[1]


@pytest.mark.parametrize(
    "lost", [pytest.param(["lance"], id="text"), pytest.param(["snapshots"], id="graph", marks=pytest.mark.nightly)]
)
def test_a_store_can_be_deleted_and_comes_back(undisturbed: tuple[WorkerProcess, str], lost: list[str]) -> None:
    worker, digest = undisturbed
    assert worker.stop() == Exit.OK
    for store in lost:
        shutil.rmtree(generation_of(worker).root / store)
    worker.start()
    worker.wait_ready()
    wait_until(lambda: reached_the_end(worker), "the log is read again")
    assert digest_of(worker.data_dir) == digest


@pytest.mark.nightly  # of a graph store alone: unit tests of `graph/store`
def test_graph_is_remade_where_its_topic_lacks_what_follows_it(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    data_dir, kept = tmp_path / "data", tmp_path / "kept"
    with running_worker(kafka, topic_prefix, data_dir) as worker, client(kafka, topic_prefix) as user:
        user.receipts_of(user.publish_all(history()[:DOCUMENTS]))
        assert verify_when_complete(data_dir, 40).ok
        snapshots = generation_of(worker).snapshots_dir
        shutil.copytree(snapshots, kept)
        user.receipts_of(user.publish_all(history()[DOCUMENTS:]))
        digest = digest_of(data_dir)
        worker.kill()
        shutil.rmtree(snapshots)
        kept.rename(snapshots)
        graph = TopicPartition(worker.contributions, 0)
        with closing(AdminClient(plaintext(kafka))) as admin:
            admin.alter_configs([ConfigResource("TOPIC", graph.topic, {"cleanup.policy": "delete"})])
            admin.delete_records({graph: -1})
        worker.start()
        wait_until(lambda: "made again from the log for the graph" in worker.said(), "the graph is being made again")
        positions = user.publish_all(history())
        worker.kill()
        worker.start()
        worker.wait_ready()
        user.receipts_of(positions)
        assert digest_of(data_dir) == digest
        assert "which is made again from the log" in worker.said()


@pytest.mark.nightly  # of the trimmer alone: unit tests of `runtime/trimming`
def test_worker_goes_on_from_topic_that_it_has_trimmed(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    with running_worker(kafka, topic_prefix, tmp_path) as worker, client(kafka, topic_prefix) as user:
        for number in range(4):
            user.receipts_of(user.publish_all(history()[number * 5 : number * 5 + 5]))
            assert verify_when_complete(tmp_path, 40).ok
        digest = verify_when_complete(tmp_path, 40).digest
        contributions = TopicPartition(worker.contributions, 0)
        snapshots = published_snapshots(generation_of(worker).snapshots_dir)
        assert len(snapshots) == 3
        worker.kill()
        worker.start()
        worker.wait_ready()
        with closing(open_consumer(plaintext(kafka))) as consumer:
            wait_until(lambda: consumer.beginning_offsets([contributions])[contributions] > 0, "the topic is trimmed")
            assert consumer.beginning_offsets([contributions])[contributions] == snapshots[-1].graph_position + 1
        worker.kill()
        shutil.rmtree(generation_of(worker).snapshots_dir / snapshots[0].name)
        worker.start()
        worker.wait_ready()
        assert verify_when_complete(tmp_path, 40).digest == digest
        assert "made again" not in worker.said()


@pytest.mark.nightly
def test_stores_made_again_have_a_graph_topic_of_their_own(
    undisturbed: tuple[WorkerProcess, str], tmp_path: Path
) -> None:
    worker, digest = undisturbed
    before = generation_of(worker)
    recorded = read_manifest(before).log
    assert recorded is not None
    assert recorded.documents == topic_id(worker.kafka, TopicNames(worker.prefix).documents)
    assert worker.stop() == Exit.OK
    for name in ("CURRENT", "generations"):
        (worker.data_dir / name).rename(tmp_path / name)
    worker.start()
    worker.wait_ready()
    assert generation_of(worker).name != before.name
    wait_until(lambda: reached_the_end(worker), "the log is read again")
    assert digest_of(worker.data_dir) == digest


def generation_of(worker: WorkerProcess) -> Generation:
    generation = current_generation(worker.data_dir)
    assert generation is not None
    return generation


def reached_the_end(worker: WorkerProcess) -> bool:
    """Whether both stores say they hold everything. A sum of offsets, as the records lie on two partitions."""
    documents = [
        worker.metric("thalweg_store_position", store="lance", topic=f"{worker.prefix}documents.v1", partition=number)
        for number in ("0", "1")
    ]
    lag = worker.metric("thalweg_ingest_lag_records", topic=worker.contributions, partition="0")
    return sum(documents) + 2 == len(history()) and lag == 0
