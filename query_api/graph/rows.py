"""Compressed sparse rows: row i's entries are `values[indptr[i]:indptr[i + 1]]` (Saad 2003, section 3.4)."""

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int32]
Positions = NDArray[np.int64]


def row_pointers(rows: NDArray[np.integer], n_rows: int) -> Indices:
    """(n_rows + 1,) int32 for entries that are sorted by row; entry i belongs to `rows[i]`."""
    pointers = np.zeros(n_rows + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=pointers[1:])
    return pointers


def pointers_of_counts(counts: NDArray[np.integer]) -> Indices:
    """(n + 1,) int32 for rows of these lengths."""
    pointers = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=pointers[1:])
    return pointers


def entries_of(pointers: Indices, rows: NDArray[np.integer]) -> tuple[Positions, Positions]:
    """The entries of some rows: (index into `rows`, position of the entry), row after row."""
    starts = pointers[rows].astype(np.int64)
    counts = pointers[np.asarray(rows) + 1].astype(np.int64) - starts
    which = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    return which, np.arange(len(which), dtype=np.int64) + np.repeat(starts - before, counts)


def rows_of(pointers: Indices, positions: NDArray[np.integer]) -> Positions:
    """Which row each entry position belongs to."""
    return np.searchsorted(pointers, positions, side="right") - 1
