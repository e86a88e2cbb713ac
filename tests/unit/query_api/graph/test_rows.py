"""Values looked up by their order, a block at a time, as NumPy finds them."""

import numpy as np
import pytest

from query_api.graph.rows import BLOCK, FEW, Entering, Sorting, entries_with


@pytest.mark.parametrize("n_values", [1, BLOCK, BLOCK + 1, 1_000])
@pytest.mark.parametrize("distinct", [1, 3, 60, 5_000])
@pytest.mark.parametrize("n_wanted", [1, 40, FEW + 1])
def test_values_stand_where_a_search_of_the_sorted_ones_finds_them(n_values: int, distinct: int, n_wanted: int) -> None:
    chance = np.random.default_rng(n_values * distinct)
    values = chance.integers(0, distinct, n_values).astype(np.int32)
    wanted = chance.integers(-1, distinct + 1, n_wanted)
    sorting, ordered = Sorting.of(values), np.sort(values)
    first, last = np.searchsorted(ordered, wanted, "left"), np.searchsorted(ordered, wanted, "right")
    assert sorting.places(values, wanted, "left").tolist() == first.tolist()
    assert sorting.places(values, wanted, "right").tolist() == last.tolist()
    assert [found.tolist() for found in sorting.spans(values, wanted)] == [first.tolist(), last.tolist()]
    which, entries = entries_with(values, sorting, wanted)
    assert values[entries].tolist() == wanted[which].tolist()
    assert len(entries) == sum((values == each).sum() for each in wanted)


@pytest.mark.parametrize("n_edges", [0, 5, 400])
def test_edges_are_found_by_what_they_lead_to_be_they_many_or_few(n_edges: int) -> None:
    chance = np.random.default_rng(n_edges)
    targets = chance.integers(0, 60, n_edges).astype(np.int32)
    wanted = np.array([59, 0, 7, 7, 30])
    entering = Entering.of(targets, 60)
    assert entering.dense == (n_edges > 60)
    which, edges = entering.entries(wanted)
    found = [edges[which == at].tolist() for at in range(len(wanted))]
    assert found == [np.flatnonzero(targets == each).tolist() for each in wanted]
