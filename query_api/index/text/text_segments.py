"""Immutable segments of rows grouped by document, a tombstone bitmap for each, and the rows of a search's scope."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from cachetools import LRUCache, cachedmethod
from numpy.typing import NDArray

from query_api.index.lsm import settled
from schemas.ids import DocumentKey

MAX_CACHED_SCOPES = 16  # finding a scope's rows again costs .3 ms for 100,000 rows
FEW_DOCUMENTS = 256  # the rows of so few are not worth caching
BUCKETS = 64  # the maxima of so many buckets of scores give a first bound of the best


@dataclass(frozen=True)
class Scope:
    """What is searched: all collections for None, all documents for None."""

    collection: str | None = None
    documents: frozenset[DocumentKey] | None = None

    def allows(self, key: DocumentKey) -> bool:
        if self.collection is not None and key.collection != self.collection:
            return False
        return self.documents is None or key in self.documents

    def within(self, documents: Iterable[DocumentKey]) -> "Scope":
        """Of this scope, these documents only."""
        return Scope(self.collection, frozenset(key for key in documents if self.allows(key)))


EVERYTHING = Scope()


class Candidate(NamedTuple):
    """A passage that a search found. `chunk_id` is the chunk it was found by, where chunks are searched."""

    passage_id: str
    score: float
    key: DocumentKey
    chunk_id: str | None = None


class Columns(ABC):
    """What a segment's rows hold, in arrays by row."""

    @abstractmethod
    def filter(self, rows: NDArray[np.bool_]) -> Self:
        """Only these rows."""

    @abstractmethod
    def concat(self, other: Self) -> Self:
        """These rows, then the other's."""


C = TypeVar("C", bound=Columns)


@dataclass(frozen=True)
class RowKeys:
    """The id of each row and the document it belongs to; shared by every state that the segment is in."""

    ids: NDArray[np.object_]  # (n_rows,) str
    documents: NDArray[np.object_]  # (n_rows,) DocumentKey

    @cached_property
    def spans(self) -> Mapping[DocumentKey, tuple[int, int]]:
        """(first row, end) of each document."""
        return group_spans(self.documents.tolist())

    @cached_property
    def collections(self) -> tuple[Mapping[str, int], NDArray[np.int32]]:
        """A number for each collection, and (n_rows,) that of each row."""
        numbers: dict[str, int] = {}
        of_documents = [numbers.setdefault(key.collection, len(numbers)) for key in self.spans]
        rows = [end - start for start, end in self.spans.values()]
        return numbers, np.repeat(np.array(of_documents, dtype=np.int32), rows)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        return dict(zip(self.ids.tolist(), range(len(self.ids)), strict=True))

    def filter(self, rows: NDArray[np.bool_]) -> "RowKeys":
        return self if rows.all() else RowKeys(self.ids[rows], self.documents[rows])

    def concat(self, other: "RowKeys") -> "RowKeys":
        return RowKeys(np.concatenate([self.ids, other.ids]), np.concatenate([self.documents, other.documents]))


@dataclass(frozen=True)
class Segment(Generic[C]):
    """Rows of whole documents, those of one document adjacent; `live` is False for deleted rows."""

    keys: RowKeys
    columns: C
    live: NDArray[np.bool_]  # (n_rows,)

    @classmethod
    def create(cls, ids: Sequence[str], documents: Sequence[DocumentKey], columns: C) -> "Segment[C]":
        return cls(RowKeys(_objects(ids), _objects(documents)), columns, np.ones(len(ids), dtype=np.bool_))

    @property
    def size(self) -> int:
        return len(self.live)

    @cached_property
    def live_count(self) -> int:
        return int(np.count_nonzero(self.live))

    def span(self, document: DocumentKey) -> tuple[int, int] | None:
        """(first row, end) of a document that is live here."""
        span = self.keys.spans.get(document)
        return span if span is not None and self.live[span[0]] else None

    def without(self, documents: Iterable[DocumentKey]) -> "Segment[C]":
        spans = self.keys.spans
        deleted = [spans[key] for key in documents if key in spans]
        if not deleted:
            return self
        live = self.live.copy()
        for start, end in deleted:
            live[start:end] = False
        return replace(self, live=live)

    def compacted(self) -> "Segment[C]":
        """The live rows alone."""
        live = np.ones(self.live_count, dtype=np.bool_)
        return Segment(self.keys.filter(self.live), self.columns.filter(self.live), live)

    def merged(self, newer: "Segment[C]") -> "Segment[C]":
        """The live rows of both."""
        older, newer = self.compacted(), newer.compacted()
        live = np.concatenate([older.live, newer.live])
        return Segment(older.keys.concat(newer.keys), older.columns.concat(newer.columns), live)

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """(n_ids,) the live row of each id; -1 where there is none."""
        rows = np.fromiter(map(self.keys.row_of.get, ids, repeat(-1)), dtype=np.intp, count=len(ids))
        rows[~self.live[rows]] = -1
        return rows

    def in_collection(self, collection: str | None) -> NDArray[np.bool_]:
        """(n_rows,) live and of this collection, or of any for None."""
        if collection is None:
            return self.live
        numbers, of_rows = self.keys.collections
        in_it: NDArray[np.bool_] = of_rows == numbers.get(collection, -1)
        return in_it & self.live

    def in_scope(self, scope: Scope) -> NDArray[np.bool_]:
        """(n_rows,) live and in the scope."""
        if scope.documents is None:
            return self.in_collection(scope.collection)
        found = np.zeros(len(self.live), dtype=np.bool_)
        for key in scope.documents:
            if key in self.keys.spans and scope.allows(key):
                start, end = self.keys.spans[key]
                found[start:end] = True
        return found & self.live


