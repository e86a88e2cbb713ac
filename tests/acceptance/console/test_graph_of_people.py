"""What people made, in the browser: one node a thing, changed by forms, drawn as soon as it is there, listed with the
rest; communities with their members."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.console.conftest import OpenPage, agree, serious_faults
from tests.support.processes.installation import ROOT, Installation
from tests.support.waiting import wait_until

SAMPLE = ROOT / "deploy" / "samples" / "islands.jsonl"
FULMAR = "graph?node=fulmar&collection=islands"
COMMUNITY_SECONDS = 150


@pytest.fixture(scope="module")
def islands(console: Installation) -> Installation:
    """The installation with the sample graph of the ferry company."""
    console.run("load", str(SAMPLE))
    wait_for_communities(console)
    return console


def wait_for_communities(running: Installation) -> None:
    """Until those of the graph as it is now are there."""
    position = httpx.get(f"{running.url}/readyz", timeout=30).json()["graph_position"]

    def found() -> bool:
        asked = {"collection": "islands", "level": "medium"}
        answer = httpx.get(f"{running.url}/v1/communities", params=asked, timeout=30)
        return answer.status_code == 200 and answer.json()["graph_position"] >= position and answer.json()["total"] > 1

    wait_until(found, "communities are found", COMMUNITY_SECONDS)


def ask(running: Installation, path: str, **parameters: Any) -> Any:
    answer = httpx.get(f"{running.url}/v1/{path}", params={"collection": "islands", **parameters}, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def edge_of(running: Installation, node: str, predicate: str) -> Any:
    return ask(running, "edges", node=node, predicate=predicate)["edges"][0]


def put_edge(running: Installation, edge: Any, **changed: Any) -> None:
    """As another person does it; returns once reads show it."""
    added = ("id", "collection", "position", "missing")
    body = {name: value for name, value in (edge | changed).items() if name not in added}
    url = f"{running.url}/v1/edges/{edge['id']}"
    answer = httpx.put(url, params={"collection": "islands"}, json=body, timeout=30)
    assert answer.status_code == 202, answer.text
    ask(running, "edges", after=answer.json()["token"], wait_seconds=30)


def row(page: Page, *texts: str) -> Any:
    found = page.locator("tr[data-key]")
    for text in texts:
        found = found.filter(has_text=text)
    return found.first


def test_hand_made_node_is_drawn_once(open_page: OpenPage, islands: Installation) -> None:
    page = open_page(f"{FULMAR}&depth=2&shape=table")
    expect(row(page, "D6 engine", "powered by")).to_be_visible()
    legend = page.locator(".legend")
    expect(legend).not_to_contain_text("has chunk")
    expect(legend).not_to_contain_text("is about")
    expect(page.get_by_role("checkbox", name=re.compile("^chunks"))).to_have_count(0)
    expect(page.get_by_role("heading", name="Fulmar")).to_be_visible()
    expect(page.get_by_text("A freight boat with a hold")).to_be_visible()
    named = [node for node in ask(islands, "graph", node="fulmar", depth=2)["nodes"] if "Fulmar" in node["label"]]
    assert [node["id"] for node in named] == ["fulmar"]


def test_edge_is_changed_by_its_form_but_not_over_others(
    open_page: OpenPage, islands: Installation, complaints: Any
) -> None:
    page = open_page(f"{FULMAR}&shape=table")
    row(page, "powered by").get_by_role("button", name="powered by").click()
    page.get_by_text("Edit", exact=True).click()
    form = page.get_by_role("form", name="Change the edge")
    form.get_by_label("Weight").fill("0.4")
    form.get_by_role("button", name="Add a property").click()
    form.get_by_label("Name of property 1").fill("since")
    form.get_by_label("Value of property 1").fill("1998")
    form.get_by_role("button", name="Save the edge").click()
    expect(row(page, "powered by")).to_contain_text("0.40")
    edge = edge_of(islands, "fulmar", "powered_by")
    assert (edge["weight"], edge["properties"]) == (0.4, {"since": 1998})

    form.get_by_label("Weight").fill("0.9")
    put_edge(islands, edge, note="Overhauled.")
    form.get_by_role("button", name="Save the edge").click()
    expect(page.get_by_role("alert")).to_contain_text("Somebody changed this edge")
    expect(form.get_by_label("Why it holds")).to_have_value("Overhauled.")
    assert edge_of(islands, "fulmar", "powered_by")["weight"] == 0.4


def test_node_is_changed_by_its_form_and_faults_are_told(open_page: OpenPage, islands: Installation) -> None:
    page = open_page("graph?node=harray-quay&collection=islands&shape=table")
    page.get_by_text("Edit", exact=True).click()
    form = page.get_by_role("form", name="Change the node")
    for number, value in ((1, "12"), (2, "14")):
        form.get_by_role("button", name="Add a property").click()
        form.get_by_label(f"Name of property {number}").fill("berths")
        form.get_by_label(f"Value of property {number}").fill(value)
    form.get_by_role("button", name="Save the node").click()
    expect(page.get_by_role("alert")).to_contain_text("Two properties are called “berths”")
    form.get_by_label("Remove property 1").click()
    form.get_by_label("Name", exact=True).fill("Harray New Quay")
    form.get_by_role("button", name="Save the node").click()
    expect(page.get_by_role("heading", name="Harray New Quay")).to_be_visible()
    made = ask(islands, "nodes/harray-quay")["hand_made"]
    assert (made["label"], made["properties"]) == ("Harray New Quay", {"berths": 14})
    assert made["text"], "what the form does not change stays"


def test_edge_of_somebody_else_is_drawn_without_reload(open_page: OpenPage, islands: Installation) -> None:
    page = open_page(f"{FULMAR}&shape=table")
    expect(row(page, "powered by")).to_be_visible()
    new = {"source": "fulmar", "target": "marit-heddle", "predicate": "admired_by", "collection": "islands"}
    accepted = httpx.post(f"{islands.url}/v1/edges", json=new, timeout=30)
    assert accepted.status_code == 202, accepted.text
    expect(row(page, "admired by")).to_contain_text("Marit Heddle")
    row(page, "admired by").get_by_role("button", name="admired by").click()
    page.get_by_text("Edit", exact=True).click()
    page.get_by_role("button", name="Delete the edge").click()
    agree(page, "Delete the edge")
    expect(page.locator("tr[data-key]").filter(has_text="admired by")).to_have_count(0)


def test_tables_list_all_nodes_and_edges(open_page: OpenPage, islands: Installation) -> None:
    page = open_page("entities?tab=all&collection=islands&of=edges&kind=hand_made")
    rows = page.get_by_role("table", name="Edges").locator("tbody tr")
    expect(rows).to_have_count(ask(islands, "edges")["total"])
    page.get_by_label("Filter").fill("depends")
    expect(rows.first).to_be_visible()
    page.wait_for_function("document.querySelectorAll('tbody tr').length < 60")
    assert all("depends on" in each for each in rows.all_inner_texts())
    page.get_by_role("button", name="From").click()
    sources = page.locator("tbody tr td:first-child").all_inner_texts()
    assert sources == sorted(sources, key=str.lower)
    page.get_by_label("Rows").select_option("nodes")
    page.get_by_label("Filter").fill("fulmar")
    node = page.get_by_role("table", name="Nodes").get_by_role("link", name="Fulmar", exact=True)
    node.click()
    expect(page.get_by_role("heading", name="Fulmar")).to_be_visible()


def test_community_shows_members_and_is_outlined(open_page: OpenPage, islands: Installation) -> None:
    wait_for_communities(islands)
    page = open_page("entities?tab=communities&collection=islands&level=medium")
    page.locator("summary").first.click()
    opened = page.locator("details[open]")
    expect(opened.get_by_text("Part of")).to_be_visible()
    members = opened.locator(".chips a").all_inner_texts()
    assert len(members) > 1
    opened.get_by_role("link", name="Draw it").click()
    expect(page.locator(".counts")).to_contain_text(f"{len(members)} nodes")
    outlined = """() => {
      const canvas = document.querySelector("canvas.sigma-groups");
      const empty = document.createElement("canvas");
      [empty.width, empty.height] = [canvas.width, canvas.height];
      return canvas.toDataURL() !== empty.toDataURL();
    }"""
    page.wait_for_function(outlined)
    page.get_by_label("Find in the picture").fill(members[0])
    page.get_by_label("Find in the picture").press("Enter")
    expect(page.get_by_role("heading", name=members[0])).to_be_visible()


def test_entities_of_documents_open_and_terms_are_not_shown(open_page: OpenPage, console: Installation) -> None:
    page = open_page("documents?id=rivers/issen.md&in=rivers")
    chips = page.locator("aside .chips a")
    expect(chips.first).to_be_visible()
    labels, addresses = chips.all_inner_texts(), [each.get_attribute("href") or "" for each in chips.all()]
    assert {"issen", "lyde", "slow river"} <= {each.lower() for each in labels}
    assert not {"slow", "lifts", "water", "mills"} & {each.lower() for each in labels}
    for label, address in zip(labels, addresses, strict=True):
        page.goto(f"{console.url}/{address}")
        expect(page.get_by_role("heading", name=label, exact=True)).to_be_visible()
        expect(page.get_by_text(re.compile(r"mentions? in \d+ document"))).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_forms_and_tables_are_accessible(open_page: OpenPage, islands: Installation) -> None:
    page = open_page("entities?tab=all&collection=islands", bypass_csp=True)
    expect(page.get_by_role("table", name="Nodes")).to_be_visible()
    assert serious_faults(page) == []
    page = open_page(f"{FULMAR}&shape=table", bypass_csp=True)
    page.get_by_text("Edit", exact=True).click()
    expect(page.get_by_role("form", name="Change the node")).to_be_visible()
    assert serious_faults(page) == []
