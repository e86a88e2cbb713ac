"""The vectors of chunks, in the two widths that they are searched by."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.narrow import Narrow

DECIMALS = 6


@dataclass(frozen=True)
class Vectors:
    """The vectors of chunks, the passages these are in, and where."""

    matrix: NDArray[np.float32]  # (n_rows, dimension), L2-normalised
    passage_ids: NDArray[np.object_]  # (n_rows,) str
    bounds: NDArray[np.int32]  # (n_rows, 3) ordinal, first character, the one behind the last
    narrow: Narrow

    @classmethod
    def of(cls, matrix: NDArray[np.float32], passage_ids: NDArray[np.object_], bounds: NDArray[np.int32]) -> "Vectors":
        return cls(matrix, passage_ids, bounds, Narrow.of(matrix))

    def kept(self, rows: NDArray[np.bool_]) -> "Vectors":
        if rows.all():
            return self
        return Vectors(
            self.matrix[rows],
            self.passage_ids[rows],
            self.bounds[rows],
            self.narrow.kept(rows),
        )

    def followed_by(self, other: "Vectors") -> "Vectors":
        return Vectors(
            np.concatenate([self.matrix, other.matrix]),
            np.concatenate([self.passage_ids, other.passage_ids]),
            np.concatenate([self.bounds, other.bounds]),
            self.narrow.followed_by(other.narrow),
        )

    @cached_property
    def spans(self) -> Mapping[str, tuple[int, int]]:
        """The first row of each passage, and the one behind its last: chunks of a passage lie side by side."""
        spans, start = {}, 0
        for passage_id, group in groupby(self.passage_ids.tolist()):
            end = start + sum(1 for _ in group)
            spans[passage_id] = start, end
            start = end
        return spans


class BoundChunk(NamedTuple):
    """A chunk by its place in its document: `start` and `end` count characters."""

    id: str
    ordinal: int
    start: int
    end: int


def exact_cosines(matrix: NDArray[np.float32], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Summed in double precision and rounded, so that no order of summing shows."""
    return np.round(matrix.astype(np.float64) @ unit, DECIMALS)
