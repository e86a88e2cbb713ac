"""Partitions: found, kept up, and made again where that no longer holds."""

import numpy as np
import pytest

from indexer.communities import partition as module
from indexer.communities.entity_graph import EntityGraph, Pairs
from indexer.communities.partition import (
    LEVELS,
    RESOLUTIONS,
    Former,
    Network,
    changes,
    frontier,
    full_partition,
    partition,
    row_of,
    updated_partition,
)


def graph_of(edges: dict[tuple[int, int], float], keys: list[int] | None = None) -> EntityGraph:
    nodes = keys if keys is not None else sorted({end for pair in edges for end in pair})
    number = {key: at for at, key in enumerate(nodes)}
    sources, targets = (np.array([number[pair[end]] for pair in edges], np.int64) for end in (0, 1))
    return EntityGraph(
        "c", np.array(nodes, np.uint64), np.arange(len(nodes)), Pairs(sources, targets, np.array(list(edges.values())))
    )


def cliques(count: int, size: int) -> dict[tuple[int, int], float]:
    """A ring of cliques, each joined to the next by one edge."""
    edges = {
        (first + low, first + high): 1.0
        for first in range(0, count * size, size)
        for low in range(size)
        for high in range(low + 1, size)
    }
    return edges | {(at * size, (at + 1) * size): 0.5 for at in range(count - 1)}


def test_modularity_is_that_of_the_formula() -> None:
    """Two triangles and an edge between: 2m = 14, of which 12 inside; each side has the volume 7."""
    edges = {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 1.0, (3, 4): 1.0, (3, 5): 1.0, (4, 5): 1.0, (2, 3): 1.0}
    network = Network.of(graph_of(edges))
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert network.modularity(labels, 1.0) == pytest.approx(12 / 14 - 2 * 0.25)
    assert network.modularity(labels, 2.0) == pytest.approx(12 / 14 - 2 * 2 * 0.25)


def test_cliques_are_found_the_same_each_time() -> None:
    graph = graph_of(cliques(12, 6))
    found = full_partition(graph)
    assert [len(set(found.labels["fine"][first : first + 6])) for first in range(0, 72, 6)] == [1] * 12
    assert len(set(found.labels["fine"].tolist())) == 12
    chain = full_partition(graph_of(cliques(60, 3)))
    assert len(set(chain.labels["coarse"].tolist())) < len(set(chain.labels["fine"].tolist()))
    again = full_partition(graph)
    assert all(np.array_equal(found.labels[level], again.labels[level]) for level in LEVELS)


def test_a_node_follows_its_edges_to_another_community() -> None:
    before = graph_of(cliques(4, 6))
    known = full_partition(before)
    moved = {pair: weight for pair, weight in cliques(4, 6).items() if 3 not in pair}
    moved |= {(3, other): 1.0 for other in range(18, 24)}
    graph = graph_of(moved)
    found = updated_partition(graph, Former(before, known)).labels["fine"]
    assert found[3] == found[20]
    assert found[3] != found[2]
    assert len(set(found.tolist())) == 4


def test_new_nodes_form_a_community_and_gone_ones_leave_none() -> None:
    before = graph_of(cliques(4, 6))
    known = full_partition(before)
    kept = {pair: weight for pair, weight in cliques(5, 6).items() if min(pair) >= 6}  # the first clique is gone
    graph = graph_of(kept)
    found = updated_partition(graph, Former(before, known)).labels["fine"]
    assert [len(set(found[first : first + 6].tolist())) for first in range(0, 24, 6)] == [1] * 4
    assert sorted(set(found.tolist())) == [0, 1, 2, 3]


def test_communities_that_grow_together_become_one() -> None:
    before = graph_of(cliques(6, 5))
    known = full_partition(before)
    joined = cliques(6, 5) | {(low, high): 1.0 for low in range(5) for high in range(5, 10)}
    found = updated_partition(graph_of(joined), Former(before, known)).labels["fine"]
    assert len(set(found[:10].tolist())) == 1


def test_what_changed_are_the_ends_of_edges_that_came_went_or_weigh_otherwise() -> None:
    before = graph_of({(1, 2): 1.0, (2, 3): 1.0, (4, 5): 1.0, (6, 7): 1.0})
    after = graph_of({(1, 2): 1.0, (2, 3): 0.5, (6, 7): 0.95, (8, 9): 0.25}, [1, 2, 3, 4, 6, 7, 8, 9])
    changed, weight = changes(after, before, row_of(before.keys, after.keys))
    ends = after.keys[changed.sources].tolist(), after.keys[changed.targets].tolist()
    assert list(zip(*ends, changed.weights.tolist(), strict=True)) == [(2, 3, -0.5), (4, 4, -1.0), (8, 9, 0.25)]
    assert weight == pytest.approx(0.5 + 1.0 + 0.05 + 0.25), "the twentieth less of 6 and 7 counts, and moves nobody"


def test_nodes_may_move_at_weaker_edges_within_and_at_stronger_ones_between() -> None:
    pairs = Pairs(np.array([0, 1, 2, 3]), np.array([4, 5, 6, 7]), np.array([-1.0, 1.0, -1.0, 1.0]))
    labels = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    assert frontier(pairs, labels).tolist() == [0, 3, 4, 7]


def test_moving_never_loses_modularity() -> None:
    chance = np.random.default_rng(3)
    edges: dict[tuple[int, int], float] = {}
    while len(edges) < 600:
        low, high = sorted(chance.integers(0, 150, 2).tolist())
        if low != high and (low % 10 == high % 10 or chance.random() < 0.1):
            edges[low, high] = float(chance.random()) + 0.1
    before = graph_of(edges, list(range(150)))
    known = full_partition(before)
    changed = dict(list(edges.items())[40:]) | {(at, 149 - at): 0.7 for at in range(20)}
    graph = graph_of(changed, list(range(150)))
    network = Network.of(graph)
    found = updated_partition(graph, Former(before, known))
    for level, resolution in RESOLUTIONS.items():
        assert found.modularity[level] >= network.modularity(known.labels[level], resolution) - 1e-9
        assert found.modularity[level] == pytest.approx(network.modularity(found.labels[level], resolution))


def test_a_large_graph_is_kept_up_until_it_has_changed_or_lost_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALWAYS_FULL_EDGES", 0)
    before = graph_of(cliques(6, 5))
    known = full_partition(before)
    graph = graph_of(cliques(6, 5) | {(0, 7): 0.5})
    kept_up = partition(graph, Former(before, known))
    assert 0 < kept_up.changed < 0.1
    assert kept_up.at_full == known.at_full
    monkeypatch.setattr(module, "MOST_CHANGED", 0.001)
    assert partition(graph, Former(before, known)).changed == 0.0
    monkeypatch.setattr(module, "MOST_CHANGED", 1.0)
    better = {level: value * 1.1 for level, value in known.at_full.items()}
    lossy = module.Partition(known.labels, known.modularity, better, 0.1)
    assert partition(graph, Former(before, lossy)).changed == 0.0, "it lost a tenth since the last full run"
    assert partition(graph, None).changed == 0.0


def test_a_graph_without_edges_has_communities_of_one() -> None:
    empty = graph_of({}, [1, 2, 3])
    assert full_partition(empty).labels["fine"].tolist() == [0, 1, 2]
    assert updated_partition(empty, Former(empty, full_partition(empty))).labels["fine"].tolist() == [0, 1, 2]
