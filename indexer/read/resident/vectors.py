"""Exact vector search in memory: all chunks looked through in 8 bits, those that may be the best compared in full."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.layers import Layer, Layers, best_rows
from indexer.read.resident.narrow import Narrow
from indexer.read.resident.scope import EVERYTHING, Runs, Scope, ScopeRows
from schemas.ids import DocumentKey

MOST_RUNS = 256  # runs of rows that are multiplied each by itself; with more, all rows are

NOWHERE = (0, 0)
_DECIMALS = 6
_MARGIN = 1e-5  # far above what rounding moves


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
        return Vectors(self.matrix[rows], self.passage_ids[rows], self.bounds[rows], self.narrow.kept(rows))

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
        if limit < 1 or not length or not np.isfinite(length):
            return []
        unit = vector.astype(np.float64) / length
        asked = Narrow.of(unit[None, :])
        found = [
            chunk
            for layer, runs in zip(self.layers.stack, self._rows.runs(scope), strict=True)
            for chunk in _nearest(layer, runs, unit, asked, limit)
        ]
        return sorted(found, key=lambda chunk: (-chunk.score, chunk.id))[:limit]

    def prepared_as(self, before: "VectorIndex") -> "VectorIndex":
        """This, with all made ahead that the searches of an earlier state would else wait for."""
        for layer in self.layers.stack if before.asked else ():
            _ = layer.content.spans, layer.names.spans, layer.names.collections
        for scope in before.asked:
            self._rows.runs(scope)
        return self

    @property
    def asked(self) -> list[Scope]:
        """The whole collections that were searched last."""
        return self._rows.known()

    def cosines(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        """(n_passages,) the highest cosine of each passage's chunks, as `search` gives it; NaN for one without any."""
        unit = vector.astype(np.float64) / (float(np.linalg.norm(vector)) or 1.0)
        found = np.full(len(passage_ids), np.nan)
        for layer in self.layers.stack:
            spans = layer.content.spans
            bounds = chain.from_iterable(map(spans.get, passage_ids, repeat(NOWHERE)))
            starts, ends = np.fromiter(bounds, dtype=np.intp, count=2 * len(passage_ids)).reshape(-1, 2).T
            which = np.flatnonzero(starts < ends)
            if not len(which):
                continue
            starts, ends = starts[which], ends[which]
            live = layer.live[starts]
            which, starts, ends = which[live], starts[live], ends[live]
            if len(which):
                firsts = np.cumsum(ends - starts) - (ends - starts)
                rows = np.repeat(starts - firsts, ends - starts) + np.arange(firsts[-1] + ends[-1] - starts[-1])
                cosines = _cosines(layer.content.matrix[rows], unit)
                found[which] = np.maximum.reduceat(cosines, firsts)
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


def _nearest(
    layer: Layer[Vectors], runs: Runs, unit: NDArray[np.float64], asked: Narrow, limit: int
) -> Iterator[NearChunk]:
    """Found by what may be among the best, told in full."""
    roughly = _products(layer.content.narrow, runs, asked)
    best = _rows_at(runs, best_rows(roughly, limit, 2 * layer.content.narrow.off_by(asked) + _MARGIN))
    cosines = _cosines(layer.content.matrix[best], unit)
    first = best_rows(cosines, limit)
    best, cosines = best[first], cosines[first]
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


def _products(narrow: Narrow, runs: Runs, asked: Narrow) -> NDArray[np.float64]:
    """The rough products of the rows in the runs, one run after the other."""
    if len(runs) > MOST_RUNS:
        all_rows = narrow.products(asked, 0, len(narrow.rows))
        return np.concatenate([all_rows[start:end] for start, end in runs])
    products = [narrow.products(asked, start, end) for start, end in runs]
    return products[0] if len(products) == 1 else np.concatenate([np.zeros(0), *products])


def _rows_at(runs: Runs, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows at these places of the runs, laid one after the other."""
    starts = np.array([start for start, _ in runs], dtype=np.intp)
    before = np.cumsum([0, *(end - start for start, end in runs)])
    run = np.searchsorted(before, places, side="right") - 1
    rows: NDArray[np.intp] = places - before[run] + starts[run] if len(places) else places
    return rows
