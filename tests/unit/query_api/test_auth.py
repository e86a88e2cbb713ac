"""Keys, and what each allows."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from query_api.app import create_app
from query_api.auth import ApiKeys
from query_api.errors import ApiProblem
from query_api.settings import ServiceSettings
from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import Running, problem, service_over

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
    assert refused == {each for each in operations() if each[0] != "GET" and each != ("POST", "/v1/search")}
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


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic x", KEY, f"Bearer {KEY}x", "Bearer \xe9"])
def test_what_is_no_key_has_no_access(header: str) -> None:
    with pytest.raises(ApiProblem) as refused:
        ApiKeys(KEY, READ_KEY).access_of(header)
    assert refused.value.status == 401


def test_the_scheme_is_read_in_any_case_and_blanks_do_not_count() -> None:
    keys = ApiKeys(KEY, READ_KEY)
    assert keys.access_of(f"bearer  {KEY} ") == "full"
    assert keys.access_of(f"BEARER {READ_KEY}") == "read"
