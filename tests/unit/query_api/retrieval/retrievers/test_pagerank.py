"""Personalised PageRank: forward push, the graph it walks, and the passages it scores."""

import math
from collections import defaultdict

import numpy as np
import pytest
from numpy.typing import NDArray

from query_api.index.graph.view import GraphView
from query_api.index.text.text_segments import Scope
from query_api.retrieval.retrievers.graph_edges import MAX_SHARED
from query_api.retrieval.retrievers.pagerank import (
    LEAST_WEIGHT,
    Adjacent,
    Mass,
    Neighbours,
    Numbers,
    PassagesAndEntities,
    push,
)
from query_api.retrieval.retrievers.walks import EPSILON, RESTART, personalised_pagerank
from schemas.ids import entity_id
from tests.support.fakes.text_stores import Page, made_edge, made_node, world
from tests.unit.query_api.retrieval.retrievers.chain import ALPHA, CHAIN, JANE, LISBON, beginning_at, passage


class Matrix:
    """A graph as a symmetric matrix of weights; remembers which nodes were looked at."""

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.weights = weights
        self.seen: list[int] = []

    def neighbours(self, nodes: Numbers) -> Adjacent:
        self.seen += nodes.tolist()
        asked, node = np.nonzero(self.weights[nodes])
        return Adjacent(asked, node, self.weights[nodes][asked, node])

    def pagerank(self, seeds: dict[int, float]) -> NDArray[np.float64]:
        """By 500 rounds of power iteration; what is on a node without edges stays there."""
        degrees = self.weights.sum(axis=1)
        moves = np.where(
            degrees[:, None] > 0, self.weights / np.maximum(degrees, 1e-300)[:, None], np.eye(len(degrees))
        )
        start = np.zeros(len(degrees))
        start[list(seeds)] = np.array(list(seeds.values())) / sum(seeds.values())
        ranks = start
        for _ in range(500):
            ranks = RESTART * start + (1 - RESTART) * ranks @ moves
        return ranks


def at_random(seed: int, n_nodes: int = 60) -> Matrix:
    """About four edges a node, of weights from .2 to 1; some nodes have none."""
    numbers = np.random.default_rng(seed)
    weights = np.where(numbers.random((n_nodes, n_nodes)) < 2 / n_nodes, numbers.uniform(0.2, 1, (n_nodes, n_nodes)), 0)
    upper = np.triu(weights, 1)
    return Matrix(upper + upper.T)


def pushed(neighbours: Neighbours, seeds: dict[int, float], epsilon: float = 1e-9, most_opened: int = 1_000) -> Mass:
    return push(neighbours, seeds, restart=RESTART, epsilon=epsilon, least_weight=0.2, most_opened=most_opened)


def test_of_two_nodes_the_seed_keeps_more() -> None:
    """x = .3 + .7 y and y = .7 x, so x = .3 / .51."""
    mass = pushed(Matrix(np.array([[0.0, 1.0], [1.0, 0.0]])).neighbours, {0: 5.0})
    assert mass.node.tolist() == [0, 1]
    assert mass.estimate.tolist() == pytest.approx([0.3 / 0.51, 0.21 / 0.51], abs=1e-8)


def test_a_walk_prefers_the_heavier_edge() -> None:
    """From the middle three quarters of what goes on go to the right."""
    mass = pushed(Matrix(np.array([[0.0, 1.0, 3.0], [1.0, 0, 0], [3.0, 0, 0]])).neighbours, {0: 1.0})
    left, right = mass.estimate[mass.node == 1][0], mass.estimate[mass.node == 2][0]
    assert right == pytest.approx(3 * left)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_short_of_power_iteration_by_at_most_epsilon_times_the_degree(seed: int, epsilon: float) -> None:
    graph = at_random(seed)
    seeds = {3: 1.0, 7: 0.5, 11: 0.25}
    mass = pushed(graph.neighbours, seeds, epsilon)
    short = graph.pagerank(seeds)
    short[mass.node] -= mass.estimate
    degrees = graph.weights.sum(axis=1)
    assert (short >= -1e-12).all()
    assert (short <= epsilon * degrees + 1e-12).all()
    assert mass.estimate.sum() + mass.residual.sum() == pytest.approx(1.0), "no mass is lost"


def test_a_coarser_one_looks_at_fewer_nodes_and_at_each_once() -> None:
    fine, coarse = at_random(1, 400), at_random(1, 400)
    pushed(fine.neighbours, {3: 1.0}, 1e-6)
    pushed(coarse.neighbours, {3: 1.0}, 1e-2)
    assert len(set(fine.seen)) == len(fine.seen)
    assert 1 < len(coarse.seen) < len(fine.seen) / 2


