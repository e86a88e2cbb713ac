"""Personalised PageRank by forward push: exact as far as asked, and no work for what lies beyond.

Andersen, Chung, Lang: "Local Graph Partitioning using PageRank Vectors", FOCS 2006, section 3, with weighted edges and
a walk that never waits. Nodes are pushed in rounds, all that are due at once; the bounds hold in any order.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Kind = TypeVar("Kind", bound=np.generic)


class Adjacent(NamedTuple):
    """Edges in columns of equal length: `asked` is the index into the nodes asked for, each node's edges together."""

    asked: Numbers
    node: Numbers
    weight: Floats


Neighbours = Callable[[Numbers], Adjacent]
"""The edges of nodes. Symmetric: an edge has the same weight from both its ends."""


class Mass(NamedTuple):
    """What push found, by node: `estimate` p and `residual` r, with personalised PageRank = p + Σ r(u) · that of u."""

    node: Numbers
    estimate: Floats
    residual: Floats


def push(
    neighbours: Neighbours,
    seeds: Mapping[int, float],
    *,
    restart: float,
    epsilon: float,
    least_weight: float,
    most_opened: int,
) -> Mass:
    """Spread the mass of `seeds` (positive, scaled to sum 1) until r(u) < epsilon · d(u) everywhere, d(u) the sum of
    the weights at u; a node without edges keeps its mass.

    A push keeps the share `restart` of what a node holds and spreads the rest over its edges by their weights. Then
    0 <= PageRank(u) - p(u) <= epsilon · d(u), and at most 1 / (restart · epsilon) of degree is pushed. What holds less
    than epsilon · least_weight is not looked at: the first bound wants no degree below `least_weight`. Once
    `most_opened` nodes have been, those with most first, no further one is; what the others hold stays in the residual,
    outside the bound.
    """
    ground = _Ground(neighbours)
    rows = ground.rows_of(np.array(list(seeds), dtype=np.int64))
    residual = np.zeros(ground.size)
    residual[rows] = np.array(list(seeds.values())) / sum(seeds.values())
    estimate = np.zeros(ground.size)
    while True:
        seen = np.flatnonzero(residual >= epsilon * least_weight)
        closed = seen[~ground.opened[seen]]
        closed = closed[np.argsort(-residual[closed], kind="stable")]
        ground.open(closed[: max(0, most_opened - ground.n_opened)])
        residual, estimate = _grown(residual, ground.size), _grown(estimate, ground.size)
        due = np.flatnonzero(ground.opened & (residual > 0) & (residual >= epsilon * ground.degree))
        if not len(due):
            return Mass(ground.nodes, estimate, residual)
        held = residual[due]
        lonely = ground.degree[due] == 0
        estimate[due] += np.where(lonely, held, restart * held)
        residual[due] = 0.0
        source, target, share = ground.edges_of(due)
        residual += np.bincount(target, (1 - restart) * held[source] * share, minlength=ground.size)


class _Ground:
    """The part of a graph that has been seen: nodes in rows, in the order of their first sight."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.opened: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self.degree: Floats = np.zeros(0)
        self._neighbours = neighbours
        self._row: dict[int, int] = {}
        self._targets: dict[int, Numbers] = {}
        self._shares: dict[int, Floats] = {}

    @property
    def size(self) -> int:
        return len(self._row)

    @property
    def n_opened(self) -> int:
        return len(self._targets)

    @property
    def nodes(self) -> Numbers:
        return np.fromiter(self._row, dtype=np.int64, count=self.size)

    def rows_of(self, nodes: Numbers) -> Numbers:
        """The rows of these nodes, new ones at the end."""
        rows = np.array([self._row.setdefault(node, len(self._row)) for node in nodes.tolist()], dtype=np.int64)
        self.opened, self.degree = _grown(self.opened, self.size), _grown(self.degree, self.size)
        return rows

    def open(self, rows: Numbers) -> None:
        """Look up the edges of rows whose edges are not known yet."""
        if not len(rows):
            return
        edges = self._neighbours(self.nodes[rows])
        targets = self.rows_of(edges.node)
        self.opened[rows] = True
        self.degree[rows] = np.bincount(edges.asked, edges.weight, minlength=len(rows))
        bounds = np.searchsorted(edges.asked, np.arange(len(rows) + 1))
        shares = edges.weight / self.degree[rows][edges.asked]
        for at, row in enumerate(rows.tolist()):
            mine = slice(bounds[at], bounds[at + 1])
            self._targets[row], self._shares[row] = targets[mine], shares[mine]

    def edges_of(self, rows: Numbers) -> tuple[Numbers, Numbers, Floats]:
        """The edges of opened rows: index into `rows`, row of the far end, share of the node's weight."""
        targets = [self._targets[row] for row in rows.tolist()]
        sources = np.repeat(np.arange(len(rows)), [len(each) for each in targets])
        return sources, np.concatenate(targets), np.concatenate([self._shares[row] for row in rows.tolist()])


def _grown(array: NDArray[Kind], size: int) -> NDArray[Kind]:
    return np.concatenate([array, np.zeros(size - len(array), dtype=array.dtype)]) if size > len(array) else array
