"""Keys, and what each allows."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from query_api.app import create_app
from query_api.auth import take_secrets
from query_api.settings import ServiceSettings
from schemas.choices import STUDY_PATHS
from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import Running, events, problem, service_over

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
OPEN = {"/livez", "/readyz"}
READS = (
    "GET, HEAD, POST /v1/answers, /v1/chat/completions, /v1/fact-checks, /v1/research, /v1/responses, /v1/search, and "
    "the tools of /mcp that read"
)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine(), api_key=KEY, read_api_key=READ_KEY) as running:
        yield running


def operations() -> list[tuple[str, str]]:
    paths = create_app(ServiceSettings()).openapi()["paths"]
    described = [(method.upper(), path) for path, methods in paths.items() for method in methods if path not in OPEN]
    return [*described, ("GET", "/v1/documents/a/status"), ("GET", "/openapi.json"), ("GET", "/docs")]


def filled(path: str) -> str:
    return path.replace("{", "").replace("}", "")


async def test_a_caller_who_reads_is_refused_by_every_other_route(guarded: Running) -> None:
    token = await session_token(guarded)
    refused = set()
    for method, path in operations():
        answer = await guarded.http.request(method, filled(path), headers=bearer(READ_KEY))
        assert answer.status_code != 401, (method, path)
        if answer.status_code == 403:
            assert problem(answer)["reason"] == "read_only"
            refused.add((method, path))
            by_token = await guarded.http.request(method, filled(path), headers=bearer(token))
            assert problem(by_token)["reason"] == "read_only"
    searching = (
        "/v1/search",
        "/v1/answers",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/research",
        "/v1/fact-checks",
    )
    allowed = {("POST", path) for path in (*searching, "/v1/session-tokens", "/v1/stream-tickets")}
    own = ("/v1/conversations", "/v1/ground-truth", *STUDY_PATHS.values())  # the key's
    allowed |= {each for each in operations() if each[1].startswith(own)}
    assert refused == {each for each in operations() if each[0] != "GET"} - allowed
    assert ("POST", "/v1/retrievals/{retrieval_id}/feedback") in refused


async def test_no_route_takes_a_key_or_token_from_its_address(guarded: Running) -> None:
    secrets = [KEY, READ_KEY, await session_token(guarded), await session_token(guarded, READ_KEY)]
    names = ["access_token={0}", "access%5Ftoken={0}", "ticket={0}", "api_key={0}&token={0}&key={0}&authorization={0}"]
    for method, path in operations():
        for query in ("", *(f"?{name.format(secret)}" for name in names for secret in secrets)):
            answer = await guarded.http.request(method, filled(path) + query, headers=STREAM)
            assert answer.status_code == 401, (method, path, query)
            assert not [secret for secret in secrets if secret in answer.text]


async def test_an_address_with_a_token_says_how_to_send_it(guarded: Running) -> None:
    token = await session_token(guarded)
    for headers in (STREAM, STREAM | bearer(token)):
        answer = await guarded.http.get("/v1/search", params={"q": "x", "access_token": token}, headers=headers)
        assert problem(answer)["detail"] == (
            "An address is not a place for a key or a token, so `access_token` is not taken: send it as "
            "`Authorization: Bearer <token>`. For an EventSource, which sends no headers, make a one-use ticket "
            "with the key or a session token: POST /v1/stream-tickets."
        )
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_refusal_says_what_is_allowed_and_which_key_does_more(guarded: Running) -> None:
    body = problem(await guarded.http.delete("/v1/cache", headers=bearer(READ_KEY)))
    assert body["detail"] == (
        f"This key only reads: it allows {READS}. Send the service's own key, "
        "THALWEG_SERVICE__API_KEY, for DELETE /v1/cache."
    )
    assert (await guarded.http.delete("/v1/cache", headers=bearer(KEY))).status_code == 200


async def test_both_keys_search_either_way(guarded: Running) -> None:
    for key in (KEY, READ_KEY):
        read = await guarded.http.get("/v1/search", params={"q": "x"}, headers=bearer(key))
        posted = await guarded.http.post("/v1/search", json={"q": "x"}, headers=bearer(key))
        assert (read.status_code, posted.status_code) == (200, 200)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic x", KEY, f"Bearer {KEY}x", "Bearer \xe9", "Bearer a.b.c", "Bearer .."]
)
async def test_what_is_no_key_has_no_access(guarded: Running, header: str) -> None:
    answer = await guarded.http.get("/v1/formats", headers={"Authorization": header.encode("latin-1")})
    assert problem(answer)["status"] == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_the_scheme_is_read_in_any_case_and_blanks_do_not_count(guarded: Running) -> None:
    for header in (f"bearer  {KEY} ", f"BEARER {READ_KEY}"):
        assert (await guarded.http.get("/v1/formats", headers={"Authorization": header})).status_code == 200


STREAM = {"Accept": "text/event-stream"}


async def session_token(running: Running, key: str = KEY) -> str:
    answer = await running.http.post("/v1/session-tokens", headers=bearer(key))
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    told = answer.json()
    assert (told["token_type"], told["expires_in"], told["scope"]) == ("Bearer", 600, "read")
    return str(told["access_token"])


@pytest.mark.parametrize("key", [KEY, READ_KEY])
async def test_a_session_token_reads_and_streams_as_a_bearer(guarded: Running, key: str) -> None:
    token = await session_token(guarded, key)
    streamed = await guarded.http.get("/v1/search", params={"q": "x"}, headers=STREAM | bearer(token))
    assert streamed.status_code == 200
    assert events(streamed)[-1][0] == "done"
    assert token not in streamed.text
    assert (await guarded.http.get("/v1/status", headers=bearer(token))).status_code == 200
    assert (await guarded.http.post("/v1/search", json={"q": "x"}, headers=bearer(token))).status_code == 200


async def test_a_token_neither_writes_nor_renews_itself(guarded: Running) -> None:
    token = await session_token(guarded)
    for path in ("/v1/documents", "/v1/session-tokens"):
        body = problem(await guarded.http.post(path, json={}, headers=bearer(token)))
        assert (body["status"], body["reason"]) == (403, "read_only")
        assert body["detail"].startswith(f"A session token only reads: it allows {READS}. ")


def changed(token: str, **claims: object) -> str:
    """The same token with other claims, signed with nothing."""
    return jwt.encode(jwt.decode(token, options={"verify_signature": False}) | claims, "", "none")


async def test_no_other_token_is_accepted(guarded: Running, tmp_path: Path) -> None:
    token = await session_token(guarded)
    head, claims, signature = token.split(".")
    reads = {"aud": "thalweg", "scope": "read", "exp": 10**11}
    others = [
        "a.b.c", f"{head}.{claims}.", f"{head}.{claims}.{signature[::-1]}", changed(token),
        changed(token, exp=10**11), changed(token, scope="full"), "x.\xff.x", token[:-1],
        *(jwt.encode(reads, KEY.ljust(32, "x"), headers={"kid": kid}) for kid in ("full", "read", "session", "")),
        jwt.encode(reads, KEY.ljust(32, "x")),
        jwt.encode(reads, READ_KEY.ljust(32, "x"), headers={"kid": "full"}),
    ]  # fmt: skip
    for other in others:
        headers = {"Authorization": f"Bearer {other}".encode("latin-1")}
        answer = await guarded.http.get("/v1/search", params={"q": "x"}, headers=headers)
        assert "not a session token of this service" in problem(answer)["detail"], other
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'


async def test_an_expired_one_says_so(guarded: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("query_api.auth.time.time", lambda: 1_000_000.0)
    token = await session_token(guarded)
    answer = await guarded.http.get("/v1/search", params={"q": "x"}, headers=bearer(token))
    assert problem(answer)["detail"] == (
        "The session token has expired. Ask for a new one with the key: POST /v1/session-tokens."
    )


@pytest.mark.parametrize(
    ("asked_with", "keys", "status"),
    [
        (KEY, {"api_key": KEY, "read_api_key": READ_KEY}, 200),
        (KEY, {"api_key": KEY + "2", "read_api_key": READ_KEY}, 401),
        (KEY, {"api_key": KEY, "read_api_key": READ_KEY + "2"}, 200),
        (KEY, {"api_key": KEY}, 200),
        (KEY, {"api_key": READ_KEY, "read_api_key": KEY}, 401),
        (READ_KEY, {"api_key": KEY, "read_api_key": READ_KEY}, 200),
        (READ_KEY, {"api_key": KEY + "2", "read_api_key": READ_KEY}, 200),
        (READ_KEY, {"api_key": KEY, "read_api_key": READ_KEY + "2"}, 401),
        (READ_KEY, {"api_key": KEY}, 401),
    ],
)
async def test_a_token_ends_when_the_key_that_asked_is_changed(
    guarded: Running, tmp_path: Path, asked_with: str, keys: dict[str, str], status: int
) -> None:
    token = await session_token(guarded, asked_with)
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False, **keys) as other:
        answer = await other.http.get("/v1/formats", headers=bearer(token))
        assert answer.status_code == status


async def test_without_a_key_no_token_is_needed_and_one_does_no_harm(tmp_path: Path) -> None:
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine()) as open_service:
        assert problem(await open_service.http.post("/v1/session-tokens"))["status"] == 409
        wanted = {"path": "/v1/search"}
        assert problem(await open_service.http.post("/v1/stream-tickets", json=wanted))["status"] == 409
        for name in ("access_token", "ticket"):
            answer = await open_service.http.get("/v1/search", params={"q": "x", name: "any"})
            assert answer.status_code == 200


@pytest.mark.parametrize(
    ("query", "left", "taken"),
    [
        (b"", b"", {}),
        (b"q=access_token", b"q=access_token", {}),
        (b"access_token=a", b"", {"access_token": "a"}),
        (b"q=1&ticket=a%2Eb+c&k=2", b"q=1&k=2", {"ticket": "a.b c"}),
        (b"ticket=a&ticket=b&q=1", b"q=1", {"ticket": "a"}),
        (b"access_token&tick%65t=x", b"", {"access_token": "", "ticket": "x"}),
        (b"access_token=a=b&", b"", {"access_token": "a=b"}),
    ],
)
def test_secrets_are_taken_out_of_the_address(query: bytes, left: bytes, taken: dict[str, str]) -> None:
    scope: dict[str, Any] = {"query_string": query}
    assert take_secrets(scope) == taken
    assert scope["query_string"] == left
