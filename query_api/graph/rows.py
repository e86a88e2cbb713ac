"""Compressed sparse rows: row i's entries are `values[indptr[i]:indptr[i + 1]]` (Saad 2003, section 3.4)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int32]
Positions = NDArray[np.int64]


def row_pointers(rows: NDArray[np.integer], n_rows: int) -> Indices:
    """(n_rows + 1,) int32 for entries that are sorted by row; entry i belongs to `rows[i]`."""
    pointers = np.zeros(n_rows + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=pointers[1:])
    return pointers


def entries_of(pointers: Indices, rows: NDArray[np.integer]) -> tuple[Positions, Positions]:
    """The entries of some rows: (index into `rows`, position of the entry), row after row."""
    starts = pointers[rows].astype(np.int64)
    counts = pointers[np.asarray(rows) + 1].astype(np.int64) - starts
    return _spans(starts, counts)


def rows_of(pointers: Indices, positions: NDArray[np.integer]) -> Positions:
    """Which row each entry position belongs to."""
    return np.searchsorted(pointers, positions, side="right") - 1


def entries_between(sorted_rows: NDArray[Any], wanted: NDArray[Any]) -> tuple[Positions, Positions]:
    """`entries_of` for few entries over many rows: `sorted_rows` holds the row of each entry, ascending."""
    first = np.searchsorted(sorted_rows, wanted, side="left")
    return _spans(first, np.searchsorted(sorted_rows, wanted, side="right") - first)


def entries_with(values: NDArray[Any], order: Indices, wanted: NDArray[Any]) -> tuple[Positions, Positions]:
    """The entries that have these values: (index into `wanted`, position of the entry). `order` sorts `values`."""
    first = np.searchsorted(values, wanted, side="left", sorter=order)
    counts = np.searchsorted(values, wanted, side="right", sorter=order) - first
    which, places = _spans(first, counts)
    return which, order[places].astype(np.int64)


def _spans(starts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """Spans laid out one after the other: (index of the span, position in it counted from its start)."""
    which = np.repeat(np.arange(len(starts), dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    return which, np.arange(len(which), dtype=np.int64) + np.repeat(starts - before, counts)
