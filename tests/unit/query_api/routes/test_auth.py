"""The middleware before every route: keys, hosts, sizes, and what there is no route for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import Running, problem, service_over


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


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("http://localhost:3000", 403),
        ("http://127.0.0.1:3000", 403),
        ("http://127.0.0.1", 403),
        ("http://localhost:8420", 403),
        ("http://127.0.0.1:8420.evil.example", 403),
        ("http://evil@127.0.0.1:8420", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
        ("ftp://127.0.0.1:8420", 403),
        ("http://127.0.0.1:8420", 503),
        ("HTTP://127.0.0.1:8420", 503),
        ("https://wiki.example.org", 503),
        (None, 503),
    ],
)
async def test_only_pages_of_the_service_and_of_origins_that_were_named_may_write(
    tmp_path: Path, origin: str | None, status: int
) -> None:
    async with service_over(
        tmp_path, ScriptedEngine(), until_ready=False, cors_origins=("https://wiki.example.org",)
    ) as running:
        headers = {} if origin is None else {"Origin": origin}
        for request in (
            running.http.build_request("POST", "/v1/documents", json={"id": "a", "content": "x"}, headers=headers),
            running.http.build_request("DELETE", "/v1/documents/a", headers=headers),
        ):
            answer = await running.http.send(request)
            assert problem(answer)["status"] == status
            if status == 403:
                assert "THALWEG_SERVICE__CORS_ORIGINS" in problem(answer)["detail"]
        assert (await running.http.get("/v1/formats", headers=headers)).status_code == 200


@pytest.mark.parametrize("host", ["[", "]", "[::1", "[x]", "a]b", "//", "@", "", "127.0.0.1:99999999", "127.0.0.1:x"])
async def test_a_host_that_is_none_is_refused(running: Running, host: str) -> None:
    answer = await running.http.get("/v1/formats", headers={"Host": host})
    assert answer.status_code < 500
    if answer.status_code != 200:
        assert problem(answer)["status"] in {400, 421}


ODD = ["[", "\xff", ";;;=", '"', 'a/b; charset="', "bytes=-1", "*/*;q=[", "r_1.99999999999999999999", "\t", "x" * 9_000]


@pytest.mark.parametrize(
    "name",
    [
        "Accept", "Accept-Encoding", "Authorization", "Content-Type", "If-Match", "If-Modified-Since", "If-None-Match",
        "Last-Event-ID", "Origin", "Range", "Traceparent", "Tracestate", "Cookie", "X-Forwarded-For", "Thalweg-Author",
        "Ce_Specversion", "Ce_Sequence", "Expect", "Access-Control-Request-Method",
    ],
)  # fmt: skip
async def test_no_header_breaks_a_route(running: Running, name: str) -> None:
    for value in ODD:
        headers = {name: value.encode("latin-1")}
        for method, path in (
            ("GET", "/v1/search?q=river"),
            ("GET", "/v1/documents/ada/status?collection=a"),
            ("POST", "/v1/search"),
            ("POST", "/v1/documents?id=a"),
            ("PUT", "/v1/documents/a"),
        ):
            body = None if method == "GET" else b'{"q": "x"}'
            answer = await running.http.request(method, path, headers=headers, content=body)
            assert answer.status_code in {200, 204, 400, 403, 413, 415, 422, 503}, (path, value)


async def test_a_query_of_very_many_parameters_is_refused_at_once(running: Running) -> None:
    answer = problem(await running.http.get("/v1/search?q=x" + "&a" * 30_000))
    assert (answer["status"], answer["title"]) == (400, "Too many parameters")


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
