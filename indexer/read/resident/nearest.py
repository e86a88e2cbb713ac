"""The chunks nearest to a question: all looked through in 8 bits, those that may be the best compared in full.

That misses nothing. Of more than `ALL_COMPARED` chunks only those are looked through whose signs differ least from the
question's: so many for each that is asked for that next to none of the nearest is missed (docs/ranking.md, section 1).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.layers import Layer, best_rows
from indexer.read.resident.narrow import Narrow
from indexer.read.resident.scope import Runs
from indexer.read.resident.signs import Signs
from indexer.read.resident.vectors import Vectors, exact_cosines
from schemas.ids import DocumentKey

MOST_RUNS = 256  # runs of rows that are multiplied each by itself; with more, all rows are
ALL_COMPARED = 65_536  # chunks; of more, those that may be near by their signs
BY_SIGNS = 64  # chunks compared for each that is asked for
FIRST_ASKED, FURTHER = 64, 4  # so many of the nearest are found at once, then so many times more

_MARGIN = 1e-5  # far above what rounding moves

Number = TypeVar("Number", bound=np.generic)


class NearChunk(NamedTuple):
    score: float
    id: str
    passage_id: str
    key: DocumentKey


def nearest(in_scope: Sequence[tuple[Layer[Vectors], Runs]], unit: NDArray[np.float64], limit: int) -> list[NearChunk]:
    """The `limit` of these rows with the highest cosine, best first, ties by id; `unit` is (dimension,) of length 1.

    A longer list begins with the shorter one. Of more than `ALL_COMPARED` rows, what its signs hid from the first of
    the list comes behind these, whatever its cosine.
    """
    asked = _Asked.of(unit)
    if sum(end - start for _, runs in in_scope for start, end in runs) <= ALL_COMPARED:
        return _best([chunk for each in in_scope for chunk in _nearest(*each, asked, limit)], limit)
    distances = [_distances(layer.content.signs, runs, asked.signs) for layer, runs in in_scope]
    found: dict[str, NearChunk] = {}
    for size in _sizes(limit):
        farthest = _farthest(distances, BY_SIGNS * size)
        near = [
            chunk
            for (layer, runs), of_layer in zip(in_scope, distances, strict=True)
            for chunk in _nearest_of(layer, _rows_at(runs, np.flatnonzero(of_layer <= farthest)), asked, size)
        ]
        found |= {chunk.id: chunk for chunk in _best(near, size) if chunk.id not in found}
    return list(found.values())[:limit]


class _Asked(NamedTuple):
    """A question's vector, in three widths."""

    unit: NDArray[np.float64]  # (dimension,) of length 1
    narrow: Narrow
    signs: Signs

    @classmethod
    def of(cls, unit: NDArray[np.float64]) -> "_Asked":
        return cls(unit, Narrow.of(unit[None, :]), Signs.of(unit[None, :]))

    def margin(self, narrow: Narrow) -> float:
        """How far below the last of the best by rough products a row may be that is among the best."""
        return 2 * narrow.off_by(self.narrow) + _MARGIN


def _best(found: Iterable[NearChunk], limit: int) -> list[NearChunk]:
    return sorted(found, key=lambda chunk: (-chunk.score, chunk.id))[:limit]


def _sizes(limit: int) -> Iterator[int]:
    """How many of the nearest are found in turn, until there are `limit`; the same for every limit as far as it goes,
    so that lists agree."""
    size = FIRST_ASKED
    while size < limit:
        yield size
        size *= FURTHER
    yield size


def _farthest(distances: Sequence[NDArray[np.uint16]], count: int) -> int:
    """The distance within which so many rows are, or all."""
    every = np.concatenate(distances)
    return int(np.partition(every, count - 1)[count - 1] if count < len(every) else every.max())


def _nearest(layer: Layer[Vectors], runs: Runs, asked: _Asked, limit: int) -> Iterator[NearChunk]:
    """Of the rows in the runs: found by what may be among the best, told in full."""
    narrow = layer.content.narrow
    roughly = _by_runs(lambda start, end: narrow.products(asked.narrow, start, end), len(narrow.rows), runs)
    return _told(layer, _rows_at(runs, best_rows(roughly, limit, asked.margin(narrow))), asked, limit)


def _nearest_of(layer: Layer[Vectors], rows: NDArray[np.intp], asked: _Asked, limit: int) -> Iterator[NearChunk]:
    """Of these rows."""
    narrow = layer.content.narrow
    roughly = narrow.at(rows).products(asked.narrow, 0, len(rows))
    return _told(layer, rows[best_rows(roughly, limit, asked.margin(narrow))], asked, limit)


def _told(layer: Layer[Vectors], rows: NDArray[np.intp], asked: _Asked, limit: int) -> Iterator[NearChunk]:
    """The best of these rows, by their full vectors."""
    cosines = exact_cosines(layer.content.matrix[rows], asked.unit)
    first = best_rows(cosines, limit)
    rows, cosines = rows[first], cosines[first]
    names = zip(
        layer.names.ids[rows].tolist(),
        layer.content.passage_ids[rows].tolist(),
        layer.names.keys[rows].tolist(),
        strict=True,
    )
    for score, (identifier, passage_id, key) in zip(cosines.tolist(), names, strict=True):
        yield NearChunk(score, identifier, passage_id, key)


def _distances(signs: Signs, runs: Runs, asked: Signs) -> NDArray[np.uint16]:
    """How far the rows in the runs are by their signs, one run after the other."""
    return _by_runs(lambda start, end: signs.distances(asked, start, end), signs.words.shape[1], runs)


def _by_runs(of_rows: Callable[[int, int], NDArray[Number]], n_rows: int, runs: Runs) -> NDArray[Number]:
    """What `of_rows` (start, end) gives for the rows in the runs, one run after the other."""
    if len(runs) > MOST_RUNS:
        all_rows = of_rows(0, n_rows)
        return np.concatenate([all_rows[start:end] for start, end in runs])
    found = [of_rows(start, end) for start, end in runs] or [of_rows(0, 0)]
    return found[0] if len(found) == 1 else np.concatenate(found)


def _rows_at(runs: Runs, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows at these places of the runs, laid one after the other."""
    if len(runs) == 1:
        return places + runs[0][0]
    starts = np.array([start for start, _ in runs], dtype=np.intp)
    before = np.cumsum([0, *(end - start for start, end in runs)])
    run = np.searchsorted(before, places, side="right") - 1
    rows: NDArray[np.intp] = places - before[run] + starts[run] if len(places) else places
    return rows
