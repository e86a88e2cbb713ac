"""A column of few different weights."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.graph.arrays.packed import Packed


@dataclass(frozen=True, slots=True)
class Weights:
    """Each different weight once, and for each row which of them it has."""

    values: NDArray[np.float32]
    codes: Packed

    @classmethod
    def build(cls, weights: NDArray[np.floating[Any]]) -> Self:
        encoded = pc.dictionary_encode(pa.array(weights.astype(np.float32)))
        return cls(encoded.dictionary.to_numpy(), Packed(encoded.indices.to_numpy()))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.codes.nbytes

    def at(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        return self.values[self.codes.at(rows)]
