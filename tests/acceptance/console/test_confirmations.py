"""Clicks that take something away: each asks first, says what is lost, and does nothing until it is agreed to."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.acceptance.console.conftest import (
    RIVERS,
    SMALL,
    WIDE,
    Complaints,
    OpenPage,
    agree,
    load,
    overflow,
    serious_faults,
)
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

LIVE = {"name": "g0003-cc", "state": "live", "reason": None, "problem": None, "bytes": 40_000_000}
NOTHING_MORE: dict[str, Any] = {"progress": None, "comparison": None, "pipeline": None}
GENERATIONS = [
    {"name": "g0001-aa", "state": "kept", "reason": None, "problem": None, "bytes": 12_500_000} | NOTHING_MORE,
    LIVE | NOTHING_MORE,
]
BUILDING = LIVE | NOTHING_MORE | {"name": "g0004-dd", "state": "building"}
BUILDING["progress"] = {"records": 300, "of_records": 1_700, "seconds_left": 9.0}


def button(name: str, exact: bool = True) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_role("button", name=name, exact=exact).first


CLICKS = {
    "document of a list": ("documents?collection=rivers", button("Delete Tavel"), r"with its \d+ chunk"),
    "node": ("entities?collection=rivers&tab=made", button("Delete Mill of Lyde"), "1 edge that people made"),
    "edge": ("entities?collection=rivers&tab=made", button("Delete mill turns_by weir"), "Both ends stay"),
    "switch": ("operation", button("Switch to it"), "from g0003-cc to g0001-aa"),
}


@pytest.fixture(scope="module", autouse=True)
def made_by_people(console: Installation) -> None:
    """Two nodes with an edge between them."""
    for identifier, label in (("mill", "Mill of Lyde"), ("weir", "Weir of Lyde")):
        node = {"id": identifier, "label": label, "collection": "rivers", "text": f"The {label} is old."}
        assert httpx.post(f"{console.url}/v1/nodes", json=node, timeout=30).status_code in {202, 409}
    edge = {"id": "e1", "source": "mill", "target": "weir", "predicate": "turns_by", "collection": "rivers"}
    assert httpx.post(f"{console.url}/v1/edges", json=edge, timeout=30).status_code in {202, 409}


def with_generations(page: Page, *generations: dict[str, Any]) -> list[Request]:
    """The page sees these, and nothing that it orders of them is carried out: the orders are returned."""
    ordered: list[Request] = []

    def answer(route: Route) -> None:
        if route.request.method == "GET":
            route.fulfill(json={"generations": generations, "notes": []})
        else:
            ordered.append(route.request)
            route.fulfill(status=202, json={"name": "g0004-dd", "position": "0:1"})

    page.route("**/v1/generations**", answer)
    return ordered


@pytest.mark.parametrize("what", CLICKS)
def test_destructive_click_asks_and_escape_changes_nothing(
    open_page: OpenPage, complaints: Complaints, what: str
) -> None:
    complaints.expected += ["status of 503"]  # while communities are computed first, tabs of entities have no count
    view, find, lost = CLICKS[what]
    page = open_page("search")
    with_generations(page, *GENERATIONS)
    writes: list[str] = []
    page.on("request", lambda request: writes.append(request.url) if request.method != "GET" else None)
    page.goto(page.url.replace("search", view))
    click = find(page)
    click.click()
    asked = page.get_by_role("alertdialog")
    expect(asked).to_contain_text(re.compile(lost))
    harmless = asked.get_by_role("button").first
    expect(harmless).to_be_focused()
    page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    expect(click).to_be_focused()
    click.click()
    expect(harmless).to_be_focused()
    page.keyboard.press("Enter")
    expect(asked).to_have_count(0)
    assert writes == []


def test_generation_is_dropped_once_agreed_to(open_page: OpenPage) -> None:
    page = open_page("search")
    ordered = with_generations(page, *GENERATIONS)
    page.goto(page.url.replace("search", "operation"))
    page.get_by_role("button", name="Drop it").click()
    with page.expect_response("**/v1/generations/g0001-aa"):
        agree(page, "Drop it")
    assert [(each.method, each.url.rsplit("/", 1)[1]) for each in ordered] == [("DELETE", "g0001-aa")]


def test_rebuild_that_runs_can_be_cancelled(open_page: OpenPage) -> None:
    page = open_page("search")
    ordered = with_generations(page, LIVE | NOTHING_MORE, BUILDING)
    page.goto(page.url.replace("search", "operation"))
    expect(page.get_by_role("button", name="Rebuild and switch")).to_be_disabled()
    page.get_by_role("button", name="Cancel the rebuild").click()
    expect(page.get_by_role("alertdialog")).to_contain_text("after 300 of 1,700 records")
    with page.expect_response("**/v1/generations/g0004-dd"):
        agree(page, "Cancel the rebuild")
    assert [each.method for each in ordered] == ["DELETE"]


def test_merge_asks_and_is_undone_where_it_was_made(open_page: OpenPage, console: Installation) -> None:
    load(console, RIVERS, "merged")

    def pair() -> set[str]:
        answer = httpx.get(f"{console.url}/v1/entities", params={"collection": "merged"}, timeout=10)
        return {each["label"] for each in answer.json().get("entities", [])} & {"Lyde", "Osmere"}

    wait_until(lambda: len(pair()) == 2, "both entities are in the graph", 60)
    page = open_page("graph?node=Lyde&collection=merged&depth=2&shape=table")
    page.get_by_text("Edit", exact=True).click()
    page.get_by_label("Other node").select_option(label="Osmere")
    page.get_by_role("button", name="Merge the two").click()
    expect(page.get_by_role("alertdialog")).to_contain_text("with the mentions of both")
    agree(page, "Merge the two")
    wait_until(lambda: len(pair()) == 1, "the two are one", 30)
    page.get_by_role("button", name="Undo", exact=True).click()
    wait_until(lambda: len(pair()) == 2, "the two are two again", 30)


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["small", "wide"])
def test_confirmation_is_accessible_and_fits_the_page(open_page: OpenPage, theme: str, size: dict[str, int]) -> None:
    page = open_page("search", color_scheme=theme, viewport=size, bypass_csp=True)
    with_generations(page, *GENERATIONS)
    page.goto(page.url.replace("search", "operation"))
    page.get_by_role("button", name="Drop it").click()
    expect(page.get_by_role("alertdialog")).to_be_visible()
    assert serious_faults(page) == []
    assert overflow(page) <= 0
