"""From poison to searchable: twelve kinds of it among good records, a worker that is repaired, and a redrive."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from query_api.service_health import readiness
from schemas.dead_letters import REASON_HEADER
from tests.bench.poison import KINDS, TEXT, Sent, envelope, poison
from tests.integration.query_service.live_service import serving, settings_for
from tests.support.kafka import Sent as KafkaRecord
from tests.support.kafka import send_with
from tests.support.processes.repaired_worker import REPAIRED
from tests.support.processes.worker import Client, WorkerProcess, client, partition_of, running_worker
from tests.support.waiting import eventually

RECORDS = 1_000
EVERY = RECORDS // KINDS
SMALL = {"THALWEG_LIMITS__MAX_DOCUMENT_BYTES": "20000"}
TOO_LARGE = 30_000


def records() -> list[Sent]:
    """Every so many is poison, of each kind one; the last one is good but for a limit."""
    found = []
    for number in range(RECORDS):
        name = f"{number:06}"
        if number % EVERY == EVERY - 1 and number // EVERY < KINDS:
            found.append(poison("mixed", name, number // EVERY))
        else:
            text = TEXT.format(number, number % 97)
            found.append(Sent(f"mixed/{name}", envelope("mixed", name, content=text), None, None))
    large = envelope("mixed", "large", content=TEXT.format("large", 7) + " The river rose." * (TOO_LARGE // 16))
    return [*found, Sent("mixed/large", large, None, "too_large")]


def publish(user: Client, sent: list[Sent]) -> dict[tuple[int, int], Sent]:
    made = [KafkaRecord(each.key.encode(), each.value, each.headers or (), partition_of(each.key)) for each in sent]
    return dict(zip(send_with(user.producer, user.names.documents, made), sent, strict=True))


class Service:
    """What a person asks of it."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, path: str, **params: Any) -> Any:
        response = await self._http.get(path, params=params)
        assert response.is_success, response.text
        return response.json()

    async def redrive(self, **order: Any) -> dict[str, Any]:
        """The state once it has ended."""
        begun = await self._http.post("/v1/dead-letters/redrive", json=order)
        assert begun.status_code == 202, begun.text
        state: dict[str, Any] = begun.json()
        async with asyncio.timeout(60):
            while state["state"] == "running":
                state = await self.get(begun.headers["Location"])
        assert state["state"] == "done", state
        return state

    async def refused(self, status: int, body: Any = None, **params: Any) -> str:
        response = await self._http.post("/v1/dead-letters/redrive", json=body, params=params)
        assert response.status_code == status, response.text
        return str(response.json()["detail"])


def counts(state: dict[str, Any]) -> dict[str, int]:
    names = ("matched", "redriven", "resolved", "already_redriven", "refused", "failed_again")
    return {name: state[name] for name in names if state[name]}


