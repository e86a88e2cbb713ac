"""The worker as a guest of the machine: who may read its files, what its log looks like, what it leaves when killed."""

import asyncio
import json
import stat
from pathlib import Path

from query_api.index.worker_state import WorkerMonitor
from schemas.errors import Exit
from schemas.runtime import read_state
from tests.support.processes.worker import WorkerProcess, client, running_worker, wait_for


def private(path: Path) -> bool:
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


async def test_nobody_else_reads_its_files_and_each_line_of_its_log_is_json(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    with running_worker(kafka, topic_prefix, data_dir) as worker:
        async with client(kafka, topic_prefix) as user:
            await user.receipt(await user.publish("towns/1", "Town number 1."))
            assert (await user.receipt(await user.publish_bytes("towns/2", b"no envelope"))).outcome == "dead_lettered"
        second = WorkerProcess(kafka, topic_prefix, data_dir)
        second.start()
        assert await asyncio.to_thread(second.process.wait, 60) == Exit.IN_USE
        wrong = WorkerProcess(kafka, topic_prefix, data_dir, {"THALWEG_WORKER__BATCH_RECORDS": "0"})
        wrong.start()
        assert await asyncio.to_thread(wrong.process.wait, 60) == Exit.USAGE
        assert await asyncio.to_thread(worker.stop) == Exit.OK
    ours = [path for path in data_dir.rglob("*") if path.name != "worker.log"]  # that one is the test's
    assert len(ours) > 20
    assert [path for path in ours if not private(path)] == []
    events = [json.loads(line)["event"] for line in worker.said().splitlines()]
    assert "worker started" in events
    assert any("Another worker is using the data directory" in event for event in events)
    assert any("BATCH_RECORDS" in event for event in events)


async def test_one_that_was_killed_is_missed_and_its_place_in_the_group_is_taken_over(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    watch = WorkerMonitor(data_dir)

    def state() -> str:
        watch.look()
        return watch.status().state

    with running_worker(kafka, topic_prefix, data_dir) as worker:
        await wait_for(lambda: state() == "running", "the worker says that it runs")
        worker.kill()
        await wait_for(lambda: state() == "silent", "it is missed")
        assert any("its last sign of life" in note for note in watch.notes())
        worker.start()
        async with client(kafka, topic_prefix) as user:
            await user.receipt(await user.publish("towns/1", "Town number 1."))
        await wait_for(lambda: state() == "running", "the next one says that it runs")
        assert watch.status().crashes_in_ten_minutes == 1
        assert await asyncio.to_thread(worker.stop) == Exit.OK
    stopped = read_state(data_dir)
    assert stopped is not None
    assert stopped.phase == "stopped"
