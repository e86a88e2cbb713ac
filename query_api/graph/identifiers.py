"""Ids of 128 bits in two columns, found again by their first half."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.graph.arrays.rows import Sorting
from query_api.graph.columns import Keys, halves

MISSING = -1


class Identifiers:
    """Ids in an order of one's own choosing, 18 to 20 bytes each. Lookups are vectorised; unknown ids give MISSING."""

    def __init__(self, both_halves: Keys) -> None:
        """`both_halves` is (n, 2) uint64."""
        self.firsts = np.ascontiguousarray(both_halves[:, 0])
        self.seconds = np.ascontiguousarray(both_halves[:, 1])
        self._sorting = Sorting(self.firsts)

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def nbytes(self) -> int:
        return self.firsts.nbytes + self.seconds.nbytes + self._sorting.nbytes

    def positions(self, keys: Keys) -> NDArray[np.int64]:
        """Where the ids with these first halves stand."""
        return find(self.firsts, keys, self._sorting)

    def positions_of(self, identifiers: Sequence[str]) -> NDArray[np.int64]:
        """Where these ids of 32 hex digits stand. Raises ValueError for another id."""
        wanted = halves(identifiers)
        found = self.positions(wanted[:, 0])
        wrong = (found != MISSING) & (self.seconds[found] != wanted[:, 1]) if len(self) else found != MISSING
        found[wrong] = MISSING
        return found

    def text(self, position: int) -> str:
        return f"{int(self.firsts[position]):016x}{int(self.seconds[position]):016x}"

    def texts(self, positions: NDArray[np.integer]) -> list[str]:
        digits = np.column_stack((self.firsts[positions], self.seconds[positions])).astype(">u8").tobytes().hex()
        return [digits[start : start + 32] for start in range(0, len(digits), 32)]


def find(keys: Keys, wanted: Keys, sorting: Sorting | None = None) -> NDArray[np.int64]:
    """Positions of `wanted` in `keys` (sorted, or sorted by `sorting`); MISSING where a key is not there."""
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), MISSING, dtype=np.int64)
    if sorting is None:
        positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    else:
        positions = sorting.at(np.minimum(sorting.places(keys.__getitem__, wanted, "left"), len(keys) - 1))
    return np.where(keys[positions] == wanted, positions, MISSING)


def find_all(keys: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Positions of very many keys among some that are in any order, by hashing; MISSING where a key is not there."""
    positions = pc.index_in(pa.array(wanted), value_set=pa.array(keys))
    found: NDArray[np.int64] = positions.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
