"""Partitions of a graph into communities, by modularity at three resolutions: made again, and kept up.

Again by the Leiden algorithm (Traag, Waltman and van Eck 2019). After few changes only the nodes at changed edges are
moved, and from there what their moves affect (the dynamic frontier of Sahu 2024, "DF Leiden"); then whole communities
are moved likewise.

Resolution follows Reichardt and Bornholdt 2006: modularity is the sum over communities of e/w - r (v/w)², with e twice
the weight inside, v the weighted degrees of the members, w twice the weight of all edges.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import graspologic_native
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from indexer.communities.entity_graph import EntityGraph, Pairs, Weights

Level = Literal["coarse", "medium", "fine"]
RESOLUTIONS: dict[Level, float] = {"coarse": 0.5, "medium": 1.0, "fine": 2.0}
LEVELS = tuple(RESOLUTIONS)
SEED = 18
ITERATIONS = 2
ALWAYS_FULL_EDGES = 10_000  # where it takes a few hundredths of a second
MOST_LOSS = 0.02  # of the modularity that the last full run had
MOST_CHANGED = 1.0  # of the weight that the last full run saw
LEAST_GAIN = 1e-12
LEAST_CHANGE = 0.1  # of an edge's weight, for its ends to be moved: each mention changes many edges a little
MOST_MOVES = 8  # of a node, on the average over the frontier

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Partition:
    """One collection's communities at each level: (n_nodes,) numbers from 0. `modularity` is that of now, `at_full`
    that of the last full run; `changed` is the weight of edges that changed since, as a share of what it saw."""

    labels: dict[Level, Labels]
    modularity: dict[Level, float]
    at_full: dict[Level, float]
    changed: float


@dataclass(frozen=True)
class Former:
    """A partition and the graph it is of."""

    graph: EntityGraph
    partition: Partition


def partition(graph: EntityGraph, former: Former | None) -> Partition:
    """The former one kept up; made again where there is none, where the graph is small, or where the former one is kept
    up no longer: it has lost MOST_LOSS of its modularity, or the graph changed by MOST_CHANGED, since the last full
    run."""
    if former is None or len(graph.pairs.weights) <= ALWAYS_FULL_EDGES:
        return full_partition(graph)
    kept_up = updated_partition(graph, former)
    lost = any(kept_up.modularity[level] < (1 - MOST_LOSS) * kept_up.at_full[level] for level in LEVELS)
    return full_partition(graph) if lost or kept_up.changed > MOST_CHANGED else kept_up


def full_partition(graph: EntityGraph) -> Partition:
    """Deterministic: equal graphs get equal partitions."""
    network = Network.of(graph)
    labels = {level: leiden(network, resolution) for level, resolution in RESOLUTIONS.items()}
    reached = {level: network.modularity(labels[level], RESOLUTIONS[level]) for level in LEVELS}
    return Partition(labels, reached, dict(reached), 0.0)


def updated_partition(graph: EntityGraph, former: Former) -> Partition:
    network = Network.of(graph)
    before = row_of(former.graph.keys, graph.keys)
    changed, changed_weight = changes(graph, former.graph, before)
    labels, reached = {}, {}
    is_new = before < 0
    for level, resolution in RESOLUTIONS.items():
        known = former.partition.labels[level]
        first_new = int(known.max(initial=-1)) + 1
        start = np.empty(graph.n_nodes, np.int64)
        start[~is_new] = known[before[~is_new]]
        start[is_new] = np.arange(first_new, first_new + int(is_new.sum()))
        labels[level] = moved(network, start, frontier(changed, start), resolution)
        reached[level] = network.modularity(labels[level], resolution)
    share = changed_weight / max(former.graph.pairs.weights.sum(), LEAST_GAIN)
    return Partition(labels, reached, former.partition.at_full, former.partition.changed + float(share))


@dataclass(frozen=True)
class Network:
    """A graph's pairs, with its symmetric adjacency matrix, the weighted `degrees` of its nodes, and their sum."""

    pairs: Pairs
    adjacency: csr_array
    degrees: Weights
    total: float

    @classmethod
    def of(cls, graph: EntityGraph) -> "Network":
        pairs = graph.pairs
        degrees = _sums(pairs.sources, pairs.weights, graph.n_nodes)
        degrees += _sums(pairs.targets, pairs.weights, graph.n_nodes)
        return cls(pairs, graph.adjacency(), degrees, float(degrees.sum()))

    @property
    def n_nodes(self) -> int:
        return len(self.degrees)

    def is_inside(self, labels: Labels) -> NDArray[np.bool_]:
        """Which pairs are of one community."""
        return np.equal(labels[self.pairs.sources], labels[self.pairs.targets])

    def modularity(self, labels: Labels, resolution: float) -> float:
        if not self.total:
            return 0.0
        inside = 2 * float(self.pairs.weights[self.is_inside(labels)].sum()) / self.total
        volumes = np.bincount(labels, weights=self.degrees) / self.total
        return inside - resolution * float((volumes**2).sum())


