"""Forward push against arithmetic done by hand, and against power iteration on graphs made at random."""

import numpy as np
import pytest
from numpy.typing import NDArray

from query_api.retrieval.retrievers.walks.push import Adjacent, Mass, Neighbours, Numbers, push

RESTART = 0.3


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
