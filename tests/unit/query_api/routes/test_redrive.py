"""`/v1/dead-letters/redrive` where nothing is redriven: unclear orders, an unknown one, no Kafka, one at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafka_client.topic_offsets import LogUnavailable
from query_api.dead_letters import redrive
from query_api.dead_letters.letter_table import LetterFilter
from schemas.redrive import RedriveOrder
from tests.support.fakes.service import Running, problem
from tests.support.waiting import eventually

PATH = "/v1/dead-letters/redrive"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "Say which dead letters: `all`, or their `ids`"),
        (None, "Say which dead letters"),
        ({"dry_run": True}, "Say which dead letters"),
        ({"ids": []}, "Say which dead letters"),
        ({"all": True, "ids": ["0:1"]}, "Give `all` or `ids`, not both"),
        ({"all": True, "reason": "not_json"}, "Give `all` or `reason`, not both"),
        ({"ids": ["0:1"], "collection": "docs"}, "Give `ids` or `collection`, not both"),
        ({"ids": ["first"]}, "`ids.0`"),
        ({"everything": True}, "There is no parameter 'everything'"),
        ({"all": "perhaps"}, "`all`"),
        ({"since": "yesterday"}, "`since`"),
    ],
)
async def test_unclear_order_is_refused(running: Running, body: dict[str, Any] | None, says: str) -> None:
    response = await running.http.post(PATH, json=body)
    assert response.status_code == 422
    assert says in problem(response)["detail"]


async def test_an_order_stands_in_the_body_or_in_the_address(running: Running) -> None:
    twice = await running.http.post(PATH, json={"all": True}, params={"all": True})
    assert "in the body or in the address, not in both" in problem(twice)["detail"]
    together = await running.http.post(PATH, json={"reason": "not_json"}, params={"ids": "0:1,1:2"})
    assert "Give `ids` or `reason`, not both" in problem(together)["detail"]


@pytest.mark.parametrize("order", [{"all": True}, {"ids": ["0:1"]}, {"reason": ["not_json"], "dry_run": True}])
async def test_without_kafka_nothing_is_begun(running: Running, order: dict[str, Any]) -> None:
    response = await running.http.post(PATH, json=order)
    assert response.status_code == 503
    assert problem(response)["detail"].startswith("Nothing was redriven: no Kafka is known")
    assert response.headers["Retry-After"]
    assert (await running.get(PATH)).json() == {"redrives": []}


async def test_unknown_redrive_is_404_with_what_that_means(running: Running) -> None:
    response = await running.get(f"{PATH}/d_1")
    assert response.status_code == 404
    assert "redriving the same again sends nothing twice" in problem(response)["detail"]


async def test_one_redrive_runs_at_a_time_and_failure_states_why(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = asyncio.Event()

    @asynccontextmanager
    async def away(*_: Any, **__: Any) -> AsyncIterator[None]:
        await answers.wait()
        raise LogUnavailable("no Kafka is known")
        yield

    monkeypatch.setattr(redrive, "connected", away)
    redrives = running.http._transport.app.state.redrives  # type: ignore[attr-defined]
    begun = redrives.begin(RedriveOrder(all=True), LetterFilter())
    assert (await running.http.post(PATH, json={"all": True})).status_code == 409
    answers.set()
    await eventually(lambda: redrives.get(begun.id).state != "running")
    state = (await running.get(f"{PATH}/{begun.id}")).json()
    assert (state["state"], state["stage"], state["redriven"]) == ("failed", "ended", 0)
    assert state["message"].startswith("Kafka is unavailable: no Kafka is known")
    assert state["message"].endswith("Once it is back, run it again: nothing is redriven twice.")
    assert [each["id"] for each in (await running.get(PATH)).json()["redrives"]] == [begun.id]
