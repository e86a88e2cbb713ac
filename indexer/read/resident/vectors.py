"""Exact vector search in memory, for as many chunks as that is the fastest way for."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.layers import Layer, Layers, best_rows
from indexer.read.resident.scope import EVERYTHING, Scope, ScopeRows
from schemas.ids import DocumentKey

_DECIMALS = 6
_MARGIN = 1e-5  # far above what float32 sums of 1,000 products are wrong by, and above what rounding moves


@dataclass(frozen=True)
class Vectors:
    """The vectors of chunks and the passages these are in."""

    matrix: NDArray[np.float32]  # (n_rows, dimension), L2-normalised
    passage_ids: NDArray[np.object_]  # (n_rows,) str

    def kept(self, rows: NDArray[np.bool_]) -> "Vectors":
        return self if rows.all() else Vectors(self.matrix[rows], self.passage_ids[rows])

    def followed_by(self, other: "Vectors") -> "Vectors":
        return Vectors(
            np.concatenate([self.matrix, other.matrix]), np.concatenate([self.passage_ids, other.passage_ids])
        )


class NearChunk(NamedTuple):
    score: float
    id: str
    passage_id: str
    key: DocumentKey


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
            for layer, mask in zip(self.layers.stack, self._rows.of(scope), strict=True)
            for chunk in _nearest(layer, mask, unit, limit)
        ]
        return sorted(found, key=lambda chunk: (-chunk.score, chunk.id))[:limit]

    @cached_property
    def rows(self) -> int:
        return self.layers.rows


def _nearest(
    layer: Layer[Vectors], searched: NDArray[np.bool_], unit: NDArray[np.float64], limit: int
) -> Iterator[NearChunk]:
    """Found in single precision, whose last bits depend on where a row lies in memory; told in double."""
    roughly = layer.content.matrix @ unit.astype(np.float32)
    roughly[~searched] = -np.inf
    best = best_rows(roughly, limit, _MARGIN)
    cosines = np.round((layer.content.matrix[best] * unit).sum(axis=1), _DECIMALS)
    names = zip(
        layer.names.ids[best].tolist(),
        layer.content.passage_ids[best].tolist(),
        layer.names.keys[best].tolist(),
        strict=True,
    )
    for score, (identifier, passage_id, key) in zip(cosines.tolist(), names, strict=True):
        yield NearChunk(score, identifier, passage_id, key)
