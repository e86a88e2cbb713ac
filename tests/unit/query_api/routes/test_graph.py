"""`/v1/chunks`, `/v1/nodes` and `/v1/graph`: the graph walked by hand."""

import json

from schemas.ids import entity_id
from tests.support.fakes.service import PAGES, Running, problem


async def test_a_chunk_is_shown_with_its_passage_and_without_its_vector(running: Running) -> None:
    chunk_id = PAGES[0].chunks()[0][0]
    chunk = (await running.get(f"/v1/chunks/{chunk_id}")).json()
    assert chunk["text"] == "The river is high."
    assert chunk["parent_text"] == "The river is high. Ada measured it."
    assert "vector" not in chunk
    assert chunk["source"]["topic"].endswith("documents.v1")
    assert chunk["entities"] == []


async def test_a_chunk_shows_the_entities_that_it_mentions(running: Running) -> None:
    chunk_id = PAGES[0].chunks()[1][0]
    chunk = (await running.get(f"/v1/chunks/{chunk_id}")).json()
    assert chunk["entities"] == [{"id": entity_id("a", "ada"), "label": "Ada", "type": "person"}]
    assert chunk["statements"] == []


async def test_an_entity_is_found_by_its_name_and_by_its_id(running: Running) -> None:
    node = (await running.get("/v1/nodes/ÁDA", collection="a")).json()["node"]
    assert (node["kind"], node["label"], node["type"]) == ("entity", "Ada", "person")
    entity = (await running.get(f"/v1/nodes/{entity_id('a', 'ada')}")).json()
    kinds = {(each["edge"]["kind"], each["node"]["kind"]) for each in entity["neighbours"]}
    assert kinds == {("about", "document"), ("mentions", "chunk")}


async def test_a_subgraph_holds_both_ends_of_every_edge(running: Running) -> None:
    graph = (await running.get("/v1/graph", node="a/ada", depth=3)).json()
    nodes = {node["id"] for node in graph["nodes"]}
    assert {"a/ada", "a/notes/river.md"} <= nodes
    assert all(edge["from"] in nodes and edge["to"] in nodes for edge in graph["edges"])
    small = (await running.get("/v1/graph", node="a/ada", depth=3, limit=2)).json()
    assert len(small["nodes"]) == 2
    assert small["truncated"]
    links = (await running.get("/v1/graph", node=PAGES[1].chunks()[0][0], kinds="links_to")).json()
    assert [edge["kind"] for edge in links["edges"]] == ["links_to"]


async def test_outward_leaves_out_what_links_here(running: Running) -> None:
    """Ada links to the river: followed outward, only the river's own chunks are around it."""
    kinds = ["has_chunk", "links_to"]
    around = (await running.get("/v1/graph", node="a/notes/river.md", kinds=kinds)).json()
    outward = (
        await running.get("/v1/graph", node="a/notes/river.md", kinds="has_chunk, links_to", outward=True)
    ).json()
    assert {edge["kind"] for edge in around["edges"]} == {"has_chunk", "links_to"}
    assert {(edge["from"], edge["kind"]) for edge in outward["edges"]} == {("a/notes/river.md", "has_chunk")}


async def test_a_graph_is_exported_and_one_that_is_not_there_is_refused(running: Running) -> None:
    exported = await running.get("/v1/graph/export", collection="a")
    assert exported.headers["content-type"].startswith("application/graphml+xml")
    assert b'<node id="a/ada">' in exported.content
    lines = (await running.get("/v1/graph/export", collection="a", format="jsonl")).text.splitlines()
    assert {"edge": ["a/ada", "a/notes/river.md"], "kind": "links_to"} in [json.loads(line) for line in lines]
    assert problem(await running.get("/v1/graph/export", collection="b"))["status"] == 404
    assert problem(await running.get("/v1/graph/export", format="dot"))["status"] == 422
