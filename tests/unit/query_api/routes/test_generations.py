"""Generations over HTTP: what is shown of each, what is ordered, and what is refused before it reaches the log."""

import time
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from indexer.generation_folders import Generation, make_generation, read_manifest, write_build
from kafka_client.topic_offsets import LogUnavailable
from query_api.index.curation_follower import CurationFollower
from query_api.ingest.producer import OutgoingRecord
from schemas.generations import Build, GenerationComparison, GenerationEvent, GenerationOrder, StoreCounts
from schemas.ids import Position
from tests.support.fakes.service import Running, problem

LIVE = "g0001"
SECOND = "g0002-bbbbbb"
ORDER = GenerationOrder(wanted="live", base=LIVE, reason="chunks")


class Log:
    """The curation topic as the routes meet it."""

    def __init__(self, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data_dir = running.service.settings.storage.data_dir
        self.sent: list[OutgoingRecord] = []
        self.orders: list[GenerationEvent] = []

        async def publish(_topic: str, records: list[OutgoingRecord]) -> list[Position]:
            self.sent += records
            return [Position(0, len(self.sent))]

        async def end_now(_topic: str) -> int:
            return 0

        monkeypatch.setattr(running.service.writer, "publish", publish)
        monkeypatch.setattr(running.service.log_watch, "end_now", end_now)
        monkeypatch.setattr(CurationFollower, "events", lambda _follower, _of: self.orders)

    def built(self, state: str, **changes: Any) -> None:
        live = read_manifest(Generation(self.data_dir, LIVE))
        generation = make_generation(self.data_dir, msgspec.structs.replace(live, generation=SECOND))
        now_ms = time.time_ns() // 1_000_000
        build = Build(state="building", reason="chunks", base=LIVE, at_ms=now_ms)
        write_build(generation, build.model_copy(update={"state": state, **changes}))
        self.orders = [GenerationEvent(SECOND, ORDER)]


@pytest.fixture
def log(running: Running, monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(running, monkeypatch)


async def test_a_rebuild_is_an_order_on_the_curation_topic(running: Running, log: Log) -> None:
    answer = await running.http.post("/v1/generations", json={"reason": "smaller chunks"})
    assert answer.status_code == 202
    name = answer.json()["name"]
    assert name.startswith("g0002-")
    assert answer.headers["Location"] == f"/v1/generations/{name}"
    (record,) = log.sent
    assert record.key == f"*/generation/{name}".encode()
    assert GenerationOrder.model_validate_json(record.value or b"") == GenerationOrder(
        wanted="live", base=LIVE, reason="smaller chunks"
    )


async def test_an_order_shows_before_the_worker_has_begun(running: Running, log: Log) -> None:
    log.orders = [GenerationEvent(SECOND, ORDER), GenerationEvent("g0009-eeeeee", None)]
    first, second = (await running.http.get("/v1/generations")).json()["generations"]
    assert (first["name"], first["state"], first["pipeline"]["chunk_characters"]) == (LIVE, "live", 300)
    assert (second["name"], second["state"], second["switches"]) == (SECOND, "ordered", True)


async def test_a_build_shows_how_far_it_is(running: Running, log: Log) -> None:
    log.built("building", records=300, of_records=400, chunks=900, seconds=30.0)
    shown = (await running.http.get(f"/v1/generations/{SECOND}")).json()
    assert shown["state"] == "building"
    assert shown["progress"] == {
        "records": 300,
        "of_records": 400,
        "chunks": 900,
        "seconds": 30.0,
        "records_per_second": 10.0,
        "seconds_left": 10.0,
    }


async def test_one_that_was_complete_and_is_not_worked_on_is_kept(running: Running, log: Log) -> None:
    log.built("ready", ready_ms=1, at_ms=1)
    shown = (await running.http.get(f"/v1/generations/{SECOND}")).json()
    assert (shown["state"], shown["progress"]) == ("kept", None)


async def test_switch_to_one_that_fell_behind_names_the_distance(running: Running, log: Log) -> None:
    log.built("building", ready_ms=1, records=100, of_records=800, seconds=10.0)
    assert (await running.http.get(f"/v1/generations/{SECOND}")).json()["state"] == "behind"
    answer = await running.http.post(f"/v1/generations/{SECOND}/switch")
    assert (answer.status_code, len(log.sent)) == (202, 1)
    assert (answer.json()["records_behind"], answer.json()["seconds_left"]) == (700, 70.0)
    assert problem(await running.http.post("/v1/generations", json={}))["status"] == 409, "it is to be live"


@pytest.mark.parametrize(
    ("state", "changes", "body", "status", "says"),
    [
        ("building", {}, {}, 409, "is not complete"),
        ("failed", {"problem": "No room."}, {}, 409, "cannot be switched to. No room."),
        ("ready", {"problem": "3 documents are missing"}, {}, 409, "3 documents are missing"),
        ("ready", {"problem": "3 documents are missing"}, {"force": True}, 202, None),
        ("ready", {}, {}, 202, None),
        ("ready", {"ready_ms": 1, "at_ms": 1}, {}, 202, None),
        ("building", {"ready_ms": 1, "problem": "3 documents are missing"}, {}, 409, "3 documents are missing"),
        ("ready", {}, {"force": "yes"}, 422, "force"),
    ],
)
async def test_a_switch_is_ordered_or_refused(
    running: Running, log: Log, state: str, changes: dict[str, Any], body: dict[str, Any], status: int, says: str | None
) -> None:
    log.built(state, **changes)
    answer = await running.http.post(f"/v1/generations/{SECOND}/switch", json=body)
    assert (answer.status_code, len(log.sent)) == (status, int(status == 202))
    if says is not None:
        assert says in problem(answer)["detail"]


async def test_what_cannot_be_is_refused(running: Running, log: Log) -> None:
    log.built("building")
    unknown = problem(await running.http.get("/v1/generations/g0007-ffffff"))
    assert (unknown["status"], f"there are {LIVE}, {SECOND}" in unknown["detail"]) == (404, True)
    for method, path, says in (
        ("POST", "/v1/generations", f"Generation {SECOND} is being built"),
        ("DELETE", f"/v1/generations/{LIVE}", "switch to another one first"),
        ("POST", f"/v1/generations/{LIVE}/switch", "is live already"),
    ):
        refused = problem(await running.http.request(method, path, json={} if method == "POST" else None))
        assert (refused["status"], says in refused["detail"]) == (409, True), refused
    assert log.sent == []


async def test_no_room_is_refused_before_anything_is_ordered(
    running: Running, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=0))
    refused = problem(await running.http.post("/v1/generations", json={}))
    assert (refused["status"], "make room" in refused["detail"], log.sent) == (507, True, [])


async def test_dropping_is_a_null_value(running: Running, log: Log) -> None:
    log.built("ready")
    assert (await running.http.delete(f"/v1/generations/{SECOND}")).status_code == 202
    assert log.sent == [OutgoingRecord(f"*/generation/{SECOND}".encode(), None)]


async def test_the_comparison_is_shown(running: Running, log: Log) -> None:
    counts = StoreCounts(documents=3, passages=4, chunks=5, entities=6, statements=7)
    log.built("ready", comparison=GenerationComparison(earlier=counts, new=counts, missing=("c/a",), missing_count=1))
    shown = (await running.http.get(f"/v1/generations/{SECOND}")).json()["comparison"]
    assert (shown["new"]["chunks"], shown["missing"], shown["missing_count"]) == (5, ["c/a"], 1)


async def test_while_the_log_is_away_what_is_on_disk_is_shown_with_a_note(
    running: Running, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_topic: str) -> int:
        raise LogUnavailable("nobody answers")

    monkeypatch.setattr(running.service.log_watch, "end_now", away)
    answer = (await running.http.get("/v1/generations")).json()
    assert [each["name"] for each in answer["generations"]] == [LIVE]
    assert answer["notes"] == ["What was ordered is not known: The curation topic cannot be read: nobody answers."]
    assert Generation(log.data_dir, LIVE).root.exists()
