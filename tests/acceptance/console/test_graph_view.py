"""The graph in the browser: opened from a hit with the edges of its route, expanded, searched, edited, saved."""

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.console.conftest import SMALL, WIDE, OpenPage, overflow, serious_faults
from tests.support.processes.installation import Installation

Edge = tuple[str, str, str, str]


def edges_shown(page: Page) -> set[Edge]:
    """Those of the table: from, to, kind, label."""
    page.get_by_role("button", name="Table", exact=True).click()
    rows = page.locator("tr[data-key]")
    expect(rows.first).to_be_visible()
    return {tuple(json.loads(row.get_attribute("data-key") or "[]")) for row in rows.all()}


def edges_of(running: Installation, **parameters: Any) -> set[Edge]:
    """Those of the route that the picture has: a chunk's part in a fact is a mention there."""
    answer = httpx.get(f"{running.url}/v1/graph", params=parameters, timeout=10)
    assert answer.status_code == 200, answer.text
    edges = {(each["from"], each["to"], each["kind"], each["label"] or "") for each in answer.json()["edges"]}
    mentioned = {edge[:2] for edge in edges if edge[2] == "mentions"}
    return {edge for edge in edges if edge[2] != "states" or edge[:2] not in mentioned}


def counts(page: Page) -> tuple[int, int]:
    """Nodes and edges, as the page tells."""
    expect(page.locator(".counts")).not_to_contain_text("Loading")
    words = page.locator(".counts").inner_text().replace(",", "").split()
    return int(words[0]), int(words[2])


def test_the_graph_of_a_hit_shows_the_path_that_led_to_it(open_page: OpenPage) -> None:
    page = open_page("search?q=what+joins+the+Issen+to+the+sea&collection=rivers&mode=graph")
    expect(page.locator("article ol.path").first).to_be_visible()
    with page.expect_response(lambda answer: "/v1/retrievals/" in answer.url) as answered:
        page.keyboard.press("j")
        page.keyboard.press("g")
    path = answered.value.json()["hits"][0]["path"]
    expect(page.locator("canvas").first).to_be_attached()
    expect(page.get_by_role("checkbox", name="path of the hit")).to_be_checked()
    for step in path:
        expect(page.locator(".found", has_text=step["to"])).to_be_visible()  # the search may still be leaving
    page.get_by_role("button", name="Table", exact=True).click()
    marked = page.locator("tr.marked")
    expect(marked.first).to_contain_text("on the path")
    ends = {end for row in marked.all() for end in json.loads(row.get_attribute("data-key") or "[]")[:2]}
    assert {step[end] for step in path for end in ("from_node", "to_node") if end in step} <= ends
    assert page.locator("tbody tr").count() > marked.count(), "what stands around the path is shown too"
    page.get_by_role("checkbox", name="path of the hit").uncheck()
    expect(marked).to_have_count(0)


def test_the_address_of_a_path_shows_it_again(open_page: OpenPage, console: Installation) -> None:
    answer = console.search(q="which river floods", collection="rivers", mode="graph")
    address = f"graph?retrieval={answer['retrieval_id']}&hit={answer['hits'][0]['rank']}"
    for shape in ("", "&shape=3d"):
        page = open_page(address + shape)
        expect(
            page.locator(".found", has_text="Hit 1 of which river floods. The question")
        ).to_be_visible()  # the search may still be leaving
        expect(page.get_by_role("checkbox", name="path of the hit")).to_be_checked()
        expect(page.locator(".stage canvas").first).to_be_visible()


def test_hit_without_a_path_shows_its_neighbourhood(open_page: OpenPage, console: Installation) -> None:
    page = open_page("search?q=a+heron+pump&collection=rivers&mode=keyword")
    page.get_by_role("link", name="Graph of").first.click()
    expect(
        page.locator(".found", has_text="Found by keyword, not through the graph.")
    ).to_be_visible()  # the search may still be leaving
    chunk = console.search(q="a heron pump", collection="rivers", mode="keyword")["hits"][0]["chunk_id"]
    expected = edges_of(console, node=chunk, collection="rivers", limit=300)
    assert expected
    assert edges_shown(page) == expected


def test_unknown_retrieval_or_hit_is_reported(open_page: OpenPage, complaints: Any, console: Installation) -> None:
    complaints.expected.append("status of 404")
    page = open_page("graph?retrieval=r_nothing&hit=1")
    expect(page.get_by_role("alert")).to_contain_text("no retrieval 'r_nothing'")
    answer = console.search(q="river", collection="rivers", k=1)
    page = open_page(f"graph?retrieval={answer['retrieval_id']}&hit=9")
    expect(page.get_by_role("alert")).to_contain_text("no hit of rank 9")


def test_graph_of_too_many_edges_states_how_many_are_left_out(open_page: OpenPage) -> None:
    page = open_page("graph?collection=rivers")
    nodes = [
        {
            "id": f"n{at}",
            "kind": "document",
            "label": f"Node {at}",
            "collection": "c",
            "document_id": f"n{at}",
            "type": None,
        }
        for at in range(2_000)
    ]
    edges = [
        {"from": f"n{at}", "to": f"n{(at + step) % 2_000}", "kind": "links_to", "weight": 1 / step, "label": None}
        for at in range(2_000)
        for step in range(1, 51)
    ]
    drawing = {"nodes": nodes, "edges": edges, "truncated": True, "graph_position": 1}
    page.route("**/v1/graph?*", lambda route: route.fulfill(json=drawing))
    page.get_by_label("Start from").fill("n0")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".counts")).to_contain_text("20,000 edges; 80,000 edges of the least weight left out")
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.get_by_text("500 of 20,000 edges")).to_be_visible()
    page.get_by_role("button", name="500 more").click()
    expect(page.locator("tr[data-key]")).to_have_count(1_000)


