"""Batches that nobody can read: the rest goes on, everybody says what and where, and a person skips them."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaProducer

from schemas.topics import TopicNames
from tests.support.kafka import Damage, damage_batch
from tests.support.processes.installation import Installation, installation
from tests.support.waiting import wait_until

NAMES = TopicNames("thalweg.")
DAMAGES: dict[int, Damage] = {1: "checksum", 2: "codec", 3: "content"}


@pytest.fixture(scope="module")
def thalweg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    data_dir = tmp_path_factory.mktemp("unreadable") / "data"
    with installation(data_dir, THALWEG_EMBEDDING__PROVIDER="hashing") as running:
        yield running


async def append(kafka: str, partition: int, *batches: Sequence[str], collection: str = "c") -> list[int]:
    """Documents of these names, each list as one batch; the first offset of each."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka, compression_type="lz4")
    await producer.start()
    offsets = []
    try:
        for names in batches:
            batch = producer.create_batch()
            for name in names:
                envelope = {"id": name, "collection": collection, "content": f"The text of {name}."}
                batch.append(key=f"{collection}/{name}".encode(), value=json.dumps(envelope).encode(), timestamp=None)
            batch.close()
            sent = await (await producer.send_batch(batch, NAMES.documents, partition=partition))
            offsets.append(sent.offset)
    finally:
        await producer.stop()
    return offsets


def documents(thalweg: Installation, collection: str = "c") -> set[str]:
    asked = {"collection": collection, "limit": 100}
    answer = httpx.get(f"{thalweg.url}/v1/documents", params=asked, timeout=30)
    return {each["id"] for each in answer.json().get("documents", [])}


async def test_only_its_partition_waits_until_a_person_passes_it_by(thalweg: Installation) -> None:
    worker = thalweg.child("worker")
    worker.suspend()
    for partition in range(4):
        await append(thalweg.kafka, partition, [f"{partition}-before"], [f"{partition}-a", f"{partition}-b"])
        await append(thalweg.kafka, partition, [f"{partition}-behind"])
    for partition, how in DAMAGES.items():
        assert damage_batch(thalweg.data_dir, NAMES.documents, partition, 1, how) == (1, 2)
    worker.resume()

    wanted = {"0-before", "0-a", "0-b", "0-behind", "1-before", "2-before", "3-before"}
    wait_until(lambda: documents(thalweg) == wanted, lambda: f"what can be read: {documents(thalweg)}")
    wait_until(lambda: len(status(thalweg)["unreadable_batches"]) == 3, "the status names them")
    told = status(thalweg)
    assert [(each["partition"], each["first"], each["last"], each["fault"]) for each in told["unreadable_batches"]] == [
        (partition, 1, 2, fault) for partition, fault in DAMAGES.items()
    ]
    command = f"thalweg dead-letters skip {NAMES.documents} 1:1"
    assert command in thalweg.run("status").stdout
    assert told["readiness"]["ready"]
    assert command in " ".join(told["readiness"]["notes"])
    up_log = thalweg.data_dir.parent / f"{thalweg.data_dir.name}-up.log"
    wait_until(lambda: command in up_log.read_text(), "`thalweg up` says what to do")
    assert thalweg.child("worker").pid == worker.pid

    refused = thalweg.run("dead-letters", "skip", NAMES.documents, "1:0", check=False)
    assert refused.returncode != 0
    assert "holds no unreadable batch at offset 0" in refused.stderr
    beyond = thalweg.run("dead-letters", "skip", NAMES.documents, "9:0", check=False)
    assert "has the partitions 0 to 3" in beyond.stderr
    for partition in DAMAGES:
        done = thalweg.run_json("dead-letters", "skip", NAMES.documents, f"{partition}:2")
        assert (done["first"], done["last"]) == (1, 2)
    thalweg.run("dead-letters", "skip", NAMES.documents, "1:1")  # once more does no harm

    wanted |= {"1-behind", "2-behind", "3-behind"}
    wait_until(lambda: documents(thalweg) == wanted, lambda: f"what stands behind: {documents(thalweg)}")
    wait_until(lambda: not status(thalweg)["unreadable_batches"], "nothing stands in the way")
    wait_until(lambda: status(thalweg)["lag_records"] == 0, "there is no lag")
    letters = thalweg.run_json("dead-letters", "list", "--reason", "unreadable_batch")["dead_letters"]
    places = sorted(
        (each["source"]["partition"], each["source"]["offset"], each["source"]["last_offset"]) for each in letters
    )
    assert places == [(1, 1, 2), (2, 1, 2), (3, 1, 2)]
    assert {(each["key"], each["bytes"]) for each in letters} == {(None, 0)}
    assert thalweg.child("worker").pid == worker.pid
    assert thalweg.run_json("verify")["ok"]


async def test_one_at_the_end_of_a_partition_is_passed_by_with_its_positions(thalweg: Installation) -> None:
    """So that a token of what it held is covered, and nothing waits for ever."""
    worker = thalweg.child("worker")
    worker.suspend()
    _, damaged = await append(thalweg.kafka, 0, ["before"], ["a", "b"], collection="end")
    damage_batch(thalweg.data_dir, NAMES.documents, 0, damaged, "checksum")
    worker.resume()
    wait_until(lambda: status(thalweg)["unreadable_batches"], "the status names it")
    thalweg.run("dead-letters", "skip", NAMES.documents, f"0:{damaged}")
    thalweg.search(q="text", after=f"0:{damaged + 1}", wait_seconds=60)
    assert documents(thalweg, "end") == {"before"}
    wait_until(lambda: not status(thalweg)["unreadable_batches"], "nothing stands in the way")


async def test_nothing_is_indexed_by_settings_that_cannot_be_read_until_they_are_passed_by(
    thalweg: Installation,
) -> None:
    worker = thalweg.child("worker")
    worker.suspend()
    accepted = await choose_chunking(thalweg, "odd")
    offset = int(accepted.partition(":")[2])
    damage_batch(thalweg.data_dir, NAMES.curation, 0, offset, "checksum")
    worker.resume()
    await append(thalweg.kafka, 0, ["one"], collection="odd")
    wait_until(lambda: status(thalweg)["unreadable_batches"], "the status names it")
    [told] = status(thalweg)["unreadable_batches"]
    assert (told["topic"], told["first"]) == (NAMES.curation, offset)
    assert documents(thalweg, "odd") == set()
    thalweg.run("dead-letters", "skip", NAMES.curation, f"0:{offset}")
    wait_until(lambda: documents(thalweg, "odd") == {"one"}, "the worker goes on")
    wait_until(lambda: not status(thalweg)["unreadable_batches"], "nothing stands in the way")


async def choose_chunking(thalweg: Installation, collection: str) -> str:
    async with httpx.AsyncClient(timeout=30) as http:
        answer = await http.put(f"{thalweg.url}/v1/collections/{collection}/chunking", json={"child_characters": 200})
    return str(answer.json()["position"])


def status(thalweg: Installation) -> dict[str, Any]:
    return dict(httpx.get(f"{thalweg.url}/v1/status", timeout=30).json())
