"""Compact columns: compressed sparse rows (Saad 2003, section 3.4), and dictionary-encoded strings.

Entries are sorted by row; pointers say where each row begins.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.index.graph.identifiers import MISSING, find
from query_api.index.strings import Strings

Indices = NDArray[np.int32]
Positions = NDArray[np.int64]


def row_pointers(counts: NDArray[np.integer[Any]]) -> Indices:
    """(n_rows + 1,): of rows with so many entries, those of row r are at `pointers[r]` to `pointers[r + 1]`."""
    pointers = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=pointers[1:])
    return pointers


def entries_of(pointers: Indices, rows: NDArray[np.integer[Any]]) -> tuple[Positions, Positions]:
    """(index into `rows`, position) of every entry of these rows, row after row."""
    begins = pointers[rows]
    counts = pointers[rows + 1] - begins
    which = np.repeat(np.arange(len(begins)), counts)
    return which, np.arange(len(which)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)


@dataclass(frozen=True, slots=True)
class CompressedRows:
    """Row pointers of all rows; where most rows are empty, of the `filled` ones (doubly compressed: Buluç, Gilbert
    2008)."""

    pointers: Indices
    filled: Indices | None

    @classmethod
    def build(cls, rows: Positions, n_rows: int) -> Self:
        """`rows` is the row of each entry, ascending."""
        counts = np.bincount(rows, minlength=n_rows)
        filled = np.flatnonzero(counts)
        if 2 * len(filled) > n_rows:
            return cls(row_pointers(counts), None)
        return cls(row_pointers(counts[filled]), filled.astype(np.int32))

    @property
    def nbytes(self) -> int:
        return self.pointers.nbytes + (0 if self.filled is None else self.filled.nbytes)

    def entries(self, rows: NDArray[np.integer[Any]]) -> tuple[Positions, Positions]:
        """(index into `rows`, position) of every entry of these rows, row after row."""
        if self.filled is None:
            return entries_of(self.pointers, rows)
        numbers = find(self.filled, rows)
        known = np.flatnonzero(numbers != MISSING)
        which, positions = entries_of(self.pointers, numbers[known])
        return known[which], positions

    def of_entries(self, positions: NDArray[np.integer[Any]]) -> Positions:
        """The row of each of these entries."""
        rows = self.pointers.searchsorted(positions.astype(np.int32), "right") - 1
        return rows if self.filled is None else self.filled[rows].astype(np.int64)


class FoundEdges(NamedTuple):
    """Columns of equal length: index into the queried nodes, edge number, number of the node at the other end."""

    query_index: Positions
    edges: Positions
    others: Positions


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges in compressed sparse rows in both directions. They are numbered in the order of their sources; an array of
    a property holds that of edge i at place i."""

    by_source: CompressedRows
    targets: Indices
    by_target: CompressedRows
    order: Indices  # the edges in the order of their targets, those of one target by source

    @classmethod
    def build(cls, sources: Positions, targets: Positions, n_sources: int, n_targets: int) -> Self:
        """`sources` ascending."""
        order = np.argsort(targets, kind="stable")
        return cls(
            CompressedRows.build(sources, n_sources),
            targets.astype(np.int32),
            CompressedRows.build(targets[order], n_targets),
            order.astype(np.int32),
        )

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def nbytes(self) -> int:
        return self.by_source.nbytes + self.targets.nbytes + self.by_target.nbytes + self.order.nbytes

    def leaving(self, sources: NDArray[np.integer[Any]]) -> FoundEdges:
        """The edges that begin at these nodes, node after node."""
        which, edges = self.by_source.entries(sources)
        return FoundEdges(which, edges, self.targets[edges].astype(np.int64))

    def entering(self, targets: NDArray[np.integer[Any]]) -> FoundEdges:
        """The edges that end at these nodes, node after node."""
        which, positions = self.by_target.entries(targets)
        edges = self.order[positions].astype(np.int64)
        return FoundEdges(which, edges, self.by_source.of_entries(edges))

    def ends(self) -> tuple[Positions, Positions]:
        """The source and the target of every edge."""
        return self.by_source.of_entries(np.arange(len(self))), self.targets.astype(np.int64)


SmallIntegers = NDArray[np.unsignedinteger[Any]]
MAX_PYTHON_STRINGS = 1_000  # of a column; more are read from an Arrow array


@dataclass(frozen=True, slots=True)
class EncodedStrings:
    """A column of strings that recur: each once, and a code for each row."""

    values: tuple[str, ...] | Strings
    codes: SmallIntegers

    @classmethod
    def build(cls, texts: pa.Array, order: NDArray[np.int64]) -> Self:
        """The texts of these rows, in this order."""
        encoded = pc.dictionary_encode(texts)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        values = encoded.dictionary
        is_small = len(values) <= MAX_PYTHON_STRINGS
        return cls(tuple(values.to_pylist()) if is_small else Strings(values), smallest_integers(codes[order]))

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + (self.values.nbytes if isinstance(self.values, Strings) else 0)

    def distinct(self) -> pa.Array:
        """The strings of all rows, each once, and of rows that there were."""
        return self.values.array if isinstance(self.values, Strings) else pa.array(self.values, pa.string())

    def __getitem__(self, row: int) -> str:
        return self.values[int(self.codes[row])]

    def among(self, wanted: Iterable[str]) -> NDArray[np.bool_]:
        """Which rows have one of these strings."""
        known = pc.is_in(self.distinct(), value_set=pa.array(list(wanted), pa.string()))
        return np.isin(self.codes, np.flatnonzero(known.to_numpy(zero_copy_only=False)))

    def of(self, rows: NDArray[np.integer[Any]]) -> list[str]:
        return [self.values[code] for code in self.codes[rows].tolist()]

    def texts(self, rows: NDArray[np.integer[Any]]) -> pa.Array:
        return self.distinct().take(pa.array(self.codes[rows]))


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
