"""Dictionary encoding: columns of strings whose values or words recur; numbers in no more bytes than they need."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.index.graph.csr import Indices, entries_of, row_pointers
from query_api.index.strings import Strings

Counts = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of few different strings: each once, and for each row which of them it has."""

    values: tuple[str, ...]
    codes: Counts

    @classmethod
    def build(cls, texts: pa.Array, order: NDArray[np.int64]) -> Self:
        """The texts of these rows, in this order."""
        encoded = pc.dictionary_encode(texts)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return cls(tuple(encoded.dictionary.to_pylist()), narrow(codes[order]))

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes

    def __getitem__(self, row: int) -> str:
        return self.values[int(self.codes[row])]

    def of(self, rows: NDArray[np.integer[Any]]) -> list[str]:
        return [self.values[code] for code in self.codes[rows].tolist()]

    def texts(self, rows: NDArray[np.integer[Any]]) -> pa.Array:
        return pa.array(self.values, pa.string()).take(pa.array(self.codes[rows]))


@dataclass(frozen=True, slots=True)
class Phrases:
    """A column of different strings of words that recur: each word once, and for each row which words it has."""

    words: Strings
    pointers: Indices  # of rows
    codes: Counts

    @classmethod
    def build(cls, texts: pa.Array) -> Self:
        words = pc.split_pattern(texts, " ")
        encoded = pc.dictionary_encode(pc.list_flatten(words))
        counts = pc.list_value_length(words).to_numpy(zero_copy_only=False)
        return cls(
            Strings(encoded.dictionary), row_pointers(counts), narrow(encoded.indices.to_numpy(zero_copy_only=False))
        )

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self.pointers.nbytes + self.codes.nbytes

    def of(self, rows: NDArray[np.integer[Any]]) -> list[str]:
        _, entries = entries_of(self.pointers, rows)
        words = self.words.of(self.codes[entries].astype(np.int64))
        ends = np.cumsum(self.pointers[rows + 1] - self.pointers[rows]).tolist()
        return [" ".join(words[begin:end]) for begin, end in pairwise([0, *ends])]

    def texts(self, rows: NDArray[np.integer[Any]]) -> pa.Array:
        return pa.array(self.of(rows), pa.string())


def narrow(numbers: NDArray[np.integer[Any]]) -> Counts:
    """The numbers in the smallest type that holds them all. Raises ValueError for a negative one."""
    if (smallest := int(numbers.min(initial=0))) < 0:
        raise ValueError(f"Counts and numbers of sentences are 0 or more, not {smallest}.")
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
