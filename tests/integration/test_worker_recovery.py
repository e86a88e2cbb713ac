"""The worker is killed, stopped, robbed of its stores and of its broker: it ends up as if nothing had happened."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from indexer.generations import current_generation
from indexer.verify import verify_when_complete
from schemas.errors import Exit
from streams.embedded_kafka.broker import BrokerSettings, EmbeddedKafka
from streams.ports import free_port
from tests.support.processes.worker import Client, WorkerProcess, client, running_worker, wait_for

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


async def digest_of(data_dir: Path) -> str:
    report = await asyncio.to_thread(verify_when_complete, data_dir, 40)
    assert report.ok, report.differences
    assert report.documents == sum(text is not None for _, text in history()[DOCUMENTS:])
    return report.digest


@pytest.fixture(scope="module")
def undisturbed(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest that a run without incidents leaves."""

    async def load() -> str:
        data_dir = tmp_path_factory.mktemp("undisturbed") / "data"
        with running_worker(kafka, "undisturbed.", data_dir):
            async with client(kafka, "undisturbed.") as user:
                await user.receipts_of(await user.publish_all(history()))
            return await digest_of(data_dir)

    return asyncio.run(load())


async def publish_history(user: Client) -> list[tuple[int, int]]:
    return await user.publish_all(history())


async def digest_after(
    interrupt: Callable[[WorkerProcess], None], kafka: str, prefix: str, data_dir: Path, *, done_before: int
) -> str:
    """The digest of a load in which the worker, once so many records are done, is interrupted and started again."""
    with running_worker(kafka, prefix, data_dir, THALWEG_WORKER__COMMIT_DOCUMENTS="20") as worker:
        async with client(kafka, prefix) as user:
            positions = await publish_history(user)
            await user.receipts_of(positions[:done_before])
            await asyncio.to_thread(interrupt, worker)
            worker.start()
            await user.receipts_of(positions)
        return await digest_of(data_dir)


@pytest.mark.parametrize("done_before", [pytest.param(30, marks=pytest.mark.nightly), 400])
async def test_after_a_kill_in_the_middle_of_a_load_nothing_is_lost_and_nothing_is_double(
    kafka: str, topic_prefix: str, tmp_path: Path, undisturbed: str, done_before: int
) -> None:
    digest = await digest_after(WorkerProcess.kill, kafka, topic_prefix, tmp_path / "data", done_before=done_before)
    assert digest == undisturbed


async def test_a_stop_in_the_middle_is_quick_and_leaves_nothing_half_done(
    kafka: str, topic_prefix: str, tmp_path: Path, undisturbed: str
) -> None:
    def stop(worker: WorkerProcess) -> None:
        assert worker.stop() == Exit.OK

    digest = await digest_after(stop, kafka, topic_prefix, tmp_path / "data", done_before=100)
    assert digest == undisturbed


async def test_any_store_can_be_deleted_and_comes_back(
    kafka: str, topic_prefix: str, tmp_path: Path, undisturbed: str
) -> None:
    data_dir = tmp_path / "data"
    with running_worker(kafka, topic_prefix, data_dir) as worker:
        async with client(kafka, topic_prefix) as user:
            positions = await publish_history(user)
            await user.receipts_of(positions)
        assert await digest_of(data_dir) == undisturbed
        generation = current_generation(data_dir)
        assert generation is not None
        for lost in (["lance"], ["graph", "snapshots"]):
            assert await asyncio.to_thread(worker.stop) == Exit.OK
            for store in lost:
                shutil.rmtree(generation.root / store)
            worker.start()
            await asyncio.to_thread(worker.wait_ready)
            await wait_for(lambda: done(worker, len(positions)), "the log is read again")
            assert await digest_of(data_dir) == undisturbed, f"without {lost}"


def done(worker: WorkerProcess, records: int) -> bool:
    """Whether both stores say they hold everything. A sum of offsets, as the records lie on two partitions."""
    documents = [
        worker.metric("thalweg_store_position", store="lance", topic=f"{worker.prefix}documents.v1", partition=number)
        for number in ("0", "1")
    ]
    lag = worker.metric("thalweg_ingest_lag_records", topic=worker.graph_topic, partition="0")
    return sum(documents) + 2 == records and lag == 0


async def test_kafka_may_go_away_in_the_middle(topic_prefix: str, tmp_path: Path, undisturbed: str) -> None:
    settings = BrokerSettings(port=free_port())
    data_dir = tmp_path / "data"
    with (
        EmbeddedKafka(tmp_path / "broker", settings) as broker,
        running_worker(
            broker.bootstrap_servers, topic_prefix, data_dir, THALWEG_WORKER__COMMIT_DOCUMENTS="20"
        ) as worker,
    ):
        async with client(broker.bootstrap_servers, topic_prefix) as user:
            positions = await publish_history(user)
            await user.receipts_of(positions[:40])
            await asyncio.to_thread(broker.stop)
            await wait_for(lambda: "kafka does not answer" in worker.said(), "the worker says that Kafka is away")
            await asyncio.to_thread(broker.start)
            await asyncio.to_thread(broker.wait_ready)
            await user.receipts_of(positions)
        assert worker.process.poll() is None
        assert await digest_of(data_dir) == undisturbed


async def test_what_the_person_who_starts_it_can_mend_is_told_with_its_exit_code(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    with running_worker(kafka, topic_prefix, tmp_path / "data") as first:
        second = WorkerProcess(kafka, topic_prefix, first.data_dir)
        second.start()
        assert await asyncio.to_thread(second.process.wait, 30) == Exit.IN_USE
        async with client(kafka, topic_prefix) as user:
            await user.receipt(await user.publish("towns/1", "Town number 1."))
        assert await asyncio.to_thread(first.stop) == Exit.OK
    with running_worker(kafka, topic_prefix, first.data_dir, THALWEG_CHUNKING__CHUNK_CHARACTERS="250") as goes_on:
        async with client(kafka, topic_prefix) as user:
            await user.receipt(await user.publish("towns/2", "Town number 2."))
        ready = await asyncio.to_thread(httpx.get, f"http://127.0.0.1:{goes_on.port}/readyz", trust_env=False)
        assert "another size of chunks" in ready.text
    nowhere = WorkerProcess(
        f"127.0.0.1:{free_port()}", topic_prefix, tmp_path / "other", {"THALWEG_WORKER__BROKER_WAIT_SECONDS": "1"}
    )
    nowhere.start()
    assert await asyncio.to_thread(nowhere.process.wait, 30) == Exit.UNREACHABLE
    strange = WorkerProcess(kafka, f"{topic_prefix}other.", first.data_dir)
    strange.start()
    assert await asyncio.to_thread(strange.process.wait, 30) == Exit.FAILED
    said = first.said()
    assert "Another worker is using the data directory" in said
    assert "were filled from another log" in said
    assert "No Kafka broker answered" in nowhere.said()