async def test_poison_is_redriven_and_indexed_once_it_is_repaired(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    sent = records()
    poisoned = [each for each in sent if each.reason]
    with running_worker(kafka, topic_prefix, data_dir, **SMALL) as worker:
        with client(kafka, topic_prefix) as user:
            placed = publish(user, sent)
            receipts = user.receipts_of(placed)
            assert Counter(each.outcome for each in receipts) == {
                "indexed": len(sent) - len(poisoned),
                "dead_lettered": len(poisoned),
            }
            letters = user.read_all(user.names.dead_letters)
        worker.stop()
    assert sorted((each.key.decode(), each.value, dict(each.headers)[REASON_HEADER].decode()) for each in letters) == (
        sorted((each.key, each.value, each.reason) for each in poisoned)
    )
    with running_worker(kafka, topic_prefix, data_dir, "tests.support.processes.repaired_worker") as repaired:
        async with serving(settings_for(kafka, topic_prefix, data_dir)) as (http, app):
            await eventually(lambda: readiness(app.state.service).ready, seconds=60)
            await eventually(lambda: app.state.service.log_identity.topic_id)
            await repair(Service(http), repaired, len(poisoned))


async def repair(service: Service, repaired: WorkerProcess, poisoned: int) -> None:
    dry = await service.redrive(all=True, dry_run=True)
    assert (counts(dry), dry["token"]) == ({"matched": poisoned, "redriven": poisoned}, None)
    by_limit = await service.redrive(reason="too_large")  # the limit is raised
    assert counts(by_limit) == {"matched": 1, "redriven": 1}
    found = await service.get("/v1/search", q="station large", collection="mixed", after=by_limit["token"])
    assert "large" in {hit["document_id"] for hit in found["hits"]}
    by_release = await service.redrive(all=True)  # the program takes the others, but for the key
    assert counts(by_release) == {
        "matched": poisoned, "redriven": poisoned - 1, "already_redriven": 1, "failed_again": 1
    }  # fmt: skip
    documents = await service.get("/v1/documents", collection="mixed", limit=1_000)
    assert documents["next_cursor"] is None
    assert len(documents["documents"]) == RECORDS, "all but the one without a collection, and the large one"
    detail = await service.get("/v1/documents/000165", collection="mixed")
    assert detail["text"].startswith(REPAIRED)

    listed = (await service.get("/v1/dead-letters", limit=100))["dead_letters"]
    assert len(listed) == poisoned + 1
    [again] = [letter for letter in listed if letter["attempt"] == 2]
    assert again["reason"] == "bad_key"
    [before] = again["earlier_attempts"]
    assert (before["number"], before["reason"], before["stage"]) == (1, "bad_key", "decode")
    assert before["letter"] in {letter["position"] for letter in listed}
    open_now = (await service.get("/v1/dead-letters", state="open", limit=100))["dead_letters"]
    assert [letter["position"] for letter in open_now] == [again["position"]], "all others were repaired"
    shown = await service.get(f"/v1/dead-letters/{again['position']}")
    assert shown["headers"] == {"origin": "bench", "content-type": "text/plain"}

    await nothing_twice(service, repaired, poisoned, again["position"])
    await what_is_refused(service)


async def nothing_twice(service: Service, repaired: WorkerProcess, poisoned: int, again: str) -> None:
    with client(repaired.kafka, repaired.prefix) as user:
        before = len(user.read_all(user.names.documents))
        once = [letter["position"] for letter in (await service.get("/v1/dead-letters"))["dead_letters"]]
        once.remove(again)
        state = await service.redrive(ids=once)
        assert counts(state) == {"matched": poisoned, "already_redriven": poisoned}
        newer = user.publish("mixed/000165", TEXT.format("newest", 3))
        assert newer[0] == partition_of("mixed/000165")
        user.receipt(newer)
        await service.get("/v1/search", q="newest", after=f"{newer[0]}:{newer[1]}")
        state = await service.redrive(collection="mixed")
        assert counts(state) == {"matched": poisoned - 1, "already_redriven": poisoned - 2, "resolved": 1}
        [resolved] = [letter for letter in state["letters"] if letter["outcome"] == "resolved"]
        assert (resolved["key"], f"{newer[0]}:{newer[1]}" in resolved["message"]) == ("mixed/000165", True)
        assert len(user.read_all(user.names.documents)) == before + 1
    status = await service.get("/v1/status")
    assert json.dumps(status["dead_letters_by_reason"]).count("bad_key") <= 1


async def what_is_refused(service: Service) -> None:
    assert "There is no dead letter at 0:900 (partition 0 holds 0 to" in await service.refused(404, {"ids": ["0:900"]})
    assert "7:1 (the partitions are 0 to 1)" in await service.refused(404, ids="0:1,7:1")
    assert "not both" in await service.refused(422, {"all": True, "ids": ["0:1"]})
    assert "in the body or in the address" in await service.refused(422, {"all": True}, all=True)
    for nothing in ({}, {"ids": []}, None):
        assert "Say which dead letters" in await service.refused(422, nothing)
    assert "ids.0" in await service.refused(422, {"ids": ["x"]})
    assert "since" in await service.refused(422, since="yesterday")
    unheard = await service.redrive(reason="unheard_of")
    assert unheard["matched"] == 0
    assert "no dead letter with the reason unheard_of. Among those there are: " in unheard["message"]
