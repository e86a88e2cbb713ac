"""`/`: the web console's page and files, or a sentence where they are not built."""

from pathlib import Path

import pytest

from query_api.routes import console
from tests.support.fakes.engine import ScriptedEngine
from tests.support.fakes.service import Running, problem, service_over

SCRIPT = "index-CaFe1234.js"
POLICY = {
    "default-src 'self'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "object-src 'none'",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
}  # fmt: skip


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page as the build leaves it, with a secret beside it."""
    dist = tmp_path / "page" / "dist"
    (dist / "console").mkdir(parents=True)
    (dist / "index.html").write_text(f'<script type="module" src="./console/{SCRIPT}"></script>')
    (dist / "console" / SCRIPT).write_text("export {};")
    (dist.parent / "secret.txt").write_text("secret")
    monkeypatch.setattr(console, "DIST", dist)
    return dist


async def test_the_page_is_asked_for_again_and_its_files_are_kept(running: Running, built: Path) -> None:
    page = await running.get("/")
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
    assert page.headers["content-type"].startswith("text/html")
    again = await running.http.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")
    script = await running.get(f"/console/{SCRIPT}")
    assert (script.status_code, script.text) == (200, "export {};")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]
    assert (await running.http.head("/")).status_code == 200
    for answer in (page, script):
        assert set(answer.headers["content-security-policy"].split("; ")) == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    ["none.js", "", "../index.html", "../../secret.txt", "%2e%2e/%2e%2e/secret.txt", "..%2f..%2fsecret.txt", "a%00b"],
)
async def test_nothing_else_is_served(running: Running, built: Path, path: str) -> None:
    answer = await running.http.get(f"/console/{path}")
    assert answer.status_code in {404, 400}
    assert "secret" not in answer.text.replace("secret.txt", "")


async def test_where_it_is_not_built_the_page_says_how_to(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "DIST", tmp_path / "none")
    page = await running.get("/")
    assert page.status_code == 503
    assert page.headers["content-type"].startswith("text/plain")
    assert "`make console`" in page.text
    assert problem(await running.get("/console/x.js"))["status"] == 404


async def test_the_page_needs_no_key_and_nothing_else_is_opened_by_it(tmp_path: Path, built: Path) -> None:
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False, api_key="a-key-of-sixteen-or-more") as run:
        assert (await run.get("/")).status_code == 200
        assert (await run.get(f"/console/{SCRIPT}")).status_code == 200
        for path in ("/v1/status", "/console", "/console/../v1/status", "//v1/status", "/docs", "/metrics"):
            answer = await run.http.get(path, follow_redirects=False)
            assert answer.status_code in {401, 404}, path
            assert answer.status_code == 401 or path.startswith("/console/")


async def test_the_page_too_answers_to_known_host_names_only(running: Running, built: Path) -> None:
    for path in ("/", f"/console/{SCRIPT}"):
        rebound = await running.http.get(path, headers={"Host": "evil.example:8420"})
        assert problem(rebound)["status"] == 421


async def test_a_page_of_another_origin_cannot_write_there(running: Running, built: Path) -> None:
    answer = await running.http.post("/", headers={"Origin": "https://evil.example"})
    assert problem(answer)["status"] == 403
