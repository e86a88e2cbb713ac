"""More searches at once than can be answered: complete answers for those admitted, refusals that say when to come back
for the rest."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from query_api.admission import FIRST_GUESS_SECONDS
from tests.support.fakes.engine import ScriptedEngine, make_generation, make_hit
from tests.support.fakes.service import PAGES, Running, events, problem, service_over
from tests.support.waiting import eventually

EVENTS = {"Accept": "text/event-stream"}
AT_ONCE = 4
WAIT_SECONDS = 0.5
PLACES = AT_ONCE + int(WAIT_SECONDS * AT_ONCE / FIRST_GUESS_SECONDS)  # 4 run, 20 wait


@pytest.fixture
async def crowded(tmp_path: Path) -> AsyncIterator[Running]:
    """A service whose searches wait until `go_on` is set."""
    make_generation(tmp_path)
    engine = ScriptedEngine(hits=[make_hit(1)], hold_at=0)
    engine.reader.put(*PAGES, p0=(7, 3))
    constants = {
        "query_api.service_context.SEARCH_THREADS": AT_ONCE,
        "query_api.service_context.MAX_WAIT_SECONDS": WAIT_SECONDS,
    }
    async with service_over(tmp_path, engine, search_processes=1, constants=constants) as running:
        yield running


def searches(running: Running, count: int, *headers: dict[str, str]) -> list["asyncio.Task[httpx.Response]"]:
    """So many at once, with these headers in turns."""
    kinds = headers or ({},)
    return [
        asyncio.create_task(
            running.http.get("/v1/search", params={"q": f"river {number}"}, headers=kinds[number % len(kinds)])
        )
        for number in range(count)
    ]


async def test_of_200_at_once_each_is_either_complete_or_refused_with_when_to_ask_again(crowded: Running) -> None:
    asked = searches(crowded, 200, {}, EVENTS)
    await eventually(lambda: sum(each.done() for each in asked) == 200 - PLACES)
    refused = [each.result() for each in asked if each.done()]
    await eventually(lambda: crowded.engine.started == AT_ONCE)
    for response in refused:
        body = problem(response)
        assert (body["status"], body["reason"]) == (503, "overloaded")
        assert int(response.headers["retry-after"]) >= 1
        assert f"Ask again in {response.headers['retry-after']} s." in body["detail"]
    crowded.engine.go_on.set()
    rest = [response for response in await asyncio.gather(*asked) if response not in refused]
    answers = [response for response in rest if response.status_code == 200]
    assert len(answers) >= AT_ONCE
    for response in rest:  # where the queue turned out slower than expected, it was shortened
        assert response in answers or problem(response)["reason"] == "overloaded"
    for response in answers:
        if response.headers["content-type"] == "application/json":
            assert (len(response.json()["hits"]), response.json()["failed_channels"]) == (1, {})
        else:
            assert [name for name, _, _ in events(response)] == ["meta", "stage", "hit", "done"]
    admission = crowded.service.admission
    assert (admission.running, admission.waiting) == (0, 0)
    metrics = (await crowded.get("/metrics")).text
    assert f'thalweg_searches_refused_total{{reason="overloaded"}} {200 - len(answers)}.0' in metrics
    assert "thalweg_search_queue_length 0.0" in metrics


async def test_a_client_that_holds_the_whole_queue_makes_room_for_another(crowded: Running) -> None:
    greedy = searches(crowded, PLACES, {"Authorization": "Bearer greedy"})
    await eventually(lambda: crowded.service.admission.waiting == PLACES - AT_ONCE)
    other = searches(crowded, 2, {"Authorization": "Bearer other"})
    await eventually(lambda: sum(each.done() for each in greedy) == 2)
    for refused in (each.result() for each in greedy if each.done()):
        assert problem(refused)["reason"] == "fair_share"
        assert refused.status_code == 429
        assert refused.headers["retry-after"]
    crowded.engine.go_on.set()
    assert Counter(each.status_code for each in await asyncio.gather(*other)) == {200: 2}


async def test_a_search_that_is_refused_has_not_been_begun(crowded: Running) -> None:
    asked = searches(crowded, PLACES)
    admission = crowded.service.admission
    await eventually(lambda: (crowded.engine.started, admission.waiting) == (AT_ONCE, PLACES - AT_ONCE))
    refused = await crowded.http.post("/v1/search", json={"q": "river"})
    assert refused.status_code == 503
    assert crowded.engine.started == AT_ONCE
    assert (await crowded.get("/v1/documents")).status_code == 200  # only searches are refused
    status = (await crowded.get("/v1/status")).json()
    assert (status["searches_running"], status["searches_waiting"]) == (AT_ONCE, PLACES - AT_ONCE)
    crowded.engine.go_on.set()
    await asyncio.gather(*asked)


async def test_refused_search_is_not_read_or_validated(crowded: Running) -> None:
    asked = searches(crowded, PLACES)
    admission = crowded.service.admission
    await eventually(lambda: admission.running + admission.waiting == PLACES)
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(3):
            sent += 1
            yield b"{"

    refused = await crowded.http.post("/v1/search", content=body())
    assert problem(refused)["reason"] == "overloaded"
    assert sent == 0
    misspelt = await crowded.get("/v1/search", querry="river")
    assert problem(misspelt)["reason"] == "overloaded"
    crowded.engine.go_on.set()
    await asyncio.gather(*asked)


async def test_clients_that_leave_the_queue_or_a_stream_give_their_places_back(crowded: Running) -> None:
    asked = searches(crowded, PLACES, {}, EVENTS)
    await eventually(lambda: crowded.engine.started == AT_ONCE)
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    admission = crowded.service.admission
    await eventually(lambda: (admission.running, admission.waiting) == (0, 0))


async def test_an_evaluation_waits_until_it_is_admitted_and_loses_no_question(crowded: Running) -> None:
    asked = searches(crowded, PLACES, {})
    await eventually(lambda: crowded.engine.started == AT_ONCE)
    questions = [{"id": "q1", "text": "river", "relevant": {"ada": 1}}]
    begun = await crowded.http.post(
        "/v1/evaluations", json={"collection": "a", "questions": questions, "approaches": ["keyword"]}
    )
    assert begun.status_code == 202, begun.text
    state = begun.json()
    await eventually(lambda: crowded.service.admission.refused["fair_share"] > 0)  # it takes one of the others' places
    crowded.engine.go_on.set()
    await asyncio.gather(*asked)
    evaluations = crowded.http._transport.app.state.evaluations  # type: ignore[attr-defined]
    await eventually(lambda: evaluations.get(state["id"]).status != "running")
    finished = (await crowded.get(f"/v1/evaluations/{state['id']}")).json()
    assert (finished["status"], finished["asked"]) == ("done", 1)