def test_a_document_is_expanded_found_in_and_hidden_from(open_page: OpenPage, console: Installation) -> None:
    page = open_page("graph?node=rivers/rivers/issen.md&collection=rivers")
    expect(page.get_by_role("heading", name="Issen")).to_be_visible()
    before = counts(page)
    assert before[1] == len(edges_of(console, node="rivers/rivers/issen.md", collection="rivers", limit=300))
    page.get_by_label("Find in the picture").fill("The Issen is a slow river")
    page.get_by_label("Find in the picture").press("Enter")
    expect(page.get_by_role("paragraph").filter(has_text="A heron pump lifts its water")).to_be_visible()
    page.get_by_role("button", name="Expand").click()
    page.wait_for_function(
        "before => Number(document.querySelector('.counts').innerText.split(' ')[0]) > before", arg=before[0]
    )
    after = counts(page)
    page.get_by_role("checkbox", name="mentions").uncheck()
    assert "mentions" not in {kind for _, _, kind, _ in edges_shown(page)}
    page.get_by_role("button", name="Hide").click()
    page.wait_for_function(
        "after => Number(document.querySelector('.counts').innerText.split(' ')[0]) === after - 1", arg=after[0]
    )


def test_an_entity_is_described_and_joined_by_a_path(open_page: OpenPage, console: Installation) -> None:
    issen = httpx.get(f"{console.url}/v1/entities/Issen", params={"collection": "rivers"}, timeout=10).json()
    page = open_page(f"graph?node={issen['id']}&collection=rivers")
    expect(page.get_by_role("heading", name=issen["label"])).to_be_visible()
    expect(page.get_by_text(f"in {issen['document_count']} document")).to_be_visible()
    page.get_by_role("button", name="Path from here").click()
    page.get_by_label("Find in the picture").fill("Lyde")
    page.get_by_label("Find in the picture").press("Enter")
    page.get_by_role("button", name="Path to here").click()
    path = re.compile("A path of [0-9] steps?, strength 0.* mentioned with Lyde")
    expect(page.locator(".counts")).to_contain_text(path)


def test_added_edge_is_drawn(open_page: OpenPage, console: Installation) -> None:
    page = open_page("graph?node=rivers/rivers/quill.md&collection=rivers")
    expect(page.get_by_role("heading", name="Quill")).to_be_visible()
    page.get_by_text("Edit", exact=True).click()
    other = page.get_by_label("Other node")
    other.select_option(index=1)
    page.get_by_label("Predicate").fill("fed by")
    page.get_by_role("button", name="Add an edge").click()
    expect(page.get_by_text("Joined.")).to_be_visible()
    assert ("hand_made", "fed_by") in {(kind, label) for _, _, kind, label in edges_shown(page)}


def test_shown_graph_is_saved_as_graphml(open_page: OpenPage) -> None:
    page = open_page("graph?node=rivers/rivers/tavel.md&collection=rivers")
    expect(page.get_by_role("heading", name="Tavel")).to_be_visible()
    nodes, edges = counts(page)
    with page.expect_download() as saved:
        page.get_by_role("button", name="GraphML").click()
    graph = ET.parse(saved.value.path()).getroot()  # our own page wrote it
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert (len(list(graph.iter(f"{space}node"))), len(list(graph.iter(f"{space}edge")))) == (nodes, edges)


INK = """name => {
  const canvas = document.querySelector(`.stage canvas.${name}`);
  const pixels = canvas?.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data ?? [];
  return pixels.some((value) => value > 0);
}"""


def test_nodes_are_labelled_in_two_dimensions(open_page: OpenPage, complaints: Any) -> None:
    complaints.expected.append("willReadFrequently")  # of this test, which looks at the picture
    page = open_page("graph?node=rivers/rivers/tavel.md&collection=rivers")
    page.wait_for_function(INK, arg="sigma-labels")


def test_graph_is_drawn_in_three_dimensions_with_labels(open_page: OpenPage, complaints: Any) -> None:
    complaints.expected.append("willReadFrequently")  # of this test, which looks at the picture
    page = open_page("graph?node=rivers/rivers/tavel.md&collection=rivers&shape=3d")
    expect(page.locator(".stage canvas").first).to_be_visible()
    page.wait_for_function(INK, arg="labels")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Arrange")).to_be_visible()


def test_a_name_of_any_collection_is_a_start(open_page: OpenPage, console: Installation) -> None:
    found = httpx.get(f"{console.url}/v1/entities", params={"collection": "rivers", "limit": 1}, timeout=10).json()
    entity = found["entities"][0]
    page = open_page("graph")
    page.get_by_label("Start from").fill(entity["label"].upper())
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".counts")).to_contain_text("nodes")
    assert f"node={entity['id']}" in page.url
    assert "collection=rivers" in page.url


def test_unknown_node_is_reported(open_page: OpenPage, complaints: Any) -> None:
    complaints.expected.append("status of 404")
    page = open_page("graph?node=nowhere&collection=rivers")
    expect(page.get_by_role("alert")).to_contain_text("nothing named 'nowhere'")


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["small", "wide"])
def test_graph_view_is_accessible_and_fits_the_page(open_page: OpenPage, theme: str, size: dict[str, int]) -> None:
    for view in ("graph?collection=rivers", "graph?node=rivers/rivers/tavel.md&collection=rivers&shape=table"):
        page = open_page(view, color_scheme=theme, viewport=size, bypass_csp=True)
        expect(page.get_by_text("Tavel").first).to_be_visible()
        assert serious_faults(page) == []
        assert overflow(page) <= 0
