"""Looking up many rows at once: which entries a row has, which entries have a value (Saad 2003, section 3.4)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from query_api.graph.arrays.packed import Ascending, Packed, Positions


@dataclass(frozen=True, slots=True)
class Entering:
    """The order of edges by the small numbers they lead to, looked up without a look at the edges themselves: in
    `numbers`, which are row pointers where these take less, else the targets in order.
    """

    order: Packed
    numbers: Ascending | NDArray[np.int32]

    @classmethod
    def of(cls, targets: Positions, n_targets: int) -> Self:
        order = np.argsort(targets, kind="stable")
        ordered = targets[order]
        dense = n_targets < 3 * len(targets)  # so the pointers are smaller: little more than a byte each
        return cls(Packed(order), Ascending.pointers(ordered, n_targets) if dense else ordered.astype(np.int32))

    @property
    def nbytes(self) -> int:
        return self.order.nbytes + self.numbers.nbytes

    def entries(self, wanted: NDArray[np.integer]) -> tuple[Positions, Positions]:
        """The edges that lead to these numbers: (index into `wanted`, edge)."""
        if isinstance(self.numbers, Ascending):
            which, places = entries_of(self.numbers, wanted)
        else:
            wanted = wanted.astype(np.int32)  # else all numbers are copied into the wider type
            first = self.numbers.searchsorted(wanted)
            which, places = laid_out(first, self.numbers.searchsorted(wanted, "right") - first)
        return which, self.order.at(places)


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
