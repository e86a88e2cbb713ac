"""The chunks nearest to a question: all looked through in 8 bits, those that may be the best compared in full.

That misses nothing.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.layers import Layer, best_rows
from indexer.read.resident.narrow import Narrow
from indexer.read.resident.scope import Runs
from indexer.read.resident.vectors import Vectors, exact_cosines
from schemas.ids import DocumentKey

MOST_RUNS = 256  # runs of rows that are multiplied each by itself; with more, all rows are

_MARGIN = 1e-5  # far above what rounding moves


class NearChunk(NamedTuple):
    score: float
    id: str
    passage_id: str
    key: DocumentKey


def nearest(in_scope: Sequence[tuple[Layer[Vectors], Runs]], unit: NDArray[np.float64], limit: int) -> list[NearChunk]:
    """The `limit` of these rows with the highest cosine, best first, ties by id; `unit` is (dimension,) of length 1."""
    narrow_unit = Narrow.of(unit[None, :])
    found = [chunk for layer, runs in in_scope for chunk in _nearest(layer, runs, unit, narrow_unit, limit)]
    return sorted(found, key=lambda chunk: (-chunk.score, chunk.id))[:limit]


def _nearest(
    layer: Layer[Vectors], runs: Runs, unit: NDArray[np.float64], narrow_unit: Narrow, limit: int
) -> Iterator[NearChunk]:
    """Of the rows in the runs: those whose rough product may be among the best, by their full vectors."""
    narrow = layer.content.narrow
    roughly = _products(narrow, narrow_unit, runs)
    may_be = _rows_at(runs, best_rows(roughly, limit, 2 * narrow.off_by(narrow_unit) + _MARGIN))
    cosines = exact_cosines(layer.content.matrix[may_be], unit)
    first = best_rows(cosines, limit)
    rows = may_be[first]
    names = zip(
        layer.names.ids[rows].tolist(),
        layer.content.passage_ids[rows].tolist(),
        layer.names.keys[rows].tolist(),
        strict=True,
    )
    for score, (identifier, passage_id, key) in zip(cosines[first].tolist(), names, strict=True):
        yield NearChunk(score, identifier, passage_id, key)


def _products(narrow: Narrow, narrow_unit: Narrow, runs: Runs) -> NDArray[np.float64]:
    """The rough products of the rows in the runs, one run after the other."""
    if len(runs) > MOST_RUNS:
        of_all = narrow.products(narrow_unit, 0, len(narrow.rows))
        return np.concatenate([of_all[start:end] for start, end in runs])
    of_runs = [narrow.products(narrow_unit, start, end) for start, end in runs]
    return of_runs[0] if len(of_runs) == 1 else np.concatenate([np.zeros(0), *of_runs])


def _rows_at(runs: Runs, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows at these places of the runs, laid one after the other."""
    if len(runs) == 1:
        return places + runs[0][0]
    starts = np.array([start for start, _ in runs], dtype=np.intp)
    before = np.cumsum([0, *(end - start for start, end in runs)])
    run = np.searchsorted(before, places, side="right") - 1
    rows: NDArray[np.intp] = places - before[run] + starts[run] if len(places) else places
    return rows
