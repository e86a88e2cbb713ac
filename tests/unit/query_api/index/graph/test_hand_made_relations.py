"""What people made in a graph view: ends that come late, in other segments, or go."""

from itertools import permutations

import numpy as np

from query_api.index.graph.hand_made_relations import (
    End,
    MadeRelation,
    has_relations,
    made_documents,
    made_nodes,
    made_relations,
    node_named,
    relations_of,
)
from query_api.index.graph.view import GraphView
from schemas.ids import DocumentKey, entity_id, id_key
from tests.support.fakes.text_stores import Page, made_edge, made_node

ANN, MILL = made_node("ann", "Ann", "Ann sails."), made_node("mill", "Mill")
LETTER = Page("letter", "Letter", [["Bo Hagen wrote."]], ["Bo Hagen"])
CHUNK = LETTER.chunks()[0][0]
BO = entity_id("wiki", "bo hagen")


def view_of(*pages: Page) -> GraphView:
    """Each in a segment of its own, as far as segments are not merged."""
    view = GraphView.empty()
    for position, page in enumerate(pages):
        view = view.with_changes([(page.key, page.contribution())], position)
    return view


def without(view: GraphView, page: Page) -> GraphView:
    return view.with_changes([(page.key, None)], view.position + 1)


def shown(view: GraphView, end: End | None) -> str | None:
    if end is None:
        return None
    if end.kind == "entity":
        return view.entity_names([end.at])[end.at][1]
    return view.chunk_id(end.at) if end.kind == "chunk" else view.document_key(end.at).document_id


def joined(view: GraphView) -> dict[str, tuple[str | None, str | None]]:
    """{name of an edge: its ends}."""
    return {each.name: (shown(view, each.source), shown(view, each.target)) for each in made_relations(view.segments)}


def test_edge_leads_to_its_ends_whichever_came_first() -> None:
    edges = [
        made_edge("ann", "owns", "mill", name="node"),
        made_edge("ann", "reads", CHUNK, name="chunk"),
        made_edge("ann", "knows", BO, name="entity"),
        made_edge("wiki/letter", "names", "letter", name="document"),
    ]
    wanted = {
        "node": ("node:ann", "node:mill"),
        "chunk": ("node:ann", CHUNK),
        "entity": ("node:ann", "bo hagen"),
        "document": ("letter", "letter"),
    }
    for edge in edges:
        for order in permutations([edge, ANN, MILL, LETTER]):
            view = view_of(*order)
            assert joined(view) == {edge.relations[0].name: wanted[edge.relations[0].name]}, order
    assert (
        joined(GraphView.from_contributions([each.contribution() for each in [*edges, ANN, MILL, LETTER]], 0)) == wanted
    )


def test_edge_of_missing_end_is_kept_and_comes_alive() -> None:
    edge = made_edge("ann", "owns", "mill", name="e")
    view = view_of(ANN, edge)
    assert joined(view) == {"e": ("node:ann", None)}
    both = view.with_changes([(MILL.key, MILL.contribution())], 9)
    assert joined(both) == {"e": ("node:ann", "node:mill")}
    assert joined(without(both, MILL)) == {"e": ("node:ann", None)}
    assert joined(without(both, edge)) == {}
    assert joined(both) == {"e": ("node:ann", "node:mill")}, "a view that others read must not change"


def test_replaced_edge_joins_its_new_ends_alone() -> None:
    view = view_of(ANN, MILL, LETTER, made_edge("ann", "owns", "mill", name="e"))
    moved = made_edge("mill", "keeps", "letter", name="e", weight=0.25)
    changed = view.with_changes([(moved.key, moved.contribution())], 9)
    assert joined(changed) == {"e": ("node:mill", "letter")}
    ann = node_named(changed.segments, "wiki", "ann")
    assert ann is not None
    assert relations_of(changed.segments, [End("document", ann)]) == []


def test_relations_are_found_from_both_ends_with_what_people_said() -> None:
    view = view_of(ANN, MILL, LETTER, made_edge("ann", "owns", "mill", name="e", weight=0.3, note="Since May."))

    def found(name: str) -> list[MadeRelation]:
        document = node_named(view.segments, "wiki", name)
        assert document is not None
        return relations_of(view.segments, [End("document", document)])

    ((from_ann,), (from_mill,)) = found("ann"), found("mill")
    assert from_ann == from_mill
    assert (from_ann.predicate, from_ann.weight, from_ann.source_name, from_ann.target_name) == (
        "owns", 0.3, "ann", "mill",
    )  # fmt: skip
    assert '"note": "Since May."' in from_ann.attributes
    assert from_ann.source is not None
    assert [inverse for _, inverse in from_ann.others(from_ann.source)] == [False]
    assert relations_of(view.segments, [End("entity", id_key(BO)), End("chunk", 0)]) == []


def test_edge_to_itself_is_found_once() -> None:
    view = view_of(ANN, made_edge("ann", "is", "ann", name="e"))
    ann = node_named(view.segments, "wiki", "ann")
    assert ann is not None
    assert [each.name for each in relations_of(view.segments, [End("document", ann)])] == ["e"]


def test_names_mean_what_is_in_the_edges_collection() -> None:
    elsewhere = made_node("ann", "Other Ann", collection="other")
    edge = made_edge("ann", "reads", CHUNK, name="e", collection="other")
    view = view_of(elsewhere, LETTER, ANN, edge)
    (relation,) = made_relations(view.segments)
    assert relation.source is not None
    assert view.document_key(relation.source.at) == DocumentKey("other", "node:ann")
    assert relation.target is None, "the chunk is in another collection"


def test_nodes_and_documents_of_edges_are_told_from_others() -> None:
    view = view_of(LETTER, ANN, made_edge("ann", "owns", "mill", name="e"))
    assert [(node.name, node.label, node.aliases) for node in made_nodes(view.segments)] == [("ann", "Ann", ())]
    made = np.flatnonzero(made_documents(view.segments)).tolist()
    assert {view.document_key(each).document_id for each in made} == {"node:ann", "edge:e"}
    assert has_relations(view.segments)
    assert not has_relations(view_of(LETTER, ANN).segments)
    assert view.predicates() == ["owns"]


def test_of_many_relations_the_heaviest_of_each_end_are_given() -> None:
    made = [made_node(f"n{at}", f"N {at}") for at in range(9)]
    edges = [made_edge("ann", "has", f"n{at}", weight=0.1 * (at + 1)) for at in range(9)]
    view = GraphView.from_contributions([page.contribution() for page in [ANN, *made, *edges]], 0)
    ends = [End("document", each.document) for each in made_nodes(view.segments)]
    names = [shown(view, end) for end in ends]
    found = relations_of(view.segments, ends, 2)
    of_ann = [each.name for each in found if names[each.query_index] == "node:ann"]
    assert sorted(of_ann) == ["ann-n7", "ann-n8"]
    assert len(found) == 2 + 9, "each of the others has one"
