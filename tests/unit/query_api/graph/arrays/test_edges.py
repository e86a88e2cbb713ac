"""Edges are found from both ends, also those that are nowhere written."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from query_api.graph.arrays.edges import Links, Naming, Reached, TwoWay, naming_order

N = 40
EDGES = st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=120).map(sorted)


def ends_of(edges: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sources, targets = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return sources, targets


def found(reached: Reached, number: int) -> list[int]:
    return reached.others[reached.asked == number].tolist()


@given(EDGES)
def test_edges_are_found_from_both_ends(edges: list[tuple[int, int]]) -> None:
    two_way, every = TwoWay.build(*ends_of(edges), N, N), np.arange(N)
    leaving, entering = two_way.leaving(every), two_way.entering(every)
    for node in range(N):
        assert found(leaving, node) == [target for source, target in edges if source == node]
        assert found(entering, node) == [source for source, target in edges if target == node]
    assert list(zip(*(ends.tolist() for ends in two_way.ends()), strict=True)) == edges


@given(EDGES)
def test_who_names_whom_is_found_from_both_ends_and_edges_keep_their_numbers(edges: list[tuple[int, int]]) -> None:
    chunks, entities = ends_of(edges)
    order = naming_order(chunks, entities, N)
    naming = Naming.build(chunks[order.edges], order.numbers[entities[order.edges]], order.is_first, N, N)
    edge_of = {edges[row]: edge for edge, row in enumerate(order.edges.tolist())}
    old = np.argsort(order.numbers)
    leaving, entering = naming.leaving(np.arange(N)), naming.entering(order.numbers)
    told = zip(leaving.asked.tolist(), old[leaving.others].tolist(), leaving.edges.tolist(), strict=True)
    assert {(chunk, entity): edge for chunk, entity, edge in told} == edge_of
    told = zip(entering.others.tolist(), entering.asked.tolist(), entering.edges.tolist(), strict=True)
    assert {(chunk, entity): edge for chunk, entity, edge in told} == edge_of
    assert all(found(entering, entity) == sorted(found(entering, entity)) for entity in range(N))
    assert len(naming) == len(edges)
    assert leaving.asked.tolist() == sorted(chunks.tolist())


def test_entities_are_numbered_as_chunks_first_name_them() -> None:
    order = naming_order(np.array([2, 0, 1, 0]), np.array([7, 5, 5, 9]), 10)
    assert order.numbers[[5, 9, 7]].tolist() == [0, 1, 2]
    assert sorted(order.numbers.tolist()) == list(range(10))


def test_links_are_found_from_both_ends() -> None:
    links = Links.build(np.array([0, 0, 3]), np.array([8, 9, 8], dtype=np.uint64))
    which, edges, keys = links.leaving(np.array([3, 1, 0]))
    assert list(zip(which.tolist(), edges.tolist(), strict=True)) == [(0, 2), (2, 0), (2, 1)]
    assert keys.tolist() == [8, 8, 9]
    assert found(links.entering(np.array([8, 1], dtype=np.uint64)), 0) == [0, 3]
    assert found(links.entering(np.array([8, 1], dtype=np.uint64)), 1) == []
