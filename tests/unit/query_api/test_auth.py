"""Keys, and what each allows."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from query_api.app import create_app
from query_api.auth import take_access_token
from query_api.settings import ServiceSettings
from schemas.provenance import encode_retrieval
from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import Running, events, problem, service_over

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
OPEN = {"/livez", "/readyz"}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine(), api_key=KEY, read_api_key=READ_KEY) as running:
        yield running


def operations() -> list[tuple[str, str]]:
    paths = create_app(ServiceSettings()).openapi()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods if path not in OPEN]


async def test_the_key_that_only_reads_is_refused_by_every_route_that_does_more(guarded: Running) -> None:
    refused = set()
    for method, path in operations():
        filled = path.replace("{", "").replace("}", "")
        answer = await guarded.http.request(method, filled, headers=bearer(READ_KEY))
        assert answer.status_code != 401, (method, path)
        if answer.status_code == 403:
            assert problem(answer)["reason"] == "read_only"
            refused.add((method, path))
    allowed = {("POST", "/v1/search"), ("POST", "/v1/session-tokens")}
    assert refused == {each for each in operations() if each[0] != "GET"} - allowed
    assert ("POST", "/v1/retrievals/{retrieval_id}/feedback") in refused


async def test_a_refusal_says_what_is_allowed_and_which_key_does_more(guarded: Running) -> None:
    body = problem(await guarded.http.delete("/v1/cache", headers=bearer(READ_KEY)))
    assert body["detail"] == (
        "This key only reads: it allows GET, HEAD and POST /v1/search. Send the service's own key, "
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
async def test_a_token_streams_as_a_parameter_and_reads_as_a_bearer(guarded: Running, key: str) -> None:
    token = await session_token(guarded, key)
    streamed = await guarded.http.get("/v1/search", params={"q": "x", "access_token": token}, headers=STREAM)
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
        assert body["detail"].startswith("A session token only reads: it allows GET, HEAD and POST /v1/search. ")


async def test_as_a_parameter_it_is_for_streams_alone(guarded: Running) -> None:
    token = await session_token(guarded)
    for method, headers in (("GET", {}), ("GET", {"Accept": "text/html"}), ("POST", STREAM), ("HEAD", STREAM)):
        answer = await guarded.http.request(method, "/v1/search", params={"access_token": token}, headers=headers)
        assert answer.status_code == 401
        assert method == "HEAD" or "is for streams alone" in problem(answer)["detail"]


def changed(token: str, **claims: object) -> str:
    """The same token with other claims, signed with nothing."""
    return jwt.encode(jwt.decode(token, options={"verify_signature": False}) | claims, "", "none")


async def test_no_other_token_is_accepted(guarded: Running, tmp_path: Path) -> None:
    token = await session_token(guarded)
    head, claims, signature = token.split(".")
    others = [
        "", KEY, READ_KEY, "a.b.c", f"{head}.{claims}.", f"{head}.{claims}.{signature[::-1]}", changed(token),
        changed(token, exp=10**11), changed(token, scope="full"), "\xff", token[:-1],
        jwt.encode({"aud": "thalweg", "scope": "read", "exp": 10**11}, KEY.ljust(32, "x")),
    ]  # fmt: skip
    for other in others:
        answer = await guarded.http.get("/v1/search", params={"q": "x", "access_token": other}, headers=STREAM)
        assert "no session token of this service" in problem(answer)["detail"], other
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'


async def test_an_expired_one_says_so(guarded: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("query_api.auth.time.time", lambda: 1_000_000.0)
    token = await session_token(guarded)
    answer = await guarded.http.get("/v1/search", params={"q": "x", "access_token": token}, headers=STREAM)
    assert problem(answer)["detail"] == (
        "The session token has expired. Ask for a new one with the key: POST /v1/session-tokens."
    )


@pytest.mark.parametrize(
    ("keys", "status"),
    [
        ({"api_key": KEY, "read_api_key": READ_KEY}, 200),
        ({"api_key": KEY + "2", "read_api_key": READ_KEY}, 401),
        ({"api_key": KEY, "read_api_key": READ_KEY + "2"}, 401),
        ({"api_key": KEY}, 401),
    ],
)
async def test_it_is_good_for_every_process_with_the_same_keys_and_for_no_other(
    guarded: Running, tmp_path: Path, keys: dict[str, str], status: int
) -> None:
    token = await session_token(guarded)
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False, **keys) as other:
        answer = await other.http.get("/v1/formats", params={"access_token": token}, headers=STREAM)
        assert answer.status_code == status


async def test_without_a_key_no_token_is_needed_and_one_does_no_harm(tmp_path: Path) -> None:
    make_generation(tmp_path)
    async with service_over(tmp_path, ScriptedEngine()) as open_service:
        assert problem(await open_service.http.post("/v1/session-tokens"))["status"] == 409
        answer = await open_service.http.get("/v1/search", params={"q": "x", "access_token": "any"})
        assert answer.status_code == 200


async def test_the_token_reaches_no_record_no_log_and_no_answer(
    guarded: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    token = await session_token(guarded)
    for name in ("access_token", "access%5Ftoken", "access_tok%65n"):
        address = f"/v1/search?q=river&{name}={token}&k=1"
        answer = await guarded.http.get(address, headers=STREAM)
        assert answer.status_code == 200
        assert token not in answer.text
        kept = guarded.service.provenance.recent(events(answer)[0][2]["retrieval_id"])
        assert kept is not None
        assert token.encode() not in encode_retrieval(kept)
    refused = await guarded.http.get(f"/v1/search?q=river&access_token={token}&colour=red", headers=STREAM)
    assert "There is no parameter 'colour'" in problem(refused)["detail"]
    assert token not in refused.text
    written = capfd.readouterr()
    assert token not in written.out + written.err


@pytest.mark.parametrize(
    ("query", "left", "token"),
    [
        (b"", b"", None),
        (b"q=access_token", b"q=access_token", None),
        (b"access_token=a", b"", "a"),
        (b"q=1&access_token=a%2Eb+c&k=2", b"q=1&k=2", "a.b c"),
        (b"access_token=a&access_token=b&q=1", b"q=1", "a"),
        (b"access_token", b"", ""),
        (b"access_token=a=b&", b"", "a=b"),
    ],
)
def test_the_parameter_is_taken_out_of_the_address(query: bytes, left: bytes, token: str | None) -> None:
    scope: dict[str, Any] = {"query_string": query}
    assert take_access_token(scope) == token
    assert scope["query_string"] == left
