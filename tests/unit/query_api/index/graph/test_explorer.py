"""The graph walked by hand: edges between chunks, once each and in the order of the text."""

import pytest

from query_api.index.graph.explorer import Explorer, KnownEntity
from query_api.index.graph.identifiers import key_of
from query_api.index.graph.view import GraphView
from schemas.api import GraphEdge
from schemas.graph_delta import ChunkEdge, ChunkNode, Contribution, SectionNode
from schemas.ids import DocumentKey, chunk_id, entity_id, passage_id, section_id
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


def test_hand_made_node_is_one_with_its_text_and_name() -> None:
    explorer = made_explorer(ANN, MILL, HARBOUR, OWNS, NAMES)
    place = explorer.find("ann", "a")
    assert place is not None
    around = explorer.around(place, None, 100)
    assert {(each.node.kind, each.edge.kind, each.edge.label, each.edge.weight) for each in around.neighbours} == {
        ("hand_made", "hand_made", "owns", 0.4),
        ("document", "hand_made", "names", 1.0),
        ("chunk", "links_to", None, 1.0),
    }
    assert explorer.find(ANN.chunks()[0][0], "a") == explorer.find(entity_id("a", "ann"), "a") == place


def test_facts_of_documents_lead_to_hand_made_node() -> None:
    letter = Page("letter", "Letter", [["Ann sails Tern."]], facts=[("Ann", "sails", "Tern")], collection="a")
    explorer = made_explorer(ANN, letter)
    tern, ann = (explorer.find(name, "a") for name in ("Tern", "ann"))
    assert tern is not None
    assert ann is not None
    (fact,) = (
        each.edge for each in explorer.around(tern, frozenset({"states"}), 9).neighbours if each.node.id == "ann"
    )
    assert (fact.source, fact.label, fact.target) == ("ann", "sails", entity_id("a", "tern"))
    assert fact in [each.edge for each in explorer.around(ann, frozenset({"states"}), 9).neighbours]


def test_two_names_of_an_entity_are_one_node() -> None:
    names = ("tern", "terns")
    types = dict.fromkeys(names, "concept")
    pages = [Page(f"{each}.md", "", [[f"{each} dive."]], [each], types=types, collection="a") for each in names]
    view = GraphView.from_contributions([page.contribution() for page in pages], 0)
    first, second = (key_of(entity_id("a", name)) for name in names)
    known = KnownEntity("tern", "concept", (first, second))
    explorer = Explorer(view, lambda _: {}, {first: known, second: known}.get)
    place = explorer.find("terns", "a")
    assert place == explorer.find("tern", "a")
    assert place is not None
    around = explorer.around(place, frozenset({"mentions"}), 9)
    assert {each.node.document_id for each in around.neighbours} == {"tern.md", "terns.md"}
    assert {each.edge.target for each in around.neighbours} == {entity_id("a", "tern")}


def test_ranking_term_is_drawn_only_where_a_fact_ends_in_it() -> None:
    said = Page(
        "said",
        "Said",
        [["Raw Tern uses Plover."]],
        ("Raw", "Tern"),
        [("Tern", "uses", "Plover")],
        types={"Tern": "thing"},
    )
    view = GraphView.from_contributions([said.contribution()], 0)
    drawn = []
    for explorer in (Explorer(view, lambda _: {}), Explorer(view, lambda _: {}, lambda _: None)):
        place = explorer.find("said", said.collection)
        assert place is not None
        graph = explorer.subgraph(place, None, 2, 99)
        drawn.append({each.label.lower() for each in graph.nodes if each.kind == "entity"})
    assert drawn == [{"said", "tern", "plover"}, {"tern", "plover"}]


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


def test_fact_stated_of_two_names_of_an_entity_is_one_edge() -> None:
    stated = [
        Page(f"{each}.md", "", [[each]], facts=[(each, "uses", "Plover")], collection="a") for each in ("tern", "terns")
    ]
    first, second = (key_of(entity_id("a", name)) for name in ("tern", "terns"))
    known = {each: KnownEntity("tern", "concept", (first, second)) for each in (first, second)}
    view = GraphView.from_contributions([page.contribution() for page in stated], 0)
    explorer = Explorer(view, lambda _: {}, lambda key: known.get(key, KnownEntity()))
    for name in ("terns", "plover"):
        place = explorer.find(name, "a")
        assert place is not None
        edges = [each.edge for each in explorer.around(place, frozenset({"states"}), 10).neighbours]
        ends = [(each.source, each.label, each.target, each.weight) for each in edges]
        assert ends == [(entity_id("a", "tern"), "uses", entity_id("a", "plover"), 0.95)]
