"""How a worker starts, and what it says where it cannot: exit codes, its log, and who may read its files."""

import json
import stat
from pathlib import Path

import httpx

from schemas.errors import Exit
from schemas.runtime import find_running
from streams.ports import free_port
from tests.support.constants import PROGRAM, given
from tests.support.processes.worker import WorkerProcess, client, running_worker

END_SECONDS = 60


def started(kafka: str, prefix: str, data_dir: Path, program: str = "thalweg", **settings: str) -> WorkerProcess:
    worker = WorkerProcess(kafka, prefix, data_dir, settings, program)
    worker.start()
    return worker


def exit_code(worker: WorkerProcess) -> int:
    return worker.process.wait(END_SECONDS)


def test_worker_that_cannot_start_reports_why_by_its_exit_code(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    with running_worker(kafka, topic_prefix, data_dir) as worker:
        announced = find_running(data_dir)
        assert announced is not None
        assert (announced.kafka, announced.service_url) == (kafka, "")
        second = started(kafka, topic_prefix, data_dir)
        wrong = started(kafka, topic_prefix, data_dir, THALWEG_WORKER__KEPT_SNAPSHOTS="0")
        nobody = f"127.0.0.1:{free_port()}"
        patience = given({"streams.worker_context.BROKER_WAIT_SECONDS": 1})
        alone = started(nobody, topic_prefix, tmp_path / "other", PROGRAM, **patience)
        with client(kafka, topic_prefix) as user:
            assert user.receipt(user.publish("towns/1", "Town number 1.")).outcome == "indexed"
            assert user.receipt(user.publish_bytes("towns/2", b"no envelope")).outcome == "dead_lettered"
        assert [exit_code(each) for each in (second, wrong, alone)] == [Exit.IN_USE, Exit.USAGE, Exit.UNREACHABLE]
        assert worker.stop() == Exit.OK
    assert find_running(data_dir) is None
    ours = [path for path in data_dir.rglob("*") if path.name != "worker.log"]  # that one is the test's
    assert len(ours) > 20
    assert [path for path in ours if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    with running_worker(kafka, topic_prefix, data_dir, THALWEG_CHUNKING__CHUNK_CHARACTERS="250") as goes_on:
        with client(kafka, topic_prefix) as user:
            user.receipt(user.publish("towns/2", "Town number 2."))
        ready = httpx.get(f"http://127.0.0.1:{goes_on.port}/readyz", trust_env=False)
        assert "another size of chunks" in ready.text
    assert exit_code(started(kafka, f"{topic_prefix}other.", data_dir)) == Exit.FAILED
    events = [json.loads(line)["event"] for line in worker.said().splitlines()]
    for words in (
        "worker started",
        "Another worker is using the data directory",
        "KEPT_SNAPSHOTS",
        "were filled from another log",
    ):
        assert any(words in event for event in events), words
    assert "No Kafka broker answered" in alone.said()
