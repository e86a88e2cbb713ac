"""Batches that nobody can read: the rest goes on, everybody says what and where, and a person skips them."""

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from schemas.topics import TopicNames
from tests.support.kafka import Damage, Sent, damage_batch, send_batches
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

NAMES = TopicNames("thalweg.")
DAMAGES: dict[int, Damage] = {1: "checksum", 2: "codec", 3: "content"}


def append(kafka: str, partition: int, *batches: Sequence[str], collection: str = "c") -> list[int]:
    """Documents of these names, each list as one batch; the first offset of each."""
    made = [
        [Sent(f"{collection}/{name}".encode(), envelope(collection, name), partition=partition) for name in names]
        for names in batches
    ]
    return send_batches(kafka, NAMES.documents, *made, codec="lz4")


def envelope(collection: str, name: str) -> bytes:
    return json.dumps({"id": name, "collection": collection, "content": f"The text of {name}."}).encode()


def documents(hashing: Installation, collection: str = "c") -> set[str]:
    asked = {"collection": collection, "limit": 100}
    answer = httpx.get(f"{hashing.url}/v1/documents", params=asked, timeout=30)
    return {each["id"] for each in answer.json().get("documents", [])}


def test_partition_with_an_unreadable_batch_waits_for_a_skip(hashing: Installation) -> None:
    worker = hashing.child("worker")
    worker.suspend()
    first = [
        append(hashing.kafka, at, [f"{at}-before"], [f"{at}-a", f"{at}-b"], [f"{at}-behind"])[1] for at in range(4)
    ]
    places = [(partition, first[partition], first[partition] + 1) for partition in DAMAGES]
    for partition, how in DAMAGES.items():
        damaged = damage_batch(hashing.data_dir, NAMES.documents, partition, first[partition], how)
        assert (partition, *damaged) in places
    worker.resume()

    wanted = {"0-before", "0-a", "0-b", "0-behind", "1-before", "2-before", "3-before"}
    wait_until(lambda: documents(hashing) == wanted, lambda: f"what can be read: {documents(hashing)}")
    wait_until(lambda: len(status(hashing)["unreadable_batches"]) == 3, "the status names them")
    told = status(hashing)
    assert [(each["partition"], each["first"], each["last"]) for each in told["unreadable_batches"]] == places
    assert [each["fault"] for each in told["unreadable_batches"]] == list(DAMAGES.values())
    command = f"thalweg dead-letters skip {NAMES.documents} 1:{first[1]}"
    assert command in hashing.run("status").stdout
    assert told["readiness"]["ready"]
    assert command in " ".join(told["readiness"]["notes"])
    wait_until(lambda: command in hashing.said(), "`thalweg up` says what to do")
    assert hashing.child("worker").pid == worker.pid

    refused = hashing.run("dead-letters", "skip", NAMES.documents, f"1:{first[1] - 1}", "--yes", check=False)
    assert refused.returncode != 0
    assert f"holds no unreadable batch at offset {first[1] - 1}" in refused.stderr
    beyond = hashing.run("dead-letters", "skip", NAMES.documents, "9:0", "--yes", check=False)
    assert "has the partitions 0 to 3" in beyond.stderr
    for partition, begin, end in places:
        done = hashing.run_json("dead-letters", "skip", NAMES.documents, f"{partition}:{end}", "--yes")
        assert (done["first"], done["last"]) == (begin, end)
    hashing.run("dead-letters", "skip", NAMES.documents, f"1:{first[1]}", "--yes")  # once more does no harm

    wanted |= {"1-behind", "2-behind", "3-behind"}
    wait_until(lambda: documents(hashing) == wanted, lambda: f"what stands behind: {documents(hashing)}")
    wait_until(lambda: not status(hashing)["unreadable_batches"], "nothing stands in the way")
    wait_until(lambda: status(hashing)["lag_records"] == 0, "there is no lag")
    letters = hashing.run_json("dead-letters", "list", "--reason", "unreadable_batch")["dead_letters"]
    sources = [each["source"] for each in letters]
    assert sorted((each["partition"], each["offset"], each["last_offset"]) for each in sources) == places
    assert {(each["key"], each["bytes"]) for each in letters} == {(None, 0)}
    assert hashing.child("worker").pid == worker.pid
    assert hashing.verify()["ok"]


@pytest.mark.nightly  # a skip in the middle of partitions, above, is tried each time
def test_unreadable_batch_at_the_end_is_skipped_with_positions(hashing: Installation) -> None:
    """So that a token of what it held is covered, and nothing waits for ever."""
    worker = hashing.child("worker")
    worker.suspend()
    _, damaged = append(hashing.kafka, 0, ["before"], ["a", "b"], collection="end")
    damage_batch(hashing.data_dir, NAMES.documents, 0, damaged, "checksum")
    worker.resume()
    wait_until(lambda: status(hashing)["unreadable_batches"], "the status names it")
    hashing.run("dead-letters", "skip", NAMES.documents, f"0:{damaged}", "--yes")
    hashing.search(q="text", after=f"0:{damaged + 1}", wait_seconds=60)
    assert documents(hashing, "end") == {"before"}
    wait_until(lambda: not status(hashing)["unreadable_batches"], "nothing stands in the way")


@pytest.mark.nightly
def test_unreadable_setting_stops_indexing_until_it_is_skipped(hashing: Installation) -> None:
    worker = hashing.child("worker")
    worker.suspend()
    accepted = choose_chunking(hashing, "odd")
    offset = int(accepted.partition(":")[2])
    damage_batch(hashing.data_dir, NAMES.curation, 0, offset, "checksum")
    worker.resume()
    append(hashing.kafka, 0, ["one"], collection="odd")
    wait_until(lambda: status(hashing)["unreadable_batches"], "the status names it")
    [told] = status(hashing)["unreadable_batches"]
    assert (told["topic"], told["first"]) == (NAMES.curation, offset)
    assert documents(hashing, "odd") == set()
    hashing.run("dead-letters", "skip", NAMES.curation, f"0:{offset}", "--yes")
    wait_until(lambda: documents(hashing, "odd") == {"one"}, "the worker goes on")
    wait_until(lambda: not status(hashing)["unreadable_batches"], "nothing stands in the way")


def choose_chunking(hashing: Installation, collection: str) -> str:
    path = f"{hashing.url}/v1/collections/{collection}/chunking"
    return str(httpx.put(path, json={"child_characters": 200}, timeout=30).json()["position"])


def status(hashing: Installation) -> dict[str, Any]:
    return dict(httpx.get(f"{hashing.url}/v1/status", timeout=30).json())
