"""Vectors by the signs of their components, to leave out most of what is far from a question before all is multiplied.

Of two vectors the share of components whose signs differ grows with the angle between them: angle / π for components
along random directions (Charikar 2002, section 3), and nearly so for those of sentence embeddings.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WORD = 64  # bits
AT_ONCE = 8_192  # rows, so that reading a large table takes little memory
SUMMED_IN_BYTES = 3  # words: so many differences fit into 8 bits


@dataclass(frozen=True)
class Signs:
    """One bit a component, whether it is above 0, in words of 64 components; word by word, as they are compared."""

    words: NDArray[np.uint64]  # (n_words, n_rows)

    @classmethod
    def of(cls, matrix: NDArray[np.floating]) -> "Signs":
        """`matrix` is (n_rows, dimension)."""
        rows, dimension = matrix.shape
        words = np.empty((-(-dimension // WORD), rows), dtype=np.uint64)
        for start in range(0, rows, AT_ONCE):
            bits = np.packbits(matrix[start : start + AT_ONCE] > 0, axis=1)
            whole = np.pad(bits, ((0, 0), (0, len(words) * WORD // 8 - bits.shape[1])))
            words[:, start : start + AT_ONCE] = whole.view(np.uint64).T
        return cls(words)

    def kept(self, rows: NDArray[np.bool_]) -> "Signs":
        return Signs(self.words[:, rows])

    def followed_by(self, other: "Signs") -> "Signs":
        return Signs(np.concatenate([self.words, other.words], axis=1))

    def distances(self, other: "Signs", start: int, end: int) -> NDArray[np.uint16]:
        """(end - start,) in how many components the signs of these rows differ from those of the only row of `other`
        (Hamming distance)."""
        differing = np.zeros(end - start, dtype=np.uint16)
        for first in range(0, len(self.words), SUMMED_IN_BYTES):
            some = slice(first, first + SUMMED_IN_BYTES)
            pairs = zip(self.words[some, start:end], other.words[some, 0], strict=True)
            differing += sum((np.bitwise_count(word ^ asked) for word, asked in pairs), start=np.uint8(0))
        return differing
