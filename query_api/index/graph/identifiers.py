"""Keys found by binary search; ids of 128 bits in two columns, found by their first half."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.index.graph.columns import Keys, halves

MISSING = -1
BLOCK = 16


class Names:
    """Keys of which several may be equal, in an order of one's own choosing, 16 bytes each. Immutable."""

    __slots__ = ("_order", "keys")

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._order = np.argsort(keys, kind="stable")  # in 64 bits, as NumPy's search wants it

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self._order.nbytes

    def find(self, wanted: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `wanted`, position in the keys) of every key that is wanted."""
        first = np.searchsorted(self.keys, wanted, "left", sorter=self._order)
        counts = np.searchsorted(self.keys, wanted, "right", sorter=self._order) - first
        which = np.repeat(np.arange(len(wanted)), counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return which, self._order[first[which] + within]


class Identifiers:
    """Ids in an order of one's own choosing, 20.5 bytes each. Lookups are vectorised; unknown ids give MISSING."""

    def __init__(self, both_halves: Keys) -> None:
        """`both_halves` is (n, 2) uint64."""
        self.firsts = np.ascontiguousarray(both_halves[:, 0])
        self.seconds = np.ascontiguousarray(both_halves[:, 1])
        self._order = np.argsort(self.firsts).astype(np.int32)
        self._heads = self.firsts[self._order[::BLOCK]]  # NumPy's own search by an order would copy it into 64 bits

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def nbytes(self) -> int:
        return self.firsts.nbytes + self.seconds.nbytes + self._order.nbytes + self._heads.nbytes

    def positions(self, keys: Keys) -> NDArray[np.int64]:
        """Where the ids with these first halves stand."""
        if not len(self):
            return np.full(len(keys), MISSING, dtype=np.int64)
        begins = np.maximum(self._heads.searchsorted(keys, "right") - 1, 0) * BLOCK
        block = self._order[np.minimum(begins[:, None] + np.arange(BLOCK), len(self) - 1)]
        found: NDArray[np.int64] = np.where(self.firsts[block] == keys[:, None], block, MISSING).max(axis=1)
        return found

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


def find(keys: NDArray[Any], wanted: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Positions of `wanted` in `keys`, which ascend; MISSING where a key is not there."""
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), MISSING, dtype=np.int64)
    wanted = wanted.astype(keys.dtype, copy=False)  # else NumPy copies all keys into the wider type
    positions = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    return np.where(keys[positions] == wanted, positions, MISSING)


def find_all(keys: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Positions of very many keys among some that are in any order, by hashing; MISSING where a key is not there."""
    positions = pc.index_in(pa.array(wanted), value_set=pa.array(keys))
    found: NDArray[np.int64] = positions.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