class Segments(tuple[Segment[C], ...], Generic[C]):
    """All rows, the oldest segment first; a document is live in at most one. Immutable, safe to use from threads."""

    __slots__ = ()

    @property
    def live_count(self) -> int:
        return sum(segment.live_count for segment in self)

    def holds(self, identifier: str) -> bool:
        """Whether a live row has this id. Scans the rows and builds no lookup table."""
        return any(segment.live[segment.keys.ids == identifier].any() for segment in self)

    def find(self, document: DocumentKey) -> tuple[Segment[C], int, int] | None:
        """The segment that holds a live document, and (first row, end) there."""
        for segment in self:
            span = segment.span(document)
            if span is not None:
                return segment, *span
        return None

    def without(self, documents: Iterable[DocumentKey]) -> "Segments[C]":
        deleted = list(documents)
        return Segments(settled(segment.without(deleted) for segment in self))

    def with_segment(self, segment: Segment[C]) -> "Segments[C]":
        """These rows and those of a new segment, whose documents must not be live here."""
        return Segments(settled([*self, segment]))


Runs = list[tuple[int, int]]


@dataclass(frozen=True)
class ScopedRows:
    """The rows of one segment that a scope allows."""

    mask: NDArray[np.bool_]  # (n_rows,)

    @cached_property
    def runs(self) -> Runs:
        """(first row, end) of each run of them: few, as a collection's rows are adjacent where little has changed."""
        edges = np.flatnonzero(np.diff(self.mask.view(np.int8), prepend=0, append=0))
        return [(start, end) for start, end in edges.reshape(-1, 2).tolist()]


class ScopeCache:
    """The rows of scopes in some segments, cached for those used last. Thread-safe."""

    def __init__(self, segments: Sequence[Segment[Any]]) -> None:
        self._segments = segments
        self._cache: LRUCache[tuple[Scope], list[ScopedRows]] = LRUCache(MAX_CACHED_SCOPES)
        self._lock = threading.Lock()

    def rows(self, scope: Scope) -> list[ScopedRows]:
        """Of each segment."""
        few = scope.documents is not None and len(scope.documents) <= FEW_DOCUMENTS
        return self._find(scope) if few else self._find_cached(scope)

    def masks(self, scope: Scope) -> list[NDArray[np.bool_]]:
        """Of each segment (n_rows,)."""
        return [rows.mask for rows in self.rows(scope)]

    def cached_collections(self) -> list[Scope]:
        """The scopes of whole collections that were searched last."""
        with self._lock:
            return [scope for (scope,) in self._cache if scope.documents is None]

    def _find(self, scope: Scope) -> list[ScopedRows]:
        return [ScopedRows(segment.in_scope(scope)) for segment in self._segments]

    @cachedmethod(attrgetter("_cache"), lock=attrgetter("_lock"))
    def _find_cached(self, scope: Scope) -> list[ScopedRows]:
        return self._find(scope)


def top_rows(scores: NDArray[np.floating], limit: int, margin: float = 0.0, above: float = -np.inf) -> NDArray[np.intp]:
    """The rows with the highest scores: `limit` of them, and all others that are no more than `margin` below the last;
    unsorted, only those `above`."""
    lowest = above
    if (size := len(scores) // BUCKETS) > 2 * limit:
        maxima = scores[: size * BUCKETS].reshape(BUCKETS, size).max(axis=0)
        lowest = max(above, _nth_highest(maxima, limit) - margin)
    rows = np.flatnonzero(scores >= lowest) if lowest > above else np.flatnonzero(scores > above)
    if len(rows) > limit:
        few = scores[rows]
        rows = rows[few >= _nth_highest(few, limit) - margin]
    return rows


def _nth_highest(scores: NDArray[np.floating], n: int) -> float:
    return float(np.partition(scores, len(scores) - n)[len(scores) - n])


K = TypeVar("K")


def group_spans(values: Iterable[K]) -> dict[K, tuple[int, int]]:
    """(first, end) of each run of equal values."""
    spans: dict[K, tuple[int, int]] = {}
    start = 0
    for value, group in groupby(values):
        end = start + sum(1 for _ in group)
        spans[value] = start, end
        start = end
    return spans


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    return np.fromiter(values, dtype=np.object_, count=len(values))
