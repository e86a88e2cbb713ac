"""The page when not all is well: without a key, without documents, without Kafka, while the service starts again."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.acceptance.console.conftest import Complaints, OpenPage
from tests.support.processes.installation import Installation
from tests.support.processes.query_service import service_process

KEY = "a-key-of-sixteen-or-more"


def test_service_that_is_not_ready_says_why_and_asks_for_its_key(
    open_page: OpenPage, complaints: Complaints, tmp_path: Path
) -> None:
    complaints.expected += ["status of 401", "status of 503"]
    with service_process(tmp_path / "data", api_key=KEY) as service:
        page = open_page(url=service.url)
        asked: list[tuple[str, dict[str, str]]] = []  # addresses and headers
        page.on("request", lambda request: asked.append((request.url, request.headers)))
        dialog = page.get_by_role("dialog", name="This service needs its API key")
        dialog.get_by_label("API key").fill("wrong")
        dialog.get_by_role("button", name="Use the key").click()
        expect(dialog).to_contain_text("is not the service's")
        dialog.get_by_label("API key").fill(KEY)
        dialog.get_by_role("button", name="Use the key").click()
        expect(dialog).to_be_hidden()
        with page.expect_response("**/v1/collections") as answered:
            page.reload()
        assert answered.value.status != 401
        assert answered.value.request.headers["authorization"] == f"Bearer {KEY}"
        expect(dialog).to_be_hidden()
        expect(page.get_by_role("status", name="Service")).to_contain_text("Not ready yet")
        page.get_by_role("searchbox", name="Question").fill("river")
        with page.expect_request("**/v1/search*"):
            page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("Try again")
        [headers] = [headers for address, headers in asked if "/v1/search" in address]
        assert (headers["authorization"], headers["accept"]) == (f"Bearer {KEY}", "text/event-stream")
        assert not [address for address, _ in asked if KEY in address]
        assert KEY not in str(page.evaluate("[Object.values(localStorage), document.cookie]"))
        page.close()  # before its service goes, which it would ask again


def test_page_without_kafka_shows_that_searches_go_on(open_page: OpenPage) -> None:
    page = open_page()
    away = {"ready": True, "reasons": [], "notes": [], "kafka": "unreachable", "snapshot_age_seconds": 1}
    page.route("**/readyz", lambda route: route.fulfill(json=away))
    page.reload()
    expect(page.get_by_role("status", name="Service")).to_contain_text("Kafka is away: searches go on")
    page.unroute("**/readyz")
    expect(page.get_by_role("status", name="Service")).not_to_contain_text("Kafka is away")


@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_header_banner_and_content_have_the_same_edges(open_page: OpenPage, width: int) -> None:
    page = open_page("usage", viewport={"width": width, "height": 900})
    well = {"ready": True, "reasons": [], "notes": [], "kafka": "reachable", "snapshot_age_seconds": 1}
    page.route("**/readyz", lambda route: route.fulfill(json=well))
    with page.expect_response("**/readyz"):
        page.reload()
    expect(page.get_by_role("heading", name="Retrievals")).to_be_visible()
    expect(page.locator(".banner p")).to_have_count(0)
    assert page.locator(".banner").bounding_box()["height"] == 0  # type: ignore[index]  # nothing to say: no strip
    page.route("**/readyz", lambda route: route.fulfill(json=well | {"kafka": "unreachable"}))
    page.reload()
    expect(page.get_by_text("Kafka is away")).to_be_visible()
    expect(page.get_by_role("heading", name="Retrievals")).to_be_visible()
    left, right = page.evaluate(
        """() => {
          const inner = (element) => {
            const box = element.getBoundingClientRect();
            const style = getComputedStyle(element);
            return [box.left + parseFloat(style.paddingLeft), box.right - parseFloat(style.paddingRight)];
          };
          const edges = ["header", ".banner", "main"].map((each) => inner(document.querySelector(each)));
          return [0, 1].map((side) => edges.map((each) => Math.round(each[side])));
        }"""
    )
    assert len(set(left)) == len(set(right)) == 1
    assert page.evaluate("document.querySelector('.banner').getBoundingClientRect().right") == width


def test_an_empty_collection_offers_how_to_load(open_page: OpenPage) -> None:
    page = open_page()
    page.route("**/v1/collections", lambda route: route.fulfill(json={"collections": [], "notes": []}))
    page.reload()
    expect(page.get_by_role("heading", name="No documents are here yet")).to_be_visible()
    expect(page.get_by_text(".venv/bin/thalweg load README.md docs")).to_be_visible()


def test_the_page_waits_for_a_service_that_starts_again(
    open_page: OpenPage, complaints: Complaints, console: Installation
) -> None:
    complaints.expected += ["net::ERR", "status of 503"]
    page = open_page("search?q=river&collection=rivers")
    expect(page.locator("article").first).to_be_visible()
    console.child("serve").kill()
    page.get_by_role("searchbox", name="Question").fill("which river floods")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The service does not answer.").first).to_be_visible()
    expect(page.get_by_role("status", name="Service")).not_to_contain_text(
        re.compile("does not answer|Not ready"), timeout=60_000
    )
    expect(page.locator("article").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_injected_script_and_style_are_not_applied(open_page: OpenPage, complaints: Complaints) -> None:
    page = open_page()
    expect(page.get_by_role("searchbox", name="Question")).to_be_visible()
    page.evaluate(
        """() => {
          const odd = '<p id="odd" style="position: fixed" onclick="window.hacked = 1">x</p>';
          document.body.insertAdjacentHTML("beforeend", odd);
          const script = document.createElement("script");
          script.textContent = "window.hacked = 2";
          document.body.append(script);
          document.getElementById("odd").click();
        }"""
    )
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("getComputedStyle(document.getElementById('odd')).position") == "static"
    assert sum("Content Security Policy" in each for each in complaints.unexpected) >= 3
    complaints.found.clear()
