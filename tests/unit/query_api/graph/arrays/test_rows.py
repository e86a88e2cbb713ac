"""Rows and edges are found wherever they stand, be they many or few."""

import numpy as np
import pytest

from query_api.graph.arrays.packed import Ascending
from query_api.graph.arrays.rows import Entering, entries_between, entries_of


@pytest.mark.parametrize("n_edges", [0, 5, 400])
def test_edges_are_found_by_what_they_lead_to_be_they_many_or_few(n_edges: int) -> None:
    targets = np.random.default_rng(n_edges).integers(0, 60, n_edges)
    wanted = np.array([59, 0, 7, 7, 30])
    entering = Entering.of(targets, 60)
    assert isinstance(entering.numbers, Ascending) == (n_edges > 20)
    which, edges = entering.entries(wanted)
    found = [edges[which == at].tolist() for at in range(len(wanted))]
    assert found == [np.flatnonzero(targets == each).tolist() for each in wanted]


@pytest.mark.parametrize("n_rows", [1, 16, 50])
def test_rows_and_their_entries_find_each_other(n_rows: int) -> None:
    rows = np.sort(np.random.default_rng(n_rows).integers(0, n_rows, 40))
    pointers, wanted = Ascending.pointers(rows, n_rows), np.array([n_rows - 1, 0, n_rows // 2])
    which, entries = entries_of(pointers, wanted)
    assert [entries[which == at].tolist() for at in range(3)] == [
        np.flatnonzero(rows == row).tolist() for row in wanted
    ]
    assert pointers.rows_of(np.arange(40)).tolist() == rows.tolist()
    again, same = entries_between(Ascending(rows), wanted)
    assert (again.tolist(), same.tolist()) == (which.tolist(), entries.tolist())
