"""The graph of a collection as a file: what is in it, and that both formats say the same."""

import json
from typing import Any

from lxml import etree

from query_api.entities.catalogue import EntityCatalogues
from query_api.graph_export import NAMESPACE, GraphExport, graphml, json_lines
from query_api.index.curation_follower import Curation, PlacedEvent, fold
from query_api.index.graph.view import GraphView
from schemas.graph_delta import HandMadeNode
from schemas.graph_edits import GraphEdit, MergeEdit
from schemas.ids import entity_id
from tests.support.fakes.text_stores import Page, made_edge, made_node
from tests.unit.query_api.entities.organisation import COLLECTION, FACTS, pages, read_chunks, view_of

BEACON, KAFKA, PETREL = (entity_id(COLLECTION, name) for name in ("beacon", "kafka", "team petrel"))
NODE = Page(
    "node:runbook",
    "Runbook",
    [["How to."]],
    collection=COLLECTION,
    nodes=[
        HandMadeNode("runbook", "Runbook \x85 & <more>", "guide", [], '{"by":null,"properties":{"ok":true,"pages":3}}')
    ],
)


def edge(source: str, predicate: str, target: str, name: str, weight: float = 1.0, note: str = "") -> Page:
    return made_edge(source, predicate, target, weight=weight, note=note, name=name, collection=COLLECTION)


MADE = [
    NODE,
    edge("runbook", "describes", BEACON, "e1", 0.5, "Ada said."),
    edge("runbook", "describes", "nobody", "gone"),
    edge("company/teams", "names", "runbook", "e2"),
]


def export_of(view: GraphView, curation: Curation | None = None, collection: str = COLLECTION) -> GraphExport:
    return GraphExport(
        view,
        EntityCatalogues().of(view, curation or Curation()),
        collection,
        lambda documents: dict.fromkeys(documents, "How to."),
        read_chunks,
    )


def lines_of(view: GraphView, curation: Curation | None = None) -> list[dict[str, Any]]:
    """The nodes and edges, without what the file says of itself in its first and last line."""
    first, *lines, last = map(json.loads, b"".join(json_lines(export_of(view, curation))).splitlines())
    counted = {"nodes": sum("node" in each for each in lines), "edges": sum("edge" in each for each in lines)}
    assert (first, last["graph"] | counted) == ({"graph": {"collection": COLLECTION}}, last["graph"])
    return lines


def test_nodes_come_first_and_every_end_is_among_them() -> None:
    lines = lines_of(view_of(made=MADE))
    kinds = ["edge" in each for each in lines]
    assert kinds == sorted(kinds)
    nodes = {each["node"]: each for each in lines if "node" in each}
    edges = [each for each in lines if "edge" in each]
    assert nodes["company/teams"] == {"node": "company/teams", "kind": "document", "label": "Teams"}
    assert (nodes[BEACON]["label"], nodes[BEACON]["type"], nodes[BEACON]["mentions"]) == ("Beacon", "product", 4)
    assert nodes["runbook"]["properties"] == {"pages": 3, "ok": True}
    assert all(end in nodes for each in edges for end in each["edge"])
    stated = {tuple(each["edge"]): each for each in edges if each["kind"] == "states"}
    chunks = sorted(page.chunks()[0][0] for page in pages(["beacon", "more"]))
    assert stated[BEACON, KAFKA] == {
        "edge": [BEACON, KAFKA], "kind": "states", "label": "depends_on", "weight": 1.0, "count": 2, "chunks": chunks,
        "note": "Beacon requires Kafka.",
    }  # fmt: skip
    assert {"edge": ["company/beacon", KAFKA], "kind": "mentions", "count": 1} in edges
    made = [(each["edge"], each["label"], each["weight"]) for each in edges if each["kind"] == "hand_made"]
    assert made == [(["runbook", BEACON], "describes", 0.5), (["company/teams", "runbook"], "names", 1.0)]


def test_every_fact_is_in_the_export_with_values_as_nodes() -> None:
    lines = lines_of(view_of())
    facts = {(each["edge"][0], each["label"], each["edge"][1]) for each in lines if each["kind"] == "states"}
    assert len(facts) == len({fact for stated in FACTS.values() for fact in stated})
    (value,) = (each for each in lines if each["kind"] == "value")
    assert value == {
        "node": entity_id(COLLECTION, "notification service"),
        "kind": "value",
        "label": "notification service",
    }
    assert (BEACON, "is_a", value["node"]) in facts


def test_graphml_says_the_same() -> None:
    view = view_of(made=MADE)
    document = etree.fromstring(b"".join(graphml(export_of(view))))
    keys = {each.get("id"): each.get("attr.name") for each in document.iter(f"{{{NAMESPACE}}}key")}
    nodes = [each.get("id") for each in document.iter(f"{{{NAMESPACE}}}node")]
    edges = [[each.get("source"), each.get("target")] for each in document.iter(f"{{{NAMESPACE}}}edge")]
    lines = lines_of(view)
    assert nodes == [each["node"] for each in lines if "node" in each]
    assert edges == [each["edge"] for each in lines if "edge" in each]
    (runbook,) = (each for each in document.iter(f"{{{NAMESPACE}}}node") if each.get("id") == "runbook")
    data = {keys[each.get("key")]: each.text for each in runbook}
    assert (data["label"], data["type"], json.loads(data["properties"])["pages"]) == (NODE.nodes[0].label, "guide", 3)


def test_what_people_merged_is_one_node() -> None:
    merge = GraphEdit(COLLECTION, "merge", "m", MergeEdit(entities=[BEACON, KAFKA]))
    lines = lines_of(view_of(), fold([PlacedEvent(0, merge)]))
    (one,) = (each["node"] for each in lines if each["kind"] == "entity" and each["label"] in ("Beacon", "Kafka"))
    assert one == BEACON
    assert all(KAFKA not in each["edge"] for each in lines if "edge" in each)


def test_control_characters_links_and_chunks_pass() -> None:
    first, second = pages(["teams", "beacon"])
    page = Page("odd\x7fid", "T\x00itle", [["A chunk."]], links=["company/teams"], collection=COLLECTION)
    chunk = first.chunks()[0][0]
    made = [NODE, edge(chunk, "noted_in", "runbook", "e")]
    lines = lines_of(GraphView.from_contributions([each.contribution() for each in (first, second, *made)], 0))
    assert {"node": chunk, "kind": "chunk", "document": "company/teams", "ordinal": 0} in lines
    assert {"edge": ["company/teams", chunk], "kind": "has_chunk"} in lines
    odd = GraphView.from_contributions([page.contribution(), first.contribution()], 0)
    assert {"edge": ["company/odd\x7fid", "company/teams"], "kind": "links_to"} in lines_of(odd)
    etree.fromstring(b"".join(graphml(export_of(odd))))
    assert export_of(odd, collection="other").is_empty


def test_a_large_graph_comes_in_parts() -> None:
    many = [made_node(f"n{at:05}", f"N {at}", collection=COLLECTION) for at in range(3_000)]
    view = view_of(["teams"], made=many)
    parts = list(graphml(export_of(view)))
    assert len(parts) > 3
    assert max(map(len, parts)) < 100_000
    assert len(list(etree.fromstring(b"".join(parts)).iter(f"{{{NAMESPACE}}}node"))) > 3_000
    assert len(list(json_lines(export_of(view)))) > 3
