"""Values looked up by their order, a block at a time, as NumPy finds them."""

import numpy as np
import pytest

from query_api.graph.arrays.packed import Ascending
from query_api.graph.arrays.rows import BLOCK, FEW, Sorting, entries_between, entries_of, laid_out


@pytest.mark.parametrize("n_values", [1, BLOCK, BLOCK + 1, 1_000])
@pytest.mark.parametrize("distinct", [1, 3, 60, 5_000])
@pytest.mark.parametrize("n_wanted", [1, 40, FEW + 1])
def test_values_stand_where_a_search_of_the_sorted_ones_finds_them(n_values: int, distinct: int, n_wanted: int) -> None:
    chance = np.random.default_rng(n_values * distinct)
    values = chance.integers(0, distinct, n_values).astype(np.int32)
    wanted = chance.integers(-1, distinct + 1, n_wanted)
    sorting, ordered, read = Sorting(values), np.sort(values), values.__getitem__
    first, last = np.searchsorted(ordered, wanted, "left"), np.searchsorted(ordered, wanted, "right")
    assert sorting.places(read, wanted, "left").tolist() == first.tolist()
    assert sorting.places(read, wanted, "right").tolist() == last.tolist()
    begins, counts = sorting.spans(read, wanted)
    assert (begins.tolist(), counts.tolist()) == (first.tolist(), (last - first).tolist())
    which, places = laid_out(begins, counts)
    assert values[sorting.at(places)].tolist() == wanted[which].tolist()


@pytest.mark.parametrize("n_rows", [1, 16, 50])
def test_rows_and_their_entries_find_each_other(n_rows: int) -> None:
    rows = np.sort(np.random.default_rng(n_rows).integers(0, n_rows, 40))
    pointers, wanted = Ascending.pointers(rows, n_rows), np.array([n_rows - 1, 0, n_rows // 2])
    which, entries = entries_of(pointers, wanted)
    assert [entries[which == at].tolist() for at in range(3)] == [np.flatnonzero(rows == row).tolist() for row in wanted]
    assert pointers.rows_of(np.arange(40)).tolist() == rows.tolist()
    again, same = entries_between(Ascending(rows), wanted)
    assert (again.tolist(), same.tolist()) == (which.tolist(), entries.tolist())
