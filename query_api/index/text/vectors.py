"""Vector search in memory: an exact scan in two steps, an int8 shortlist and exact rescoring.

Each component is quantised to a whole number of steps from -127 to 127, the step chosen for each vector. The error of a
product of two quantised vectors is bounded (Cauchy-Schwarz), so the shortlist holds every row that may be among the
best: nothing is missed, unlike by an approximate index.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import NamedTuple

import numkong
import numpy as np
from numpy.typing import NDArray

from query_api.index.text.text_segments import (
    EVERYTHING,
    Candidate,
    Columns,
    Runs,
    Scope,
    ScopeCache,
    Segment,
    Segments,
    group_spans,
    top_rows,
)

INT8_MAX = 127
BATCH_ROWS = 8_192  # quantised at once, so that a large table takes little memory
MAX_RUNS = 256  # runs of rows that are multiplied one by one; with more, all rows are
ROUNDING_MARGIN = 1e-5  # far above what rounding moves
DECIMALS = 6
SAMPLE_CHUNKS = 256  # which puts most standard deviations within 5 %
NO_ROWS = (0, 0)


@dataclass(frozen=True)
class Int8Vectors(Columns):
    """Quantised rows: row i is `rows[i] x steps[i]`, off by at most `error` in length."""

    rows: NDArray[np.int8]  # (n_rows, dimension)
    steps: NDArray[np.float64]  # (n_rows,)
    error: float

    @classmethod
    def quantise(cls, matrix: NDArray[np.floating]) -> "Int8Vectors":
        """`matrix` is (n_rows, dimension)."""
        rows = np.empty(matrix.shape, dtype=np.int8)
        steps = np.empty(len(matrix), dtype=np.float64)
        error = 0.0
        for start in range(0, len(matrix), BATCH_ROWS):
            batch = slice(start, start + BATCH_ROWS)
            largest = np.abs(matrix[batch]).max(axis=1)
            steps[batch] = np.where(largest > 0, largest, 1.0) / INT8_MAX
            rows[batch] = np.rint(matrix[batch] / steps[batch, None])
            lost = matrix[batch] - rows[batch] * steps[batch, None]
            error = max(error, float(np.sqrt(np.square(lost).sum(axis=1).max())))
        return cls(rows, steps, error)

    def filter(self, rows: NDArray[np.bool_]) -> "Int8Vectors":
        return Int8Vectors(self.rows[rows], self.steps[rows], self.error)

    def concat(self, other: "Int8Vectors") -> "Int8Vectors":
        return Int8Vectors(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.steps, other.steps]),
            max(self.error, other.error),
        )

    def products(self, query: "Int8Vectors", start: int, end: int) -> NDArray[np.float64]:
        """(end - start,) of these rows with the only row of `query`, off by at most `max_error(query)`."""
        if start == end:
            return np.zeros(0, dtype=np.float64)
        whole = np.asarray(numkong.cdist(query.rows, self.rows[start:end], "dot"))
        products: NDArray[np.float64] = whole.reshape(-1) * (self.steps[start:end] * query.steps[0])
        return products

    def max_error(self, query: "Int8Vectors") -> float:
        """Of a product of unit vectors: |u·x - v·y| <= |u·(x - y)| + |(u - v)·y|."""
        return self.error + query.error * (1.0 + self.error)


@dataclass(frozen=True)
class ChunkVectors(Columns):
    """The vectors of chunks, exact and quantised, the passages these are in, and where."""

    matrix: NDArray[np.float32]  # (n_rows, dimension), L2-normalised
    passage_ids: NDArray[np.object_]  # (n_rows,) str; chunks of a passage are adjacent
    bounds: NDArray[np.int32]  # (n_rows, 3) ordinal, first character, end
    int8: Int8Vectors

    @classmethod
    def from_matrix(
        cls, matrix: NDArray[np.float32], passage_ids: NDArray[np.object_], bounds: NDArray[np.int32]
    ) -> "ChunkVectors":
        return cls(matrix, passage_ids, bounds, Int8Vectors.quantise(matrix))

    def filter(self, rows: NDArray[np.bool_]) -> "ChunkVectors":
        if rows.all():
            return self
        return ChunkVectors(self.matrix[rows], self.passage_ids[rows], self.bounds[rows], self.int8.filter(rows))

    def concat(self, other: "ChunkVectors") -> "ChunkVectors":
        return ChunkVectors(
            np.concatenate([self.matrix, other.matrix]),
            np.concatenate([self.passage_ids, other.passage_ids]),
            np.concatenate([self.bounds, other.bounds]),
            self.int8.concat(other.int8),
        )

    @cached_property
    def spans(self) -> Mapping[str, tuple[int, int]]:
        """(first row, end) of each passage."""
        return group_spans(self.passage_ids.tolist())


class ChunkBounds(NamedTuple):
    """A chunk and its position in its document: `start` and `end` count characters."""

    id: str
    ordinal: int
    start: int
    end: int


class CosineSpread(NamedTuple):
    """The mean and the standard deviation of cosines to texts, whatever these say, and how many texts they are."""

    mean: float
    deviation: float
    texts: int

    def beside(self, others: "CosineSpread") -> "CosineSpread":
        """The means of both, each counted by its texts."""
        mean, deviation = np.average([self[:2], others[:2]], axis=0, weights=[self.texts, others.texts]).tolist()
        return CosineSpread(mean, deviation, self.texts + others.texts)


class VectorIndex:
    """Segments of vectors, searched. Immutable; thread-safe."""

    def __init__(self, segments: Segments[ChunkVectors]) -> None:
        self.segments = segments
        self._scopes = ScopeCache(segments)

    def search(self, vector: NDArray[np.float32], limit: int, scope: Scope = EVERYTHING) -> list[Candidate]:
        """The `limit` chunks with the highest cosine, best first, ties by id. `vector` is (dimension,) float32."""
        length = float(np.linalg.norm(vector))
        if limit < 1 or not length or not np.isfinite(length):
            return []
        unit = vector.astype(np.float64) / length
        quantised = Int8Vectors.quantise(unit[None, :])
        found = [
            chunk
            for segment, rows in zip(self.segments, self._scopes.rows(scope), strict=True)
            for chunk in _nearest(segment, rows.runs, unit, quantised, limit)
        ]
        return sorted(found, key=lambda chunk: (-chunk.score, chunk.chunk_id))[:limit]

    def cosines(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        """(n_passages,) the highest cosine of each passage's chunks, as `search` gives it; NaN for one without any."""
        unit = vector.astype(np.float64) / (float(np.linalg.norm(vector)) or 1.0)
        found = np.full(len(passage_ids), np.nan)
        for segment in self.segments:
            spans = chain.from_iterable(map(segment.columns.spans.get, passage_ids, repeat(NO_ROWS)))
            starts, ends = np.fromiter(spans, dtype=np.intp, count=2 * len(passage_ids)).reshape(-1, 2).T
            which = np.flatnonzero(starts < ends)
            which = which[segment.live[starts[which]]]
            if len(which):
                starts, ends = starts[which], ends[which]
                firsts = np.cumsum(ends - starts) - (ends - starts)
                rows = np.repeat(starts - firsts, ends - starts) + np.arange(firsts[-1] + ends[-1] - starts[-1])
                cosines = _exact_cosines(segment.columns.matrix[rows], unit)
                found[which] = np.maximum.reduceat(cosines, firsts)
        return found

    def cosine_spread(self, vector: NDArray[np.float32], collection: str | None) -> CosineSpread | None:
        """Of a sample of the collection's chunks, evenly spaced; None where there are none."""
        unit = vector.astype(np.float64) / (float(np.linalg.norm(vector)) or 1.0)
        of_segments = [rows.runs for rows in self._scopes.rows(Scope(collection))]
        total = sum(end - start for runs in of_segments for start, end in runs)
        step = max(1, total // SAMPLE_CHUNKS)
        cosines = [
            _exact_cosines(segment.columns.matrix[_rows_at(runs, np.arange(0, count, step))], unit)
            for segment, runs in zip(self.segments, of_segments, strict=True)
            if (count := sum(end - start for start, end in runs))
        ]
        if not cosines:
            return None
        sample = np.concatenate(cosines)
        return CosineSpread(float(sample.mean()), float(sample.std()), len(sample))

    def chunks_of(self, passage_id: str) -> list[ChunkBounds]:
        """The live chunks of a passage."""
        for segment in self.segments:
            start, end = segment.columns.spans.get(passage_id, NO_ROWS)
            if start < end and segment.live[start]:
                ids, bounds = segment.keys.ids[start:end].tolist(), segment.columns.bounds[start:end].tolist()
                return [ChunkBounds(identifier, *bound) for identifier, bound in zip(ids, bounds, strict=True)]
        return []

    def searched_collections(self) -> list[Scope]:
        """The most recently searched."""
        return self._scopes.cached_collections()

    def with_warm_caches_of(self, before: "VectorIndex") -> "VectorIndex":
        """This, with the lookup tables built that searches of an earlier state have used."""
        searched = before.searched_collections()
        for segment in self.segments if searched else ():
            _ = segment.columns.spans, segment.keys.spans, segment.keys.collections
        for scope in searched:
            _ = [rows.runs for rows in self._scopes.rows(scope)]
        return self


def _nearest(
    segment: Segment[ChunkVectors], runs: Runs, unit: NDArray[np.float64], quantised: Int8Vectors, limit: int
) -> Iterator[Candidate]:
    """Of the rows in the runs: those whose quantised product may be among the best, rescored exactly."""
    int8 = segment.columns.int8
    products = _products(int8, quantised, runs)
    margin = 2 * int8.max_error(quantised) + ROUNDING_MARGIN
    shortlist = _rows_at(runs, top_rows(products, limit, margin))
    cosines = _exact_cosines(segment.columns.matrix[shortlist], unit)
    best = top_rows(cosines, limit)
    rows = shortlist[best]
    keys, passage_ids = segment.keys, segment.columns.passage_ids
    columns = (passage_ids[rows], cosines[best], keys.documents[rows], keys.ids[rows])
    yield from map(Candidate, *(column.tolist() for column in columns))


def _products(int8: Int8Vectors, quantised: Int8Vectors, runs: Runs) -> NDArray[np.float64]:
    """The quantised products of the rows in the runs, one run after the other."""
    if len(runs) > MAX_RUNS:
        of_all = int8.products(quantised, 0, len(int8.rows))
        return np.concatenate([of_all[start:end] for start, end in runs])
    of_runs = [int8.products(quantised, start, end) for start, end in runs]
    return of_runs[0] if len(of_runs) == 1 else np.concatenate([np.zeros(0), *of_runs])


def _rows_at(runs: Runs, indices: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows at these indices into the concatenated runs."""
    if not len(indices):
        return indices
    starts, ends = np.array(runs, dtype=np.intp).T
    offsets = np.cumsum(ends - starts) - (ends - starts)
    run = np.searchsorted(offsets, indices, side="right") - 1
    rows: NDArray[np.intp] = indices - offsets[run] + starts[run]
    return rows


def _exact_cosines(matrix: NDArray[np.float32], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Summed in double precision and rounded, so that the order of summing does not show."""
    return np.round(matrix.astype(np.float64) @ unit, DECIMALS)
