"""Vectors in a quarter of their size, to look through all of them before a few are compared exactly.

Each component is rounded to a whole number of steps from -127 to 127, the step chosen for each vector. A product of
two rounded vectors is off by no more than the lengths of what was rounded away allow (Cauchy, Schwarz), so what may be
among the best is known for certain: nothing is missed, unlike by an index of cells or neighbours.
"""

from dataclasses import dataclass

import numkong
import numpy as np
from numpy.typing import NDArray

LARGEST = 127
AT_ONCE = 8_192  # rows, so that narrowing a large table takes little memory


@dataclass(frozen=True)
class Narrow:
    """Rows in 8 bits: row i is `rows[i] x steps[i]`, off by at most `error` in length."""

    rows: NDArray[np.int8]  # (n_rows, dimension)
    steps: NDArray[np.float64]  # (n_rows,)
    error: float

    @classmethod
    def of(cls, matrix: NDArray[np.floating]) -> "Narrow":
        """`matrix` is (n_rows, dimension)."""
        rows = np.empty(matrix.shape, dtype=np.int8)
        steps = np.empty(len(matrix), dtype=np.float64)
        error = 0.0
        for start in range(0, len(matrix), AT_ONCE):
            here = slice(start, start + AT_ONCE)
            largest = np.abs(matrix[here]).max(axis=1)
            steps[here] = np.where(largest > 0, largest, 1.0) / LARGEST
            rows[here] = np.rint(matrix[here] / steps[here, None])
            lost = matrix[here] - rows[here] * steps[here, None]
            error = max(error, float(np.sqrt(np.square(lost).sum(axis=1).max())))
        return cls(rows, steps, error)

    def kept(self, rows: NDArray[np.bool_]) -> "Narrow":
        return Narrow(self.rows[rows], self.steps[rows], self.error)

    def followed_by(self, other: "Narrow") -> "Narrow":
        return Narrow(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.steps, other.steps]),
            max(self.error, other.error),
        )

    def products(self, other: "Narrow", start: int, end: int) -> NDArray[np.float64]:
        """(end - start,) of these rows with the only row of `other`, off by at most `off_by(other)`."""
        if start == end:
            return np.zeros(0, dtype=np.float64)
        whole = np.asarray(numkong.cdist(other.rows, self.rows[start:end], "dot"))
        products: NDArray[np.float64] = whole.reshape(-1) * (self.steps[start:end] * other.steps[0])
        return products

    def off_by(self, other: "Narrow") -> float:
        """How far a product of unit vectors may be off: |u·x - v·y| <= |u·(x - y)| + |(u - v)·y|."""
        return self.error + other.error * (1.0 + self.error)
