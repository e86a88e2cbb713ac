"""Exact vector search in memory, for as many chunks as that is the fastest way for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.layers import Layer, Layers, best_rows
from indexer.read.resident.scope import EVERYTHING, Runs, Scope, ScopeRows
from schemas.ids import DocumentKey

MOST_RUNS = 256  # runs of rows that are multiplied each by itself; with more, all rows are

_DECIMALS = 6
_MARGIN = 1e-5  # far above what float32 sums of 1,000 products are wrong by, and above what rounding moves


@dataclass(frozen=True)
class Vectors:
    """The vectors of chunks, the passages these are in, and where."""

    matrix: NDArray[np.float32]  # (n_rows, dimension), L2-normalised
    passage_ids: NDArray[np.object_]  # (n_rows,) str
    bounds: NDArray[np.int32]  # (n_rows, 3) ordinal, first character, the one behind the last

    def kept(self, rows: NDArray[np.bool_]) -> "Vectors":
        return self if rows.all() else Vectors(self.matrix[rows], self.passage_ids[rows], self.bounds[rows])

    def followed_by(self, other: "Vectors") -> "Vectors":
        return Vectors(
            np.concatenate([self.matrix, other.matrix]),
            np.concatenate([self.passage_ids, other.passage_ids]),
            np.concatenate([self.bounds, other.bounds]),
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


class NearChunk(NamedTuple):
    score: float
    id: str
    passage_id: str
    key: DocumentKey


class BoundChunk(NamedTuple):
    """A chunk by its place in its document: `start` and `end` count characters."""

    id: str
    ordinal: int
    start: int
    end: int


class VectorIndex:
    """Layers of vectors, searched. Immutable; safe to use from several threads."""

    def __init__(self, layers: Layers[Vectors]) -> None:
        self.layers = layers
        self._rows = ScopeRows(layers.stack)

    def search(self, vector: NDArray[np.float32], limit: int, scope: Scope = EVERYTHING) -> list[NearChunk]:
        """The `limit` chunks with the highest cosine, best first, ties by id. `vector` is (dimension,) float32."""
        length = float(np.linalg.norm(vector))
        if limit < 1 or not length:
            return []
        unit = vector.astype(np.float64) / length
        found = [
            chunk
            for layer, runs in zip(self.layers.stack, self._rows.runs(scope), strict=True)
            for chunk in _nearest(layer, runs, unit, limit)
        ]
        return sorted(found, key=lambda chunk: (-chunk.score, chunk.id))[:limit]

    def cosines(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        """(n_passages,) the highest cosine of each passage's chunks, as `search` gives it; NaN for one without any."""
        unit = vector.astype(np.float64) / (float(np.linalg.norm(vector)) or 1.0)
        found = np.full(len(passage_ids), np.nan)
        for layer in self.layers.stack:
            spans = layer.content.spans
            held = [(at, spans[name]) for at, name in enumerate(passage_ids) if name in spans]
            held = [(at, span) for at, span in held if layer.live[span[0]]]
            if held:
                rows = np.concatenate([np.arange(*span) for _, span in held])
                firsts = np.cumsum([0, *(end - start for _, (start, end) in held[:-1])])
                cosines = _cosines(layer.content.matrix[rows], unit)
                found[[at for at, _ in held]] = np.maximum.reduceat(cosines, firsts)
        return found

    def chunks_of(self, passage_id: str) -> list[BoundChunk]:
        """The live chunks of a passage."""
        found = []
        for layer in self.layers.stack:
            start, end = layer.content.spans.get(passage_id, (0, 0))
            if start < end and layer.live[start]:
                places = zip(layer.names.ids[start:end].tolist(), layer.content.bounds[start:end].tolist(), strict=True)
                found += [BoundChunk(identifier, *place) for identifier, place in places]
        return found

    def rows_in(self, scope: Scope) -> int:
        """How many chunks a search of this scope compares."""
        return sum(end - start for runs in self._rows.runs(scope) for start, end in runs)


def _nearest(layer: Layer[Vectors], runs: Runs, unit: NDArray[np.float64], limit: int) -> Iterator[NearChunk]:
    """Found in single precision, whose last bits depend on where a row lies in memory; told in double."""
    rows, roughly = _products(layer.content.matrix, runs, unit.astype(np.float32))
    best = rows[best_rows(roughly, limit, _MARGIN)]
    cosines = _cosines(layer.content.matrix[best], unit)
    names = zip(
        layer.names.ids[best].tolist(),
        layer.content.passage_ids[best].tolist(),
        layer.names.keys[best].tolist(),
        strict=True,
    )
    for score, (identifier, passage_id, key) in zip(cosines.tolist(), names, strict=True):
        yield NearChunk(score, identifier, passage_id, key)


def _cosines(matrix: NDArray[np.float32], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Summed in double precision and rounded, so that no order of summing shows."""
    return np.round(matrix.astype(np.float64) @ unit, _DECIMALS)


def _products(
    matrix: NDArray[np.float32], runs: Runs, unit: NDArray[np.float32]
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """(the rows in the runs, their products); rows that lie together are taken together."""
    rows = np.concatenate([np.arange(*run) for run in runs]) if runs else np.zeros(0, dtype=np.intp)
    if len(runs) > MOST_RUNS:
        return rows, (matrix @ unit)[rows]
    products = np.empty(len(rows), dtype=np.float32)
    at = 0
    for start, end in runs:
        np.matmul(matrix[start:end], unit, out=products[at : at + end - start])
        at += end - start
    return rows, products
