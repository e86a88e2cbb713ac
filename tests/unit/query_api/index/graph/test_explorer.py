"""The graph walked by hand: edges between chunks, once each and in the order of the text."""

import pytest

from query_api.index.graph.explorer import Explorer
from query_api.index.graph.view import GraphView
from schemas.api import GraphEdge
from schemas.graph_delta import ChunkEdge, ChunkNode, Contribution, SectionNode
from schemas.ids import DocumentKey, chunk_id, passage_id, section_id
from tests.support.fakes.text_stores import Page, made_edge, made_node

KEY = DocumentKey("a", "long.md")
CHUNKS = [chunk_id(KEY, [], f"text {number}", 0) for number in range(12)]


@pytest.fixture
def explorer() -> Explorer:
    view = GraphView.from_contributions(
        [
            Contribution(
                collection=KEY.collection,
                document_id=KEY.document_id,
                revision="1",
                title="Long",
                sections=[SectionNode(section_id(KEY, [], 0), "", 0, -1)],
                chunks=[
                    ChunkNode(each, passage_id(KEY, [], "p", at // 3), at // 3, 0) for at, each in enumerate(CHUNKS)
                ],
                about=[],
                mentions=[],
                statements=[],
                edges=[
                    *(ChunkEdge("next_chunk", at, at + 1, 0.9) for at in range(11)),
                    ChunkEdge("similar_to", 4, 5, 0.8),
                    ChunkEdge("related_to", 2, 9, 0.7),
                    ChunkEdge("related_to", 9, 2, 0.7),
                ],
                links=[],
            )
        ],
        0,
    )
    return Explorer(view, lambda ids: dict.fromkeys(ids, "text"))


def ends(edges: list[GraphEdge]) -> list[tuple[int, int]]:
    return [(CHUNKS.index(edge.source), CHUNKS.index(edge.target)) for edge in edges]


def test_each_next_chunk_is_served_once_and_in_the_order_of_the_text(explorer: Explorer) -> None:
    place = explorer.find("long.md", "a")
    assert place is not None
    graph = explorer.subgraph(place, frozenset({"has_chunk", "next_chunk"}), 2, 100)
    chain = [edge for edge in graph.edges if edge.kind == "next_chunk"]
    assert ends(chain) == [(at, at + 1) for at in range(11)]
    assert [node.id for node in graph.nodes[1:]] == CHUNKS


def test_a_chunks_neighbours_stand_where_they_do_in_the_text(explorer: Explorer) -> None:
    place = explorer.find(CHUNKS[5], "a")
    assert place is not None
    around = explorer.around(place, frozenset({"next_chunk", "similar_to"}), 100)
    assert ends([each.edge for each in around.neighbours]) == [(4, 5), (5, 6), (4, 5)]
    outward = explorer.subgraph(place, frozenset({"next_chunk"}), 3, 100, outward=True)
    assert ends(outward.edges) == [(5, 6), (6, 7), (7, 8)]


def test_what_is_related_leads_both_ways(explorer: Explorer) -> None:
    for here, there in ((2, 9), (9, 2)):
        place = explorer.find(CHUNKS[here], "a")
        assert place is not None
        around = explorer.around(place, frozenset({"related_to"}), 100)
        assert ends([each.edge for each in around.neighbours]) == [(here, there)]


ANN, MILL = made_node("ann", "Ann", "Ann sails.", collection="a"), made_node("mill", "Mill", collection="a")
HARBOUR = Page("harbour", "Harbour", [["Quays."]], links=["a/node:ann"], collection="a")
OWNS = made_edge("ann", "owns", "mill", weight=0.4, name="e1", collection="a")
NAMES = made_edge("harbour", "names", "ann", name="e2", collection="a")


def made_explorer(*pages: Page) -> Explorer:
    view = GraphView.from_contributions([page.contribution() for page in pages], 0)
    return Explorer(view, lambda ids: dict.fromkeys(ids, "text"))


def test_node_is_found_by_its_id_and_as_document() -> None:
    explorer = made_explorer(ANN, MILL, HARBOUR, OWNS, NAMES)
    places = [explorer.find(name, "a") for name in ("ann", "a/node:ann", "node:ann")]
    assert places[0] is not None
    assert places == [places[0]] * 3
    assert (places[0].kind, explorer.node_id(places[0]), explorer.collection_of(places[0])) == ("hand_made", "ann", "a")
    assert explorer.find("edge:e1", "a") is None, "an edge is no node"
    assert explorer.find("ann", "b") is None


def test_node_has_its_edges_chunks_and_links_around_it() -> None:
    explorer = made_explorer(ANN, MILL, HARBOUR, OWNS, NAMES)
    place = explorer.find("ann", "a")
    assert place is not None
    around = explorer.around(place, None, 100)
    assert {(each.node.kind, each.edge.kind, each.edge.label, each.edge.weight) for each in around.neighbours} == {
        ("hand_made", "hand_made", "owns", 0.4),
        ("document", "hand_made", "names", 1.0),
        ("chunk", "has_chunk", None, 1.0),
        ("chunk", "links_to", None, 1.0),
        ("entity", "about", "explains", 1.0),
    }
    chunk = explorer.find(ANN.chunks()[0][0], "a")
    assert chunk is not None
    assert [each.node.id for each in explorer.around(chunk, frozenset({"has_chunk"}), 9).neighbours] == ["ann"]


def test_subgraph_follows_edges_of_people_in_their_direction() -> None:
    explorer = made_explorer(ANN, MILL, HARBOUR, OWNS, NAMES)
    place = explorer.find("harbour", "a")
    assert place is not None
    graph = explorer.subgraph(place, frozenset({"hand_made"}), 2, 100, outward=True)
    assert [(edge.source, edge.target, edge.label) for edge in graph.edges] == [
        ("a/harbour", "ann", "names"), ("ann", "mill", "owns"),
    ]  # fmt: skip
    assert [node.label for node in graph.nodes] == ["Harbour", "Ann", "Mill"]
    gone = made_explorer(MILL, HARBOUR, OWNS, NAMES)
    assert gone.subgraph(place, frozenset({"hand_made"}), 2, 100).edges == []


def test_fact_is_one_edge_from_subject_to_object() -> None:
    stated = [Page(each, each, [["Tern uses Plover."]], facts=[("Tern", "uses", "Plover")]) for each in ("a", "b")]
    explorer = made_explorer(*stated)
    seen = []
    for name in ("tern", "plover"):
        place = explorer.find(name, stated[0].collection)
        assert place is not None
        detail = explorer.around(place, frozenset({"states"}), 10)
        seen.append(
            [(each.edge.source, each.edge.label, each.edge.target, each.edge.weight) for each in detail.neighbours]
        )
    assert len(seen[0]) == 1
    assert seen[0] == seen[1]
    assert seen[0][0][1::2] == ("uses", 0.95)
