"""The gate before every route: keys, hosts, sizes, and what there is no route for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.query_api.running_service import Running, problem, service_over
from tests.unit.query_api.scripted_engine import ScriptedEngine, make_generation


async def test_a_body_without_length_is_cut_off_at_the_limit(running: Running) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b" " * 1_024

    response = await running.http.post("/v1/search", content=endless(), headers={"Content-Type": "application/json"})
    assert problem(response)["status"] == 413


async def test_what_is_not_there_and_what_is_not_taken_are_problems_too(running: Running) -> None:
    assert "/v1/nothing" in problem(await running.get("/v1/nothing"))["detail"]
    response = await running.http.patch("/v1/search")
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, POST"
    assert "GET, POST" in problem(response)["detail"]


async def test_with_a_key_everything_but_the_probes_needs_it(tmp_path: Path) -> None:
    make_generation(tmp_path)
    key = "a-key-of-sixteen-or-more"
    async with service_over(tmp_path, ScriptedEngine(), api_key=key) as running:
        assert (await running.get("/readyz")).status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": key}):
            response = await running.http.get("/v1/search", params={"q": "x"}, headers=headers)
            assert problem(response)["status"] == 401
            assert response.headers["www-authenticate"] == "Bearer"
        assert (await running.http.get("/metrics")).status_code == 401
        headers = {"Authorization": f"Bearer {key}", "Host": "search.example.org"}
        assert (await running.http.get("/v1/search", params={"q": "x"}, headers=headers)).status_code == 200


async def test_without_a_key_web_pages_cannot_reach_in(running: Running) -> None:
    rebound = await running.http.get("/v1/status", headers={"Host": "evil.example:8420"})
    assert problem(rebound)["status"] == 421
    foreign = await running.http.post(
        "/v1/documents", json={"id": "a", "content": "x"}, headers={"Origin": "https://evil.example"}
    )
    assert problem(foreign)["status"] == 403
    own = await running.http.post(
        "/v1/documents", json={"id": "a", "content": "x"}, headers={"Origin": "http://localhost:8420"}
    )
    assert own.status_code == 503


@pytest.mark.parametrize(
    ("method", "path", "part"),
    [
        ("PUT", "/v1/documents/%ff?collection=a", "path"),
        ("DELETE", "/v1/documents/notes/%fe.md", "path"),
        ("GET", "/v1/documents/ada?collection=%ff", "query"),
        ("PUT", "/v1/collections/caf%e9/chunking", "path"),
        ("PUT", "/v1/documents/half%ed%a0%80", "path"),
        ("GET", "/v1/search?q=caf%e9", "query"),
    ],
)
async def test_names_that_are_no_utf8_are_refused_since_they_would_become_one_name(
    running: Running, method: str, path: str, part: str
) -> None:
    body = problem(await running.http.request(method, path, content=b"{}"))
    assert (body["status"], body["reason"]) == (400, "not_utf8")
    assert f"The {part} of the address holds %" in body["detail"]


async def test_names_in_any_script_pass_the_gate(running: Running) -> None:
    for path in ("/v1/documents/%C3%BC/%E6%97%A5?collection=%F0%9F%8C%8A", "/v1/documents/%EF%BF%BD?collection=a+b"):
        assert problem(await running.http.get(path))["status"] == 404
