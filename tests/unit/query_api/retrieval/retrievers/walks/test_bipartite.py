"""What a walk sees of a view, edge by edge."""

import math
from collections import defaultdict

import numpy as np
import pytest

from query_api.index.graph.view import GraphView
from query_api.retrieval.retrievers.graph_edges import MAX_SHARED
from query_api.retrieval.retrievers.walks.bipartite import LEAST_WEIGHT, PassagesAndEntities
from tests.unit.query_api.in_memory_text import Page, world
from tests.unit.query_api.retrieval.retrievers.walks.chain import ALPHA, CHAIN, JANE, LISBON, passage

HALF = 1 / math.sqrt(2)


def view_of(*pages: Page) -> GraphView:
    return world(pages)[0].graph


def seen(view: GraphView, *edges: str) -> dict[int, dict[int, float]]:
    """All that a walk can see: {node: {neighbour: weight}}, the weights of edges between the same two added up."""
    ground = PassagesAndEntities(view, edges)
    waiting = [passage for document in view.live_documents() for passage in view.passages_of_document(document)]
    found: dict[int, dict[int, float]] = {}
    while waiting:
        node = waiting.pop()
        found[node] = defaultdict(float)
        beside = ground.neighbours(np.array([node]))
        for other, weight in zip(beside.node.tolist(), beside.weight.tolist(), strict=True):
            found[node][other] += weight
        waiting += [other for other in found[node] if other not in found and other not in waiting]
    return {node: dict(others) for node, others in found.items()}


def test_a_mentioned_title_is_a_direct_edge_and_a_shared_entity_a_node_between() -> None:
    view = view_of(*CHAIN)
    alpha, jane, lisbon = (passage(view, page) for page in CHAIN)
    graph = seen(view)
    assert {node: weight for node, weight in graph[alpha].items() if node >= 0} == {jane: 1.0}
    assert {node: weight for node, weight in graph[jane].items() if node >= 0} == {alpha: 1.0, lisbon: 1.0}
    entities = {tuple(sorted(others)): set(others.values()) for node, others in graph.items() if node < 0}
    assert entities.keys() == {tuple(sorted((alpha, jane))), tuple(sorted((jane, lisbon)))}, "Tagus stands alone"
    assert [list(weights) for weights in entities.values()] == [[pytest.approx(HALF)]] * 2


def test_every_edge_has_the_same_weight_from_both_its_ends() -> None:
    pages = [
        Page("a", "Ann", [["Ann met Bob. Bob left.", "Bob again."], ["Ann and Cy."]], ["Ann", "Bob", "Cy"]),
        Page("b", "Bob", [["Bob."], ["Cy met Ann."]], ["Bob", "Cy", "Ann"], [("Bob", "knows", "Ann")], ["wiki/a"]),
        Page("b2", "Bob", [["Another one, Cy."]], ["Cy"], [], ["wiki/a", "wiki/b"]),
        Page("c", "Cy", [["Cy."]], ["Cy"], [("Cy", "knows", "Bob"), ("Ann", "likes", "Cy")]),
    ]
    graph = seen(view_of(*pages))
    weights = {(node, other): weight for node, others in graph.items() for other, weight in others.items()}
    assert len(weights) > 20
    assert weights == {(node, other): pytest.approx(weights[other, node]) for node, other in weights}
    assert min(weights.values()) >= LEAST_WEIGHT


def test_links_and_facts_join_with_the_first_passage_of_what_they_are_about() -> None:
    """Two link to the target: 1 / sqrt(2) each. One of them states a fact about it."""
    target = Page("target", "Target", [["First."], ["Second."]])
    one = Page("one", "One", [["x"]], [], [("Other", "replaces", "Target")], ["wiki/target"])
    two = Page("two", "Two", [["y"]], [], [], ["wiki/target"])
    view = view_of(target, one, two)
    first = passage(view, target)
    assert seen(view, "link")[first] == {passage(view, page): pytest.approx(HALF) for page in (one, two)}
    assert seen(view, "statement")[first] == {passage(view, one): 1.0}
    assert seen(view)[first + 1] == {}


def test_only_the_wanted_kinds_are_walked() -> None:
    view = view_of(*CHAIN)
    alpha, jane, _ = (passage(view, page) for page in CHAIN)
    assert all(node >= 0 for node in seen(view, "title_mention")), "no entity between"
    assert all(other < 0 for other in seen(view, "shared_entity")[alpha])
    assert not any(seen(view, "link", "residual").values())
    assert seen(view, "mentioned_by")[alpha] == {jane: 1.0}, "a walk goes both ways"


def test_what_a_crowd_mentions_joins_nothing() -> None:
    crowd = [Page(f"p{at}", f"Page {at}", [["About Lisbon."]], ["Lisbon"]) for at in range(MAX_SHARED - 1)]
    few, many = view_of(LISBON, *crowd), view_of(LISBON, JANE, *crowd)
    assert len(seen(few)[passage(few, LISBON)]) == MAX_SHARED, "each by the title, all by the entity"
    assert not any(seen(many, "title_mention", "shared_entity").values())


def test_what_was_deleted_is_not_seen() -> None:
    view = view_of(*CHAIN).with_changes([(JANE.key, None)], 4)
    assert not any(seen(view).values())
    assert passage(view, ALPHA) in seen(view)
