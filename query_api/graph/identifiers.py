"""Keys in an order of one's own choosing, found again; ids of 128 bits in two columns, found by their first half."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.graph.arrays.packed import Packed
from query_api.graph.columns import Keys, halves

MISSING = -1
BLOCK = 8  # keys behind each head of a `KeyOrder`
HEAD_BITS = np.uint64(32)


class KeyOrder:
    """The order of some keys, all different, which stay where they are, and the upper half of every eighth: looking
    one up reads eight, or more where an upper half occurs twice. Immutable.
    """

    __slots__ = ("_heads", "_order")

    def __init__(self, keys: Keys) -> None:
        order = np.argsort(keys)
        self._heads = (keys[order[::BLOCK]] >> HEAD_BITS).astype(np.uint32)
        self._heads[:1] = 0  # what is less than all is looked for there too
        self._order = Packed(np.append(order, np.repeat(order[:1], -len(order) % BLOCK)))

    @property
    def nbytes(self) -> int:
        return self._order.nbytes + self._heads.nbytes

    def find(self, keys: Keys, wanted: Keys) -> NDArray[np.int64]:
        """Positions of `wanted` in the keys this is the order of; MISSING where a key is not there."""
        if not len(keys) or not len(wanted):
            return np.full(len(wanted), MISSING, dtype=np.int64)
        heads = (wanted >> HEAD_BITS).astype(np.uint32)
        block = self._heads.searchsorted(heads, "right") - 1
        positions = self._order.eights(block)
        equal = keys[positions] == wanted[:, None]
        found: NDArray[np.int64] = positions[equal]
        if len(found) == len(wanted) and len(keys) >= BLOCK:
            return found  # in each row one, for no block holds a key twice
        found = np.where(equal, positions, MISSING).max(axis=1)
        before = np.flatnonzero((found == MISSING) & (self._heads[block] == heads) & (block > 0))
        if len(before):  # a head with the same upper half need not be the first one
            found[before] = self._find_before(keys, wanted[before], block[before] - 1)
        return found

    def _find_before(self, keys: Keys, wanted: Keys, block: NDArray[np.int64]) -> NDArray[np.int64]:
        """As `find`, for keys that stand in these blocks or before."""
        found = np.full(len(wanted), MISSING, dtype=np.int64)
        rows = np.arange(len(wanted))
        while len(rows):
            positions = self._order.eights(block)
            here = np.where(keys[positions] == wanted[rows, None], positions, MISSING).max(axis=1)
            found[rows] = here
            same = self._heads[block] == (wanted[rows] >> HEAD_BITS)
            further = np.flatnonzero((here == MISSING) & same & (block > 0))
            rows, block = rows[further], block[further] - 1
        return found


class Identifiers:
    """Ids in an order of one's own choosing, 18 to 20 bytes each. Lookups are vectorised; unknown ids give MISSING."""

    def __init__(self, both_halves: Keys) -> None:
        """`both_halves` is (n, 2) uint64."""
        self.firsts = np.ascontiguousarray(both_halves[:, 0])
        self.seconds = np.ascontiguousarray(both_halves[:, 1])
        self._order = KeyOrder(self.firsts)

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def nbytes(self) -> int:
        return self.firsts.nbytes + self.seconds.nbytes + self._order.nbytes

    def positions(self, keys: Keys) -> NDArray[np.int64]:
        """Where the ids with these first halves stand."""
        return self._order.find(self.firsts, keys)

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


def find(keys: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Positions of `wanted` in `keys`, which ascend; MISSING where a key is not there."""
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), MISSING, dtype=np.int64)
    positions = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    return np.where(keys[positions] == wanted, positions, MISSING)


def find_all(keys: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Positions of very many keys among some that are in any order, by hashing; MISSING where a key is not there."""
    positions = pc.index_in(pa.array(wanted), value_set=pa.array(keys))
    found: NDArray[np.int64] = positions.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