def test_no_more_nodes_are_looked_at_than_allowed_and_what_the_others_hold_is_told() -> None:
    graph = at_random(1)
    mass = pushed(graph.neighbours, {3: 1.0}, most_opened=4)
    assert len(graph.seen) == 4
    assert (mass.estimate > 0).sum() == 4
    assert mass.estimate.sum() + mass.residual.sum() == pytest.approx(1.0)


def test_a_seed_that_nothing_leaves_keeps_its_mass() -> None:
    mass = pushed(Matrix(np.zeros((2, 2))).neighbours, {0: 3.0, 1: 1.0})
    assert mass.estimate.tolist() == [0.75, 0.25]


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
        made_node("bare", "Bare"),
        made_edge("wiki/a", "near", "bare", weight=0.5),
        made_edge("bare", "near", "b2", weight=0.4),
        made_edge("bare", "of", entity_id("wiki", "cy"), weight=0.3),
    ]
    pages.append(made_edge(pages[1].chunks()[1][0], "cites", "a", weight=0.6))
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


def test_relations_join_what_their_ends_are_by_their_weights() -> None:
    """A node without text is a node of the walk; a relation joins first passages."""
    target = Page("target", "Target", [["First."], ["Second."]])
    one = Page("one", "One", [["x"]])
    made = [made_node("bare", "Bare"), made_edge("one", "near", "bare", weight=0.5)]
    made += [made_edge("bare", "near", "target", weight=0.4), made_edge("one", "cites", "target", weight=0.3)]
    view = view_of(target, one, *made)
    graph = seen(view, "relation")
    first, of_one = passage(view, target), passage(view, one)
    (bare,) = (node for node in graph if node < 0)
    assert graph[bare] == {of_one: 0.5, first: 0.4}
    assert graph[first] == {bare: 0.4, of_one: 0.3}
    assert graph[first + 1] == {}
    assert seen(view, "cites")[first] == {of_one: 0.3}
    assert not any(seen(view, "link").values())


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


def test_scores_are_what_the_walk_leaves_beyond_the_start_as_a_share_of_the_best() -> None:
    """Two entities stand between three passages; each way of a title weighs 1, each way of an entity .707."""
    half = 0.5**0.5
    order = ["alpha", "jane", "lisbon", "entity of both", "the other"]
    weights = np.array(
        [[0, 1, 0, half, 0], [1, 0, 1, half, half], [0, 1, 0, 0, half], [half, half, 0, 0, 0], [0, half, half, 0, 0]]
    )
    start = np.array([1.0, 0, 0, 0, 0])
    moves = weights / weights.sum(axis=1, keepdims=True)
    exact = RESTART * np.linalg.solve(np.eye(5) - (1 - RESTART) * moves.T, start) - RESTART * start
    found = personalised_pagerank(beginning_at(ALPHA, *CHAIN))
    best = exact[:3].max()
    for place, page in enumerate(CHAIN):
        wrong = abs(found.scores[page.passage_ids()[0]] - exact[place] / best)
        assert wrong <= 2 * EPSILON * weights.sum(axis=1).max() / best, order[place]
    assert found.scores[JANE.passage_ids()[0]] == 1.0
    assert found.scores[LISBON.passage_ids()[0]] > 0


def test_within_two_steps_a_hit_has_a_path_and_beyond_it_has_none() -> None:
    tagus = Page("tagus", "Tagus", [["The Tagus meets Spain."]], ["Tagus", "Spain"])
    found = personalised_pagerank(beginning_at(ALPHA, *CHAIN, tagus))
    assert found.reasons.keys() == {page.passage_ids()[0] for page in CHAIN}
    assert found.scores[tagus.passage_ids()[0]] > 0
    assert found.seed_set is not None
    assert found.reasons[LISBON.passage_ids()[0]].origin == 1
    assert found.seed_set.seeds[1].reached == found.reasons[JANE.passage_ids()[0]]


def test_edges_and_scope_hold() -> None:
    nothing = personalised_pagerank(beginning_at(ALPHA, *CHAIN, edges=["link"]))
    assert nothing.scores.keys() <= set(ALPHA.passage_ids())
    scoped = personalised_pagerank(beginning_at(ALPHA, *CHAIN, scope=Scope("wiki", frozenset({LISBON.key}))))
    assert list(scoped.scores) == LISBON.passage_ids()


def test_a_walk_over_the_same_view_comes_to_the_same_to_the_last_bit() -> None:
    start = beginning_at(JANE, *CHAIN)
    assert personalised_pagerank(start).scores == personalised_pagerank(start).scores
    ground = PassagesAndEntities(start.view, ())
    assert ground.neighbours(np.array([passage(start.view, JANE)])).weight.sum() == pytest.approx(2 + 2 * 0.5**0.5)
