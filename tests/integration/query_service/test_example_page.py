"""The example page of `docs/examples`, served from another origin, in a real browser: it searches with a key."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.async_api import Page, async_playwright, expect

from query_api.index.store_opening import GraphFile
from query_api.service_health import readiness
from query_api.settings import ServiceSettings
from tests.integration.query_service.live_service import serving
from tests.support.fakes.engine import ScriptedEngine, make_generation, make_hit
from tests.support.fakes.service import PAGES, QUICK
from tests.support.http_server import files_of, http_server
from tests.support.waiting import eventually

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
PATIENCE_MS = 20_000
EVENT_SOURCE = """async (key) => {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const body = JSON.stringify({ path: "/v1/search" });
  const answer = await fetch(`${service}/v1/stream-tickets`, { method: "POST", headers, body });
  const { ticket } = await answer.json();
  const seen = [];
  const frames = new EventSource(`${service}/v1/search?${new URLSearchParams({ q: "river", ticket })}`);
  for (const name of ["meta", "hit", "done"]) frames.addEventListener(name, () => seen.push(name));
  await new Promise(resolve => frames.addEventListener("error", () => {
    if (frames.readyState === EventSource.CLOSED) resolve(seen.push("closed"));
  }));
  return seen;
}"""  # it reconnects by itself after `done`, and gives up when that is refused


@pytest.fixture
def origin() -> Iterator[str]:
    """A web server with the examples."""
    with http_server(files_of(EXAMPLES)) as address:
        yield address


class Shown(NamedTuple):
    page: Page
    addresses: list[str]  # of all that the page asked for


@asynccontextmanager
async def example_page(data_dir: Path, origin: str, **service: Any) -> AsyncIterator[Shown]:
    """The page in a browser, beside a running service that finds two hits."""
    browser_path = shutil.which("chromium")
    if browser_path is None:
        pytest.skip("there is no Chromium to show the page in: install it, on Debian by apt-get install chromium")
    make_generation(data_dir)
    engine = ScriptedEngine(hits=[make_hit(1), make_hit(2)])
    engine.reader.put(*PAGES, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [page.contribution() for page in PAGES]
    settings = ServiceSettings.model_validate({"storage": {"data_dir": data_dir}, "service": {"port": 0, **service}})
    double: Any = engine
    async with serving(settings, QUICK, stores=double, engine=double, load_encoder=double.load_encoder) as (http, app):
        await eventually(lambda: readiness(app.state.service).ready)
        async with async_playwright() as playwright:
            root = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = await playwright.chromium.launch(executable_path=browser_path, args=root)
            page = await browser.new_page()
            addresses: list[str] = []
            page.on("request", lambda request: addresses.append(request.url))
            await page.goto(f"{origin}/search.html?service={str(http.base_url).rstrip('/')}")
            yield Shown(page, addresses)
            await browser.close()


async def ask(page: Page, question: str, key: str = "") -> None:
    await page.get_by_placeholder("Ask a question").fill(question)
    await page.get_by_placeholder("API key").fill(key)
    await page.get_by_role("button", name="Search").click()


async def shows(page: Page, state: str) -> None:
    await expect(page.get_by_role("status")).to_have_text(state, timeout=PATIENCE_MS)


@pytest.mark.parametrize("key", [KEY, READ_KEY])
async def test_a_page_with_a_key_keeps_it_out_of_addresses(tmp_path: Path, origin: str, key: str) -> None:
    async with example_page(tmp_path, origin, api_key=KEY, read_api_key=READ_KEY, cors_origins=[origin]) as shown:
        await ask(shown.page, "river", key)
        await shows(shown.page, "2 hits")
        assert await shown.page.locator("#hits b").all_inner_texts() == ["Note 1", "Note 2"]
        [search] = [each for each in shown.addresses if "/v1/search" in each]
        assert search.endswith("/v1/search?q=river")
        assert not any(KEY in each or READ_KEY in each for each in shown.addresses)


async def test_an_event_source_opens_a_stream_with_a_ticket_once(tmp_path: Path, origin: str) -> None:
    async with example_page(tmp_path, origin, api_key=KEY, cors_origins=[origin]) as shown:
        seen = await shown.page.evaluate(EVENT_SOURCE, KEY)
        assert seen == ["meta", "hit", "hit", "done", "closed"]


async def test_wrong_or_missing_key_is_reported_on_the_page(tmp_path: Path, origin: str) -> None:
    async with example_page(tmp_path, origin, api_key=KEY, cors_origins=[origin]) as shown:
        for key in ("a-key-that-is-wrong", ""):
            await ask(shown.page, "river", key)
            await shows(shown.page, "The search failed: Send the service's API key: `Authorization: Bearer <key>`.")


async def test_without_a_key_it_streams_as_it_is(tmp_path: Path, origin: str) -> None:
    async with example_page(tmp_path, origin, cors_origins=[origin]) as shown:
        await ask(shown.page, "river")
        await shows(shown.page, "2 hits")


async def test_a_page_of_an_origin_that_was_not_named_sees_nothing(tmp_path: Path, origin: str) -> None:
    async with example_page(tmp_path, origin) as shown:
        await ask(shown.page, "river")
        await shows(shown.page, "The search failed: Failed to fetch")
        assert await shown.page.locator("#hits li").count() == 0
