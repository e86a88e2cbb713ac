"""Pages of other origins: what browsers ask before they send, and what scripts may read of the answer."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import Running, events, problem, service_over

PAGE, STRANGER = "https://wiki.example.org", "https://evil.example"
KEY = "the-key-for-everything"
BEARER = {"Authorization": f"Bearer {KEY}"}
FROM_PAGE, FROM_STRANGER = {"Origin": PAGE}, {"Origin": STRANGER}


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine(), api_key=KEY, cors_origins=(PAGE,)) as running:
        yield running


def asks(method: str, *names: str) -> dict[str, str]:
    return {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": ", ".join(names)}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_a_preflight_needs_no_key_and_allows_what_requests_send(guarded: Running, method: str) -> None:
    wanted = asks(method, "authorization", "content-type", "last-event-id", "traceparent")
    answer = await guarded.http.options("/v1/documents/a", headers=FROM_PAGE | wanted)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert method in answer.headers["access-control-allow-methods"].split(", ")
    allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
    assert {"authorization", "content-type", "last-event-id", "traceparent"} <= set(allowed)
    assert "access-control-allow-credentials" not in answer.headers


async def test_a_page_of_the_internet_may_ask_a_service_in_a_local_network(guarded: Running) -> None:
    headers = FROM_PAGE | asks("GET", "authorization") | {"Access-Control-Request-Private-Network": "true"}
    answer = await guarded.http.options("/v1/search", headers=headers)
    assert (answer.status_code, answer.headers["access-control-allow-private-network"]) == (200, "true")


async def test_a_preflight_of_another_page_or_method_is_refused(guarded: Running) -> None:
    for headers in (FROM_STRANGER | asks("GET", "authorization"), FROM_PAGE | asks("TRACE", "authorization")):
        assert (await guarded.http.options("/v1/search", headers=headers)).status_code == 400


async def test_a_page_reads_answers_and_refusals_with_their_headers(guarded: Running) -> None:
    for response, status in (
        (await guarded.http.get("/v1/status", headers=FROM_PAGE | BEARER), 200),
        (await guarded.http.get("/v1/status", headers=FROM_PAGE), 401),
        (await guarded.http.get("/v1/nothing", headers=FROM_PAGE | BEARER), 404),
        (await guarded.http.patch("/v1/search", headers=FROM_PAGE | BEARER), 405),
        (await guarded.http.post("/v1/documents", json=[], headers=FROM_PAGE | BEARER), 422),
        (await guarded.http.delete("/v1/documents/a", headers=FROM_PAGE | BEARER), 503),
    ):
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == PAGE
        assert response.headers["vary"] == "Origin"
        exposed = response.headers["access-control-expose-headers"].split(", ")
        assert {"Allow", "Location", "Retry-After", "WWW-Authenticate"} <= set(exposed)


async def test_a_page_may_read_that_something_broke(guarded: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded.service, "settings", None)  # which the route needs
    answer = await guarded.http.get("/v1/formats", headers=FROM_PAGE | BEARER)
    assert (problem(answer)["title"], problem(answer)["status"]) == ("Internal error", 500)
    assert "NoneType" not in answer.text
    assert answer.headers["access-control-allow-origin"] == PAGE


async def test_a_page_that_was_not_named_reads_nothing(guarded: Running) -> None:
    answer = await guarded.http.get("/v1/status", headers=FROM_STRANGER | BEARER)
    assert "access-control-allow-origin" not in answer.headers


async def test_a_page_streams_with_a_session_token_and_resumes(guarded: Running) -> None:
    token = (await guarded.http.post("/v1/session-tokens", headers=FROM_PAGE | BEARER)).json()["access_token"]
    params = {"q": "x"}
    headers = FROM_PAGE | {"Accept": "text/event-stream", "Authorization": f"Bearer {token}"}
    stream = await guarded.http.get("/v1/search", params=params, headers=headers)
    assert (stream.status_code, stream.headers["access-control-allow-origin"]) == (200, PAGE)
    frames = events(stream)
    assert [name for name, *_ in frames][-1] == "done"
    resumed = await guarded.http.get("/v1/search", params=params, headers=headers | {"Last-Event-ID": frames[0][1]})
    assert events(resumed) == frames[1:]
    refused = await guarded.http.get("/v1/search", params=params, headers=headers | {"Authorization": "Bearer x"})
    assert problem(refused)["status"] == 401
    assert refused.headers["access-control-allow-origin"] == PAGE


async def test_without_named_origins_no_page_of_another_one_reads_anything(tmp_path: Path) -> None:
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False) as running:
        answer = await running.http.get("/v1/formats", headers=FROM_PAGE)
        assert not [name for name in answer.headers if name.startswith("access-control")]
        preflight = await running.http.options("/v1/formats", headers=FROM_PAGE | asks("GET", "content-type"))
        assert problem(preflight)["status"] == 405
