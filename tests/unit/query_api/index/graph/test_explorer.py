"""The graph walked by hand: edges between chunks, once each and in the order of the text."""

import pytest

from query_api.index.graph.explorer import Explorer
from query_api.index.graph.view import GraphView
from schemas.api import GraphEdge
from schemas.graph_delta import ChunkEdge, ChunkNode, Contribution, SectionNode
from schemas.ids import DocumentKey, chunk_id, passage_id, section_id

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
