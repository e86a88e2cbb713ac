"""Looking up many rows at once: which entries a row has, which entries have a value (Saad 2003, section 3.4)."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from query_api.graph.arrays.packed import Ascending, Packed, Positions

BLOCK = 16  # entries behind each head of a `Sorting`
FEW = 4_096  # so many are looked up in one step, else the blocks take too much memory

Reading = Callable[[Positions], NDArray[Any]]


class Sorting:
    """The order of some values, which stay where they are, and every 16th of them in that order: looking one up reads
    a block of 16. The values are handed in as what reads them by position, the same ones every time. Immutable.
    """

    __slots__ = ("_heads", "_order")

    def __init__(self, values: NDArray[Any]) -> None:
        order = np.argsort(values, kind="stable")
        self._order = Packed(order)
        self._heads = values[order[::BLOCK]]

    def __len__(self) -> int:
        return len(self._order)

    @property
    def nbytes(self) -> int:
        return self._order.nbytes + self._heads.nbytes

    def at(self, places: NDArray[np.integer]) -> Positions:
        """The positions of the values that stand in these places of the order."""
        return self._order.at(places)

    def places(self, read: Reading, wanted: NDArray[Any], side: Literal["left", "right"]) -> Positions:
        """How many of the values stand before each wanted one, or with `right` not behind it."""
        wanted = wanted.astype(self._heads.dtype, copy=False)
        if len(wanted) > FEW:
            steps = range(0, len(wanted), FEW)
            return np.concatenate([self.places(read, wanted[step : step + FEW], side) for step in steps])
        begins, held, there = self._block(read, wanted, side)
        before = held < wanted[:, None] if side == "left" else held <= wanted[:, None]
        found: Positions = begins + np.count_nonzero(before & there, axis=1)
        return found

    def spans(self, read: Reading, wanted: NDArray[Any]) -> tuple[Positions, Positions]:
        """Where in the order the entries with each wanted value begin, and how many they are: both `places` for little
        more than one, since most have all of theirs in one block."""
        wanted = wanted.astype(self._heads.dtype, copy=False)
        if len(wanted) > FEW:
            first = self.places(read, wanted, "left")
            return first, self.places(read, wanted, "right") - first
        begins, held, there = self._block(read, wanted, "left")
        first = begins + np.count_nonzero(there & (held < wanted[:, None]), axis=1)
        last: Positions = begins + np.count_nonzero(there & (held <= wanted[:, None]), axis=1)
        further = np.flatnonzero(last == begins + BLOCK)
        if len(further):
            last[further] = self.places(read, wanted[further], "right")
        return first, last - first

    def _block(
        self, read: Reading, wanted: NDArray[Any], side: Literal["left", "right"]
    ) -> tuple[Positions, NDArray[Any], NDArray[np.bool_]]:
        """Where the block of each wanted value begins; (n_wanted, 16) what stands in it, and whether anything does."""
        begins: Positions = np.maximum(np.searchsorted(self._heads, wanted, side=side) - 1, 0) * BLOCK
        inside = begins[:, None] + _INSIDE
        return begins, read(self._order.at(np.minimum(inside, len(self._order) - 1))), inside < len(self._order)


_INSIDE = np.arange(BLOCK)


def entries_of(pointers: Ascending, rows: NDArray[np.integer]) -> tuple[Positions, Positions]:
    """The entries of some rows: (index into `rows`, position of the entry), row after row."""
    return laid_out(*pointers.spans(rows))


def entries_between(sorted_rows: Ascending, wanted: NDArray[np.integer]) -> tuple[Positions, Positions]:
    """`entries_of` for few entries over many rows: `sorted_rows` holds the row of each entry."""
    first = sorted_rows.places(wanted)
    return laid_out(first, sorted_rows.places(wanted + 1) - first)


def laid_out(starts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """Spans laid out one after the other: (index of the span, position in it counted from its start)."""
    which = np.repeat(np.arange(len(starts), dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    return which, np.arange(len(which), dtype=np.int64) + np.repeat(starts - before, counts)