def leiden(network: Network, resolution: float) -> Labels:
    """(n_nodes,) numbers from 0. The GIL is released."""
    if not network.total:
        return np.arange(network.n_nodes)
    _, found = graspologic_native.leiden_csr(
        network.adjacency.indptr.astype(np.int64),
        network.adjacency.indices.astype(np.int32),
        network.adjacency.data,
        network.n_nodes,
        resolution=resolution,
        iterations=ITERATIONS,
        seed=SEED,
    )
    return np.fromiter((found[node] for node in range(network.n_nodes)), np.int64, network.n_nodes)


def changes(graph: EntityGraph, former: EntityGraph, before: Labels) -> tuple[Pairs, float]:
    """The edges that came, went or weigh a tenth more or less, between nodes of now, with the difference as weight; and
    the sum of what all weights changed by. Where a node is gone, its neighbours have an edge to themselves that went.

    `before` has each node's number in the former graph, -1 for a new one.
    """
    now_of = np.full(former.n_nodes, -1, np.int64)
    now_of[before[before >= 0]] = np.flatnonzero(before >= 0)
    count = graph.n_nodes + former.n_nodes
    gone = now_of < 0
    now_of[gone] = np.arange(graph.n_nodes, graph.n_nodes + int(gone.sum()))  # beyond the nodes of now
    old, new = _by_code(former.pairs, now_of, count), _by_code(graph.pairs, np.arange(graph.n_nodes), count)
    codes = np.concatenate([old[0], new[0]])
    if not len(codes):
        return Pairs.empty(), 0.0
    order = np.argsort(codes, kind="stable")
    codes, weights, signed = codes[order], np.concatenate([old[1], new[1]])[order], np.concatenate([-old[1], new[1]])
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    difference = np.add.reduceat(signed[order], begins)
    changed = np.abs(difference) > LEAST_CHANGE * np.maximum.reduceat(weights, begins)
    low, high = codes[begins][changed] // count, codes[begins][changed] % count
    there = low < graph.n_nodes
    low, high, by = low[there], high[there], difference[changed][there]
    return Pairs(low, np.where(high < graph.n_nodes, high, low), by), float(np.abs(difference).sum())


def frontier(changed: Pairs, labels: Labels) -> Labels:
    """The nodes that changed edges may move: at weaker ones within a community, and at stronger ones between two."""
    matters = (labels[changed.sources] == labels[changed.targets]) == (changed.weights < 0)
    return np.unique(np.concatenate([changed.sources[matters], changed.targets[matters]]))


def _by_code(pairs: Pairs, number: Labels, count: int) -> tuple[Labels, Weights]:
    sources, targets = number[pairs.sources], number[pairs.targets]
    return np.minimum(sources, targets) * np.int64(count) + np.maximum(sources, targets), pairs.weights


