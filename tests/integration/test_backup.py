"""A backup taken while a worker is loading; another machine starts from it, and follows the log beside the first."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from indexer.generation_folders import Generation, current_generation
from indexer.lance_connection import connect
from indexer.read.lance_reader import stored_positions
from indexer.schema import POSITIONS
from indexer.store_verification import verify_when_complete
from kafka_client.sync_clients import AdminClient
from tests.support.constants import PROGRAM, given
from tests.support.kafka import plaintext
from tests.support.processes.worker import WorkerProcess, client, running_worker
from tests.support.waiting import wait_until

SMALL_COMMITS = given({"streams.worker_agents.COMMIT_DOCUMENTS": 20})
BATCH = 30
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 10))]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "thalweg", *arguments]


def thalweg(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False)


def thalweg_json(*arguments: str) -> dict[str, Any]:
    done = thalweg(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def history(seed: int) -> Iterator[tuple[str, str | None]]:
    """Documents that come, change and go, without end."""
    order = random.Random(seed)
    for number in count():
        yield f"mills/{number}", f"Mill number {number} stands on the Töss and grinds for Winterthur."
        other = order.randrange(number + 1)
        if number % 3 == 0:
            yield f"mills/{other}", f"Mill number {other} was bought by Mr. Wyss of Embrach in {1800 + number}."
        elif number % 7 == 0:
            yield f"mills/{other}", None


def digest_of(data_dir: Path) -> str:
    report = verify_when_complete(data_dir, 60)
    assert report.ok, report
    return report.digest


@pytest.mark.parametrize("seed", SEEDS)
def test_backup_under_load_is_restored_to_equal_content(
    kafka: str, topic_prefix: str, tmp_path: Path, seed: int
) -> None:
    source = tmp_path / ("backup.tar.zst", "backup", "backup.tar")[seed % 3]
    first_data, second_data = tmp_path / "first", tmp_path / "second"
    with (
        running_worker(kafka, topic_prefix, first_data, PROGRAM, **SMALL_COMMITS) as first,
        client(kafka, topic_prefix) as user,
    ):
        records = history(seed)
        positions = user.publish_all(islice(records, BATCH))
        user.receipts_of(positions)
        with subprocess.Popen(
            [*command("backup", str(source), "--json"), "--data-dir", str(first_data)], stdout=subprocess.PIPE
        ) as making:
            while making.poll() is None:  # two batches are under way, and no more
                user.receipts_of(positions[:-BATCH])
                positions += user.publish_all(islice(records, BATCH))
            assert making.stdout is not None
            made = json.loads(making.stdout.read())
        positions += user.publish_all(islice(records, BATCH))
        restored = thalweg_json("restore", str(source), "--data-dir", str(second_data))
        assert (restored["positions"], restored["bytes"]) == (made["positions"], made["bytes"])
        with running_worker(kafka, topic_prefix, second_data) as second:
            user.receipts_of(positions)
            assert second.contributions != first.contributions
            require_equal(first_data, second_data, positions)
            positions += [user.publish("mills/new", "A new mill on the Eulach."), user.publish("mills/1", None)]
            require_equal(first_data, second_data, positions)
            taken = second.metric("thalweg_documents_total", outcome="indexed")
            assert taken < len(positions) - BATCH, "it began at the start of the log"
            second.kill()
            shutil.rmtree(current(second_data).snapshots_dir)
            second.start()
            second.wait_ready()  # with the graph made again from the log
            assert digest_of(second_data) == digest_of(first_data)


@pytest.mark.nightly  # of stores without a worker: `text_stores/test_backups`
def test_restored_graph_behind_tables_is_completed_after_kill(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    source, first_data, second_data = tmp_path / "backup", tmp_path / "first", tmp_path / "second"
    records = history(1)
    with running_worker(kafka, topic_prefix, first_data) as first, client(kafka, topic_prefix) as user:
        user.receipts_of(user.publish_all(islice(records, BATCH)))
        digest_of(first_data)
        first.program = PROGRAM
        first.settings |= given(
            {f"streams.worker_upkeep.SNAPSHOT_{name}_SECONDS": 600 for name in ("IDLE", "MIN", "MAX")}
        )
        assert first.stop() == 0
        first.start()
        first.wait_ready()
        gone = [(f"mills/{number}", None) for number in range(3)]
        user.receipts_of(user.publish_all([*islice(records, BATCH), *gone]))
        thalweg_json("backup", str(source), "--data-dir", str(first_data))
        assert first.stop() == 0
        expected = digest_of(first_data)
    thalweg_json("restore", str(source), "--data-dir", str(second_data))
    restored = verify_when_complete(second_data, 0)
    assert (restored.complete, restored.differences) == (False, [])
    second = WorkerProcess(kafka, topic_prefix, second_data)
    second.start()
    wait_until(lambda: "made again from the log for the graph" in second.said(), "the graph is being completed")
    second.kill()
    with running_worker(kafka, topic_prefix, second_data):
        assert digest_of(second_data) == expected


def require_equal(first: Path, second: Path, positions: list[tuple[int, int]]) -> None:
    """Both have read up to there, and hold the same."""
    ends = dict(sorted(positions))
    wait_until(lambda: reached(first) == reached(second) == ends, "both have read all")
    assert digest_of(first) == digest_of(second)


def current(data_dir: Path) -> Generation:
    generation = current_generation(data_dir)
    assert generation is not None
    return generation


def reached(data_dir: Path) -> dict[int, int]:
    positions = stored_positions(connect(current(data_dir).lance_dir).open_table(POSITIONS))
    return {partition: stored.offset for partition, stored in positions.items()}


@pytest.mark.nightly  # of stores without a worker: `text_stores/test_backups`
def test_restore_that_is_not_possible_says_why(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    source, first_data, second_data = tmp_path / "backup", tmp_path / "first", tmp_path / "second"
    nothing = thalweg("backup", str(source), "--data-dir", str(tmp_path / "nothing"))
    assert (nothing.returncode, "There are no stores" in nothing.stderr) == (1, True)
    with running_worker(kafka, topic_prefix, first_data) as first, client(kafka, topic_prefix) as user:
        user.receipts_of(user.publish_all(islice(history(1), BATCH)))
        digest, documents = digest_of(first_data), verify_when_complete(first_data, 0).documents
        made = thalweg_json("backup", str(source), "--data-dir", str(first_data))
        assert thalweg_json("backup", "--verify", str(source))["files"] == made["files"]
        refused = thalweg("restore", str(source), "--data-dir", str(first_data))
        assert (refused.returncode, "is not empty" in refused.stderr) == (2, True)
        assert first.stop() == 0
        with closing(AdminClient(plaintext(kafka))) as admin:
            admin.delete_topics([first.contributions])  # nothing needs it any more
    thalweg_json("restore", str(source), "--data-dir", str(second_data))
    assert digest_of(second_data) == digest

    elsewhere = WorkerProcess(kafka, f"{topic_prefix}other.", second_data)
    elsewhere.start()
    wait_until(lambda: elsewhere.process.poll() is not None, "the worker of another cluster ends by itself")
    assert (elsewhere.process.returncode, "filled from another log" in elsewhere.said()) == (1, True)

    with running_worker(kafka, topic_prefix, second_data), client(kafka, topic_prefix) as user:
        before = len(user.read_all(user.names.indexed))
        user.receipt(user.publish("mills/new", "A new mill on the Eulach."))
        assert len(user.read_all(user.names.indexed)) == before + 1, "what the backup held is not read again"
        assert verify_when_complete(second_data, 60).documents == documents + 1
