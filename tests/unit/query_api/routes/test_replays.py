"""Replays over HTTP: orders on the curation topic, and what is refused before."""

from typing import Any

import pytest

from indexer.generation_folders import Generation, write_build
from kafka_client.topic_lag import LagMonitor
from kafka_client.topic_offsets import Span
from query_api.ingest.producer import OutgoingRecord
from schemas.curation import encode_choice
from schemas.generations import Build
from schemas.orders import REPAIR, REPLAY, Repair, Replay, order_key
from tests.support.fakes.curation import curation_log
from tests.support.fakes.service import Running, problem


async def test_an_order_names_the_generation_that_is_served(running: Running, sent: list[OutgoingRecord]) -> None:
    answer = await running.http.post("/v1/replays", json={"from": "0:0", "to": "0:9", "since": "2026-11-22T04:00:00Z"})
    assert answer.status_code == 202, answer.text
    name = answer.json()["id"]
    assert answer.headers["Location"] == f"/v1/replays/{name}"
    (record,) = sent
    assert record.key == f"*/replay/{name}".encode()
    assert Replay.model_validate_json(record.value or b"") == Replay(
        generation=running.service.snapshot().generation, first="0:0", last="0:9", since_ms=1795320000000
    )


@pytest.mark.parametrize(
    ("asked", "status", "says"),
    [
        ({}, 422, "Say which records"),
        ({"from": "zero"}, 400, "a token looks like"),
        ({"since": "yesterday"}, 422, "is not a time"),
        ({"from": "0:123456789"}, 400, "The stores hold nothing of that range: they reach 0:"),
        ({"partition": 77}, 400, "The stores hold nothing of that range"),
    ],
)
async def test_what_is_no_range_is_refused(
    asked: dict[str, Any], status: int, says: str, running: Running, sent: list[OutgoingRecord]
) -> None:
    answer = await running.http.post("/v1/replays", json=asked)
    assert answer.status_code == status
    assert says in problem(answer)["detail"]
    assert sent == []


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"from": "0:2"}, "The log no longer holds 0:2: partition 0 begins at 0:3"),
        ({"to": "0:2"}, "The log no longer holds 0:2"),
        ({"from": "0:60"}, "The log does not reach 0:60: partition 0 ends at 0:59"),
        ({"to": "1:0"}, "The log does not reach 1:0: partition 1 is empty"),
        ({"from": "0:7", "to": "0:6"}, "The range ends before it begins: 0:7 to 0:6"),
        ({"from": "2:0"}, "There is no partition 2: the documents topic has 0 to 1"),
        ({"partition": 2}, "There is no partition 2"),
        ({"since": "2999-01-01"}, "is not there yet"),
    ],
)
async def test_what_is_not_in_the_log_is_refused(
    asked: dict[str, Any], says: str, running: Running, sent: list[OutgoingRecord]
) -> None:
    documents = running.service.topics.documents
    running.service.log_watch = LagMonitor(lambda: None, lambda: {documents: {}})
    running.service.log_watch.see(documents, {0: Span(3, 60), 1: Span(0, 0)})
    answer = await running.http.post("/v1/replays", json=asked)
    assert (answer.status_code, sent) == (400, [])
    assert says in problem(answer)["detail"]


async def test_none_while_a_generation_is_being_built(running: Running, sent: list[OutgoingRecord]) -> None:
    live = running.service.snapshot().generation
    built = Generation(running.service.settings.storage.data_dir, "g0002-5f3a9c")
    write_build(built, Build(state="building", base=live))
    answer = await running.http.post("/v1/replays", json={"from": "0:0"})
    assert (answer.status_code, sent) == (409, [])
    assert "g0002-5f3a9c is being built: wait for it" in problem(answer)["detail"]


async def test_how_far_it_is(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    log = curation_log(running, monkeypatch)
    replay = Replay(generation="g0001", first="0:0", state="done", records=3, of=2, documents=2, changed=1)
    await log.put(order_key(REPLAY, "0" * 12), encode_choice(replay))
    shown = (await running.http.get("/v1/replays/000000000000")).json()
    assert (shown["state"], shown["documents"], shown["changed"]) == ("done", 2, 1)
    for unknown in ("111111111111", "x"):
        answer = await running.http.get(f"/v1/replays/{unknown}")
        assert (answer.status_code, "no replay" in problem(answer)["detail"]) == (404, True)


async def test_all_of_them_the_newest_first(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    log = curation_log(running, monkeypatch)
    for digit in "213":
        await log.put(order_key(REPLAY, digit * 12), encode_choice(Replay(generation="g0001", first=f"0:{digit}")))
    await log.put(order_key(REPLAY, "2" * 12), encode_choice(Replay(generation="g0001", first="0:2", state="done")))
    await log.put(order_key(REPLAY, "3" * 12), None)
    await log.put(order_key(REPAIR, "4" * 12), encode_choice(Repair(generation="g0001")))
    shown = (await running.http.get("/v1/replays")).json()["replays"]
    assert [(each["id"], each["state"]) for each in shown] == [("2" * 12, "done"), ("1" * 12, "ordered")]
