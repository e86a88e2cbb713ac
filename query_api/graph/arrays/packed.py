"""Columns of whole numbers in as few bits as they need, read by position without unpacking the rest.

`Packed` gives each number the bits of the largest; `Skewed` those of most, with the few larger ones aside; `Ascending`
a byte or two for how far it is above the last of every 16th, which is kept whole, and `Steep` a byte where that is
enough.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]

PADDING = 8  # bytes: the last number is read as part of a word of 64 bits
MOST_BITS = 57  # and so is one that begins at the eighth bit of a byte
EXCEPTION_BYTES = 12
BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS  # so many numbers have one head


class Packed:
    """Numbers from 0 to 2^57 - 1. Immutable."""

    __slots__ = ("_bytes", "_length", "_mask", "_of_eight", "_width", "_words")

    def __init__(self, numbers: NDArray[np.integer[Any]]) -> None:
        """Raises ValueError for a number that is negative or too large."""
        smallest, largest = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
        if smallest < 0 or largest.bit_length() > MOST_BITS:
            raise ValueError(f"Numbers from 0 to 2^{MOST_BITS} - 1 are packed, not {smallest} to {largest}.")
        self._width = largest.bit_length()
        self._length = len(numbers)
        self._mask = (1 << self._width) - 1
        self._of_eight = np.divmod(np.arange(8) * self._width, 8)
        self._bytes = np.concatenate((_packed(numbers, self._width), np.zeros(PADDING, dtype=np.uint8)))
        n_words = len(self._bytes) - PADDING + 1  # one begins at every byte
        self._words: NDArray[np.int64] = np.ndarray((n_words,), "<i8", self._bytes.data, strides=(1,))

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        return self._bytes.nbytes

    def __getitem__(self, position: int) -> int:
        begin = position * self._width
        return (int(self._words[begin >> 3]) >> (begin & 7)) & self._mask

    def at(self, positions: NDArray[np.integer[Any]]) -> Positions:
        """The numbers there, in the shape of `positions`, which are int64 and not negative."""
        begins = positions * self._width
        numbers: Positions = (self._words[begins >> 3] >> (begins & 7)) & self._mask
        return numbers

    def eights(self, blocks: NDArray[np.integer[Any]]) -> Positions:
        """(n, 8): numbers 8 b to 8 b + 7 of each block b, as `at` gives them, which takes longer."""
        begins, shifts = self._of_eight  # eight numbers fill as many bytes as each of them has bits
        numbers: Positions = (self._words[(blocks * self._width)[:, None] + begins] >> shifts) & self._mask
        return numbers

    def all(self) -> Positions:
        return self.at(np.arange(self._length))


class Skewed:
    """Numbers of which most are small: those that the bits do not hold stand aside. Immutable."""

    __slots__ = ("_large", "_packed", "_places", "_sign")

    def __init__(self, numbers: NDArray[np.integer[Any]]) -> None:
        """Not negative, as for `Packed`."""
        width = _cheapest_width(numbers)
        self._sign = (1 << width) - 1  # says that the number stands aside
        self._packed = Packed(np.minimum(numbers, self._sign))
        self._places = np.flatnonzero(numbers >= self._sign)
        self._large = numbers[self._places].astype(np.int32)

    def __len__(self) -> int:
        return len(self._packed)

    @property
    def nbytes(self) -> int:
        return self._packed.nbytes + self._places.nbytes + self._large.nbytes

    def at(self, positions: NDArray[np.integer[Any]]) -> Positions:
        """The numbers there; see `Packed.at`."""
        numbers = self._packed.at(positions)
        if len(self._places):
            aside = np.flatnonzero(numbers == self._sign)
            if len(aside):
                numbers[aside] = self._large[np.searchsorted(self._places, positions[aside])]
        return numbers

    def all(self) -> Positions:
        return self.at(np.arange(len(self)))


class Ascending:
    """Numbers that never fall, up to 2^31 - 1: the pointers of compressed sparse rows, say. Immutable."""

    __slots__ = ("_above", "_heads")

    def __init__(self, numbers: NDArray[np.integer[Any]]) -> None:
        """Raises ValueError where a number is below the one before."""
        if (numbers[1:] < numbers[:-1]).any():
            raise ValueError("Numbers that never fall are kept so, and these do.")
        self._heads = numbers[::BLOCK].astype(np.int32)
        above = numbers - np.repeat(self._heads, BLOCK)[: len(numbers)]
        self._above = above.astype(np.min_scalar_type(above.max(initial=0)))

    @classmethod
    def pointers(cls, rows: NDArray[np.integer[Any]], n_rows: int) -> Self:
        """As `row_pointers` gives them."""
        return cls(row_pointers(rows, n_rows))

    def __len__(self) -> int:
        return len(self._above)

    @property
    def nbytes(self) -> int:
        return self._heads.nbytes + self._above.nbytes

    def __getitem__(self, position: int) -> int:
        return int(self._heads[position >> BLOCK_BITS]) + int(self._above[position])

    def at(self, positions: NDArray[np.integer[Any]]) -> Positions:
        """The numbers there, in the shape of `positions`."""
        numbers: Positions = self._heads[positions >> BLOCK_BITS].astype(np.int64) + self._above[positions]
        return numbers

    def all(self) -> Positions:
        return self.at(np.arange(len(self)))

    def spans(self, rows: NDArray[np.integer[Any]]) -> tuple[Positions, Positions]:
        """Read as pointers: where the entries of these rows begin, and how many there are."""
        begins = self.at(rows)
        return begins, self.at(rows + 1) - begins

    def rows_of(self, entries: NDArray[np.integer[Any]]) -> Positions:
        """Read as pointers: the row of each entry."""
        return self.places(entries + 1) - 1

    def places(self, wanted: NDArray[np.integer[Any]]) -> Positions:
        """(n,) how many numbers are less than each of `wanted`, of shape (n,)."""
        if not len(self):
            return np.zeros(len(wanted), dtype=np.int64)
        block = np.maximum(self._heads.searchsorted(wanted.astype(np.int32)) - 1, 0)
        begins = block << BLOCK_BITS
        inside = begins[:, None] + _INSIDE
        less = self._above.take(inside, mode="clip") < (wanted - self._heads[block])[:, None]
        found: Positions = begins + less.sum(axis=1)
        return np.minimum(found, len(self), out=found)  # behind the end the last one counts again


class Steep:
    """Numbers that never fall and mostly rise slowly: a byte each, but for the blocks that rise by more. Immutable."""

    __slots__ = ("_above", "_heads", "_wide")

    def __init__(self, numbers: NDArray[np.integer[Any]]) -> None:
        """As for `Ascending`, which can also be searched."""
        blocks = np.append(numbers, np.repeat(numbers[-1:], -len(numbers) % BLOCK)).reshape(-1, BLOCK)
        above = blocks - blocks[:, :1]
        wide = np.flatnonzero(above[:, -1] > np.iinfo(np.uint8).max)
        self._heads: NDArray[np.int32] = blocks[:, 0].astype(np.int32)
        self._heads[wide] = -BLOCK * (1 + np.arange(len(wide)))  # where the block stands in `_wide`, from its end
        above[wide] = _INSIDE
        self._above: NDArray[np.uint8] = above.astype(np.uint8).reshape(-1)[: len(numbers)]
        self._wide: NDArray[np.int32] = blocks[wide[::-1]].astype(np.int32).reshape(-1)

    def __len__(self) -> int:
        return len(self._above)

    @property
    def nbytes(self) -> int:
        return self._heads.nbytes + self._above.nbytes + self._wide.nbytes

    def at(self, positions: NDArray[np.integer[Any]]) -> Positions:
        """The numbers there, in the shape of `positions`."""
        found: Positions = self._heads[positions >> BLOCK_BITS].astype(np.int64) + self._above[positions]
        wide = np.flatnonzero(found < 0)
        if len(wide):
            found[wide] = self._wide[found[wide]]
        return found

    def spans(self, rows: NDArray[np.integer[Any]]) -> tuple[Positions, Positions]:
        """Read as pointers: where the entries of these rows begin, and how many there are."""
        begins = self.at(rows)
        return begins, self.at(rows + 1) - begins


_INSIDE = np.arange(BLOCK)


def row_pointers(rows: NDArray[np.integer[Any]], n_rows: int) -> Positions:
    """(n_rows + 1,) where each row's entries begin, for entries sorted by row; entry i belongs to `rows[i]`."""
    begins = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=begins[1:])
    return begins


