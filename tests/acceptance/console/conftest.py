"""The web console in a real browser, on an installation with a few documents. A test fails for anything that the page
complains of: an error on its console, an uncaught exception, a violation of its Content-Security-Policy."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from query_api.routes.console import DIST
from tests.support.processes.installation import ROOT, Installation, installation

NAMES = ("chromium", "chromium-browser", "google-chrome")
IN_CI = os.environ.get("CI") == "true"
PATIENCE_MS = 20_000
SMALL = {"width": 360, "height": 740}
WIDE = {"width": 1280, "height": 860}

expect.set_options(timeout=PATIENCE_MS)

RIVERS = [
    {"id": f"rivers/{name.lower()}.md", "title": name, "content": text, "metadata": {"country": country}}
    for name, country, text in (
        ("Tavel", "North", "The Tavel rises in the hills of Osmere. In spring the Tavel floods the meadows of Lyde."),
        ("Issen", "North", "The Issen is a slow river. A heron pump lifts its water to the mills of Lyde."),
        ("Orrow", "South", "The Orrow falls through a gorge. No mill stands on the Orrow, for it floods too often."),
        ("Quill", "South", "The Quill was made by people: a canal, which joins the Issen to the sea at Marrow."),
    )
]


def browser_path() -> str:
    """Where a Chromium is; the test that asks is skipped where there is none."""
    for attempt in range(2):
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is not None:
            return found
        if IN_CI and attempt == 0:
            subprocess.run(["make", "browser"], cwd=ROOT, check=False, timeout=600)
    pytest.skip("there is no Chromium to show the web console in: install it, on Debian by apt-get install chromium")


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running installation with a collection `rivers`, whose page is built."""
    if not (DIST / "index.html").is_file():
        missing = "the web console is not built: run make console"
        (pytest.fail if IN_CI else pytest.skip)(missing)
    browser_path()
    with installation(tmp_path_factory.mktemp("console") / "data") as running:
        load(running, RIVERS, "rivers")
        yield running


def load(running: Installation, envelopes: list[dict[str, Any]], collection: str) -> None:
    """Returns once searches find them."""
    documents = [each | {"collection": collection} for each in envelopes]
    answer = httpx.post(f"{running.url}/v1/documents", json={"documents": documents}, timeout=30)
    assert answer.status_code == 202, answer.text
    assert answer.json()["refused"] == []
    running.search(q="x", collection=collection, after=answer.json()["token"], wait_seconds=60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one file: its event loop must be gone when others run theirs."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        drawing = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # WebGL without a graphics card
        chromium = playwright.chromium.launch(executable_path=browser_path(), args=root + drawing)
        yield chromium
        chromium.close()


@dataclass
class Complaints:
    """What pages complained of. A test that provokes some says which, by a part of their text."""

    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        def on_console(message: ConsoleMessage) -> None:
            if message.type in {"error", "warning"}:
                self.found.append(message.text)

        page.on("console", on_console)
        page.on("pageerror", lambda error: self.found.append(f"uncaught: {error}"))

    @property
    def unexpected(self) -> list[str]:
        return [each for each in self.found if not any(re.search(part, each) for part in self.expected)]


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    complaints = Complaints()
    yield complaints
    assert complaints.unexpected == []


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, complaints: Complaints, console: Installation) -> Iterator[OpenPage]:
    """Opens a view in a new context, by what stands after `/#/`, at a width and in a theme."""
    contexts: list[BrowserContext] = []

    def open_it(view: str = "search", url: str | None = None, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": WIDE, "color_scheme": "light"} | options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        complaints.watch(page)
        page.goto(f"{url or console.url}/#/{view}")
        return page

    yield open_it
    for context in contexts:
        context.close()


def hits(page: Page) -> list[str]:
    """The titles of all hits, once the answer is complete."""
    expect(page.get_by_role("list", name="Hits", include_hidden=True)).to_have_attribute("aria-busy", "false")
    return page.locator("article h2").all_inner_texts()


def agree(page: Page, act: str) -> None:
    """Answer the question that a destructive click asks, by the button that does it."""
    asked = page.get_by_role("alertdialog")
    asked.get_by_role("button", name=act, exact=True).click()
    expect(asked).to_have_count(0)


def axe_script() -> Path:
    return ROOT / "query_api" / "console" / "node_modules" / "axe-core" / "axe.min.js"


def serious_faults(page: Page) -> list[str]:
    """What axe finds, of what keeps people from using a page. The page's context must bypass its policy."""
    page.add_script_tag(path=axe_script())
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [
        f"{each['id']}: {each['help']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