def moved(network: Network, labels: Labels, nodes: Labels, resolution: float) -> Labels:
    """The partition after these nodes, and all that this affects, have moved to where modularity grows.

    1. Nodes move; 2. whole communities move, from those of these nodes on.
    """
    if not network.total or not len(nodes):
        return _numbered(labels)
    moves = _LocalMoves(network.adjacency, network.degrees, labels, resolution)  # 1
    moves.run(nodes.tolist())
    placed = _numbered(np.array(moves.labels))
    count = int(placed.max()) + 1
    outside = ~network.is_inside(placed)  # 2
    pairs = network.pairs
    between = Pairs(placed[pairs.sources[outside]], placed[pairs.targets[outside]], pairs.weights[outside])
    volumes = _sums(placed, network.degrees, count)
    communities = _LocalMoves(between.adjacency(count), volumes, np.arange(count), resolution)
    communities.run(np.unique(placed[nodes]).tolist())
    return _numbered(np.array(communities.labels)[placed])


def _sums(groups: NDArray[Any], values: Weights, count: int) -> Weights:
    """(count,) the sum of the values of each group."""
    return np.asarray(np.bincount(groups, weights=values, minlength=count), dtype=np.float64)


def _numbered(labels: Labels) -> Labels:
    """With numbers from 0, none left out."""
    numbered: Labels = np.unique(labels, return_inverse=True)[1]
    return numbered


class _LocalMoves:
    """The queue of Leiden's fast local moving: a node that moved puts its neighbours into the queue."""

    def __init__(self, adjacency: csr_array, degrees: Weights, labels: Labels, resolution: float) -> None:
        self.labels: list[int] = labels.tolist()
        self._adjacency = adjacency
        self._degrees: list[float] = degrees.tolist()
        self._volumes: list[float] = np.bincount(labels, weights=degrees).tolist()
        self._sizes: list[int] = np.bincount(labels).tolist()
        self._free = [label for label, size in enumerate(self._sizes) if not size]
        self._factor = resolution / float(degrees.sum())

    def run(self, frontier: Iterable[int]) -> None:
        """Until no node at hand gains by moving, or each of the frontier could have moved MOST_MOVES times."""
        queue = deque(frontier)
        waiting = set(queue)
        left = MOST_MOVES * (len(queue) + 1_000)
        indptr, indices = self._adjacency.indptr, self._adjacency.indices
        while queue and left:
            left -= 1
            node = queue.popleft()
            waiting.discard(node)
            span = slice(indptr[node], indptr[node + 1])
            neighbours = indices[span].tolist()
            best = self._best(node, neighbours, self._adjacency.data[span].tolist())
            if best == self.labels[node]:
                continue
            self._move(node, best)
            for neighbour in neighbours:
                if self.labels[neighbour] != best and neighbour not in waiting:
                    waiting.add(neighbour)
                    queue.append(neighbour)

    def _best(self, node: int, neighbours: list[int], weights: list[float]) -> int:
        """Its own community where no other is better; a free number where being alone is best."""
        labels, volumes = self.labels, self._volumes
        own, degree = labels[node], self._degrees[node]
        joined: dict[int, float] = {}
        for neighbour, weight in zip(neighbours, weights, strict=True):
            if neighbour != node:
                label = labels[neighbour]
                joined[label] = joined.get(label, 0.0) + weight
        scale = self._factor * degree
        best, most = own, joined.get(own, 0.0) - scale * (volumes[own] - degree) + LEAST_GAIN
        for label, weight in joined.items():
            gain = weight - scale * volumes[label]
            if gain > most and label != own:
                best, most = label, gain
        if most < 0 and self._sizes[own] > 1:
            return self._free[-1] if self._free else len(self._sizes)
        return best

    def _move(self, node: int, label: int) -> None:
        own, degree = self.labels[node], self._degrees[node]
        if label == len(self._sizes):
            self._sizes.append(0)
            self._volumes.append(0.0)
        elif not self._sizes[label]:
            self._free.pop()  # the last, which `_best` gave
            self._volumes[label] = 0.0
        self._sizes[own] -= 1
        self._volumes[own] -= degree
        if not self._sizes[own]:
            self._free.append(own)
        self._sizes[label] += 1
        self._volumes[label] += degree
        self.labels[node] = label


def row_of(sorted_keys: NDArray[np.uint64], keys: NDArray[np.uint64]) -> Labels:
    """Where each key is among the sorted ones, -1 for one that is not."""
    if not len(sorted_keys):
        return np.full(len(keys), -1, np.int64)
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[at] == keys, at, -1).astype(np.int64)
