"""Compressed sparse rows: row i's entries are `values[indptr[i]:indptr[i + 1]]` (Saad 2003, section 3.4)."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int32]
Positions = NDArray[np.int64]

BLOCK = 16  # entries behind each head of a `Sorting`
FEW = 2_048  # so many are looked up sooner without a copy of the whole order


@dataclass(frozen=True, slots=True)
class Sorting:
    """The order of some values, which stay where they are, and every 16th of them in that order: looking one up reads
    a block of 16. NumPy's own search by an order first copies the whole of it into 64 bits.
    """

    order: Indices
    heads: NDArray[Any]

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Sorting":
        order = np.argsort(values, kind="stable").astype(np.int32)
        return cls(order, values[order[::BLOCK]])

    @property
    def nbytes(self) -> int:
        return self.order.nbytes + self.heads.nbytes

    def places(self, values: NDArray[Any], wanted: NDArray[Any], side: Literal["left", "right"]) -> Positions:
        """How many of the values stand before each wanted one, or with `right` not behind it."""
        wanted = wanted.astype(values.dtype, copy=False)
        if len(wanted) > FEW:
            places: Positions = np.searchsorted(values, wanted, side=side, sorter=self.order)
            return places
        begins, held, there = self._block(values, wanted, side)
        before = held < wanted[:, None] if side == "left" else held <= wanted[:, None]
        found: Positions = begins + np.count_nonzero(before & there, axis=1)
        return found

    def spans(self, values: NDArray[Any], wanted: NDArray[Any]) -> tuple[Positions, Positions]:
        """Where in the order the entries with each wanted value begin, and where they end: both `places` for little
        more than one, since most have all of theirs in one block."""
        wanted = wanted.astype(values.dtype, copy=False)
        if len(wanted) > FEW:
            return self.places(values, wanted, "left"), self.places(values, wanted, "right")
        begins, held, there = self._block(values, wanted, "left")
        first: Positions = begins + np.count_nonzero(there & (held < wanted[:, None]), axis=1)
        last: Positions = begins + np.count_nonzero(there & (held <= wanted[:, None]), axis=1)
        further = np.flatnonzero(last == begins + BLOCK)
        if len(further):
            last[further] = self.places(values, wanted[further], "right")
        return first, last

    def _block(
        self, values: NDArray[Any], wanted: NDArray[Any], side: Literal["left", "right"]
    ) -> tuple[Positions, NDArray[Any], NDArray[np.bool_]]:
        """Where the block of each wanted value begins; (n_wanted, 16) what stands in it, and whether anything does."""
        begins: Positions = np.maximum(np.searchsorted(self.heads, wanted, side=side) - 1, 0) * BLOCK
        inside = begins[:, None] + np.arange(BLOCK)
        return begins, values[self.order[np.minimum(inside, len(values) - 1)]], inside < len(values)


@dataclass(frozen=True, slots=True)
class Entering:
    """The order of edges by the small numbers they lead to, looked up without a look at the edges themselves: in
    `numbers`, which where there are more edges than numbers (`dense`) are row pointers, else the targets in order.
    """

    order: Indices
    numbers: Indices
    dense: bool

    @classmethod
    def of(cls, targets: Indices, n_targets: int) -> "Entering":
        order = np.argsort(targets, kind="stable").astype(np.int32)
        dense = len(targets) > n_targets
        return cls(order, row_pointers(targets, n_targets) if dense else targets[order], dense)

    @property
    def nbytes(self) -> int:
        return self.order.nbytes + self.numbers.nbytes

    def entries(self, wanted: NDArray[np.integer]) -> tuple[Positions, Positions]:
        """The edges that lead to these numbers: (index into `wanted`, edge)."""
        which, places = (entries_of if self.dense else entries_between)(self.numbers, wanted)
        return which, self.order[places].astype(np.int64)


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
    return np.searchsorted(pointers, positions.astype(pointers.dtype, copy=False), side="right") - 1


def entries_between(sorted_rows: NDArray[Any], wanted: NDArray[Any]) -> tuple[Positions, Positions]:
    """`entries_of` for few entries over many rows: `sorted_rows` holds the row of each entry, ascending."""
    wanted = wanted.astype(sorted_rows.dtype, copy=False)  # else all rows are copied into the wider type
    first = sorted_rows.searchsorted(wanted)
    return _spans(first, sorted_rows.searchsorted(wanted, "right") - first)


def entries_with(values: NDArray[Any], by_value: Sorting, wanted: NDArray[Any]) -> tuple[Positions, Positions]:
    """The entries that have these values: (index into `wanted`, position of the entry)."""
    if not len(values) or not len(wanted):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    first, last = by_value.spans(values, wanted)
    which, places = _spans(first, last - first)
    return which, by_value.order[places].astype(np.int64)


def _spans(starts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """Spans laid out one after the other: (index of the span, position in it counted from its start)."""
    which = np.repeat(np.arange(len(starts), dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    return which, np.arange(len(which), dtype=np.int64) + np.repeat(starts - before, counts)