def _packed(numbers: NDArray[np.integer[Any]], width: int) -> NDArray[np.uint8]:
    """Eight numbers after the other fill `width` bytes, so a byte's bits come from the same few of every eight."""
    n_groups = -(-len(numbers) // 8)
    of_eight = np.zeros((n_groups, 8), dtype=np.uint64)
    of_eight.reshape(-1)[: len(numbers)] = numbers
    filled = np.zeros((n_groups, width), dtype=np.uint8)
    for at in range(8):
        first, shift = divmod(at * width, 8)
        shifted = of_eight[:, at] << np.uint64(shift)
        for byte in range(-(-(shift + width) // 8) if width else 0):
            filled[:, first + byte] |= (shifted >> np.uint64(8 * byte)).astype(np.uint8)
    return filled.reshape(-1)


def _cheapest_width(numbers: NDArray[np.integer[Any]]) -> int:
    """The bits a number for which the packed ones and those aside take the fewest bytes."""
    if not len(numbers):
        return 1
    bits = int(numbers.max()).bit_length() + 1
    up_to = np.cumsum(np.bincount(np.minimum(numbers, 1 << 16), minlength=1 << 16))

    def cost(width: int) -> float:
        aside = len(numbers) - int(up_to[min((1 << width) - 2, len(up_to) - 1)]) if width else len(numbers)
        return len(numbers) * width / 8 + aside * EXCEPTION_BYTES

    return min(range(1, bits + 1), key=cost)
