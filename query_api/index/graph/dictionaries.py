"""Dictionary-encoded columns of strings, by value or by word; integers in the smallest type that holds them."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.index.graph.csr import Indices, entries_of, row_pointers
from query_api.index.strings import Strings

SmallIntegers = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class EncodedStrings:
    """A column of few distinct strings: each once, and a code for each row."""

    values: tuple[str, ...]
    codes: SmallIntegers

    @classmethod
    def build(cls, texts: pa.Array, order: NDArray[np.int64]) -> Self:
        """The texts of these rows, in this order."""
        encoded = pc.dictionary_encode(texts)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return cls(tuple(encoded.dictionary.to_pylist()), smallest_integers(codes[order]))

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
class WordEncodedStrings:
    """A column of strings whose words recur: each word once, and the codes of each row's words."""

    words: Strings
    pointers: Indices  # of rows
    codes: SmallIntegers

    @classmethod
    def build(cls, texts: pa.Array) -> Self:
        words = pc.split_pattern(texts, " ")
        encoded = pc.dictionary_encode(pc.list_flatten(words))
        counts = pc.list_value_length(words).to_numpy(zero_copy_only=False)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return cls(Strings(encoded.dictionary), row_pointers(counts), smallest_integers(codes))

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


def smallest_integers(numbers: NDArray[np.integer[Any]]) -> SmallIntegers:
    """Raises ValueError for a negative one."""
    if (smallest := int(numbers.min(initial=0))) < 0:
        raise ValueError(f"Counts and numbers of sentences are 0 or more, not {smallest}.")
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
