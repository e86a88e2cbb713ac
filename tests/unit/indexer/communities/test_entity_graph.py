"""The graph of entities: weights worked out by hand."""

from math import sqrt

import msgspec
import pytest

from indexer.communities.entity_graph import EntityGraph, entity_graphs
from indexer.graph.contributions import tables_of
from indexer.graph.tables import GraphTables
from schemas.graph_delta import DENIAL, MentionEdge
from schemas.ids import CANARY_COLLECTION, entity_id
from tests.support.fakes.text_stores import Page, made_edge, made_node


def weights(*pages: Page) -> dict[tuple[str, str], float]:
    """{(name, name): weight} of the one collection."""
    tables = tables_of(page.contribution() for page in pages)
    names = tables.entities["name"].to_pylist()
    [graph] = entity_graphs(tables)
    return {
        tuple(sorted((names[graph.rows[source]], names[graph.rows[target]]))): pytest.approx(weight)
        for source, target, weight in zip(
            graph.pairs.sources.tolist(), graph.pairs.targets.tolist(), graph.pairs.weights.tolist(), strict=True
        )
    }


def test_statements_weigh_their_predicate_and_a_tenth_more_for_each_further_one() -> None:
    once = Page("1", "One", [["x"]], facts=[("Ada", "uses", "Engine")])
    again = Page("2", "Two", [["y"]], facts=[("Ada", "uses", "Engine"), ("Engine", "related_to", "Ada")])
    assert weights(once) == {("ada", "engine"): 0.85}
    assert weights(once, again) == {("ada", "engine"): 1.0}, "0.85 + 2 x 0.1, 1 at most"
    assert weights(again) == {("ada", "engine"): 0.95}


def test_statement_that_is_denied_joins_nothing() -> None:
    stated = Page("1", "One", [["x"]], facts=[("Ada", "uses", "Engine"), ("Ada", "uses", "Loom")]).contribution()
    denied = msgspec.structs.replace(stated.statements[0], extractor=DENIAL)
    tables = tables_of([msgspec.structs.replace(stated, statements=[denied, stated.statements[1]])])
    [graph] = entity_graphs(tables)
    assert len(graph.pairs.sources) == 1


def test_mentions_in_a_chunk_are_damped_by_how_common_the_entities_are() -> None:
    together = Page("1", "One", [["Ada met Babbage.", "Ada wrote."]], ["Ada", "Babbage"])
    alone = Page("2", "Two", [["Ada left.", "Babbage stayed."]], ["Ada", "Babbage"])
    found = weights(together, alone)
    assert found == {("ada", "babbage"): 0.3 * 1 / sqrt(3 * 2)}


def test_links_join_what_documents_are_about_arrived_or_not() -> None:
    source = Page("1", "River", [["x"]], links=["wiki/2.md", "wiki/gone"])
    target = Page("2", "Lake", [["y"]])
    assert weights(source, target) == {("lake", "river"): 0.5}, "2.md finds the document 2"


def test_links_do_not_join_what_documents_only_explain() -> None:
    source = Page("1", "River", [["x"]], links=["wiki/2.md"]).contribution()
    target = Page("2", "Lake", [["y"]]).contribution()
    explained = [msgspec.structs.replace(each, weight=0.6) for each in target.about]
    assert list(entity_graphs(tables_of([source, target])))
    assert not list(entity_graphs(tables_of([source, msgspec.structs.replace(target, about=explained)])))


def test_edges_that_people_made_join_what_their_ends_are_about() -> None:
    ann, mill = made_node("ann", "Ann Lee"), made_node("mill", "Mill", "Flour.")
    guide = Page("guide", "Guide", [["Ada met nobody."]], ["Ada"], types={"Ada": "person"})
    ada = entity_id("wiki", "ada")
    made = [
        made_edge("ann", "runs", "mill", weight=0.4),
        made_edge("mill", "run_by", "ann", weight=0.3),
        made_edge("ann", "knows", ada, weight=0.5),
        made_edge("wiki/guide", "names", guide.chunks()[0][0], name="itself"),
        made_edge("guide", "names", "mill", weight=0.7),
        made_edge("ann", "knows", "nobody"),
    ]
    assert weights(ann, mill, guide, *made) == {
        ("ann lee", "mill"): 0.5,
        ("ada", "ann lee"): 0.5,
        ("guide", "mill"): 0.7,
    }
    stranger = Page("x", "Stranger", [["y"]], collection="other")
    elsewhere = made_edge("mill", "knows", stranger.chunks()[0][0])
    assert weights(ann, mill, stranger, made[0], elsewhere) == {("ann lee", "mill"): 0.4}


def test_collections_are_graphs_of_their_own_and_canaries_none() -> None:
    pages = [
        Page(str(number), "One", [["x"]], facts=[("Ada", "uses", "Engine")], collection=collection)
        for number, collection in enumerate(("b", "a", CANARY_COLLECTION))
    ]
    graphs = list(entity_graphs(tables_of(page.contribution() for page in pages)))
    assert [(graph.collection, graph.n_nodes) for graph in graphs] == [("a", 2), ("b", 2)]
    assert list(entity_graphs(GraphTables.empty())) == []


def test_where_mentions_have_types_only_typed_entities_take_part() -> None:
    page = Page("1", "One", [["Ada met Babbage."]], ["Ada", "Babbage"], facts=[("Ada", "uses", "Engine")])
    contribution = page.contribution()
    typed = [
        MentionEdge(*list(_fields(edge))[:6], entity_type="person", confidence=0.9) for edge in contribution.mentions
    ]
    contribution.mentions[:] = typed
    [graph] = entity_graphs(tables_of([contribution]))
    assert graph.n_nodes == 2, "Ada and Babbage; nothing mentions the engine as an entity"


def _fields(edge: MentionEdge) -> tuple[object, ...]:
    return tuple(getattr(edge, name) for name in edge.__struct_fields__)


def test_the_graph_does_not_depend_on_the_order_of_documents() -> None:
    pages = [
        Page(str(number), f"Title {number}", [[f"Ada met Person{number % 4}."]], ["Ada", f"Person{number % 4}"])
        for number in range(12)
    ]

    def described(graph: EntityGraph) -> tuple[list[int], list[tuple[int, int, float]]]:
        pairs = graph.pairs
        return graph.keys.tolist(), sorted(
            zip(pairs.sources.tolist(), pairs.targets.tolist(), pairs.weights.round(12).tolist(), strict=True)
        )

    contributions = [page.contribution() for page in pages]
    [forwards] = entity_graphs(tables_of(contributions))
    [backwards] = entity_graphs(tables_of(contributions[::-1]))
    assert described(forwards) == described(backwards)
