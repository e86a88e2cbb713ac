"""Keyword search in memory: an inverted index of passages, and BM25 over the searched collection.

Σ over terms of idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / mean length)), with
idf = ln(1 + (n - df + .5) / (df + .5)) (Robertson, Zaragoza 2009, section 3.4; the idf as in Lucene). The statistics
are those of the searched collection: no other collection changes its scores, and no filter does.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from cachetools import LRUCache, cachedmethod
from numpy.typing import NDArray

from query_api.index.text.text_segments import (
    EVERYTHING,
    MAX_CACHED_SCOPES,
    Candidate,
    Columns,
    Scope,
    ScopeCache,
    ScopedRows,
    Segment,
    Segments,
    top_rows,
)
from schemas.ids import DocumentKey
from schemas.settings import MIB

K1 = 1.2  # BM25's k1: how soon repetitions of a term stop counting
B = 0.75  # BM25's b: how much the length of a passage counts
MAX_CACHED_POSTINGS = 4_000_000  # weighted postings of the most recent terms; 12 bytes each
TERM_OVERHEAD = 50  # in postings, of a cached term
MAX_CACHED_SCORES_BYTES = 64 * MIB  # scores of the most recent questions: one search asks the same several times
SCORES_OVERHEAD_BYTES, IDF_BYTES = 2_000, 100


@dataclass(frozen=True)
class Postings(Columns):
    """Which rows hold which term how often, in compressed sparse rows by term; 6 bytes a posting."""

    terms: NDArray[np.uint32]  # (n_terms,) ascending
    starts: NDArray[np.int64]  # (n_terms + 1,) where each term's postings begin
    rows: NDArray[np.int32]  # (n_postings,)
    counts: NDArray[np.uint16]  # (n_postings,) how often the row holds the term
    lengths: NDArray[np.int32]  # (n_rows,) terms of each row, repetitions counted

    @classmethod
    def from_terms(cls, terms_by_row: NDArray[np.uint32], lengths: NDArray[np.int32]) -> "Postings":
        """`terms_by_row` holds the terms of all rows, one after the other; row r has `lengths[r]` of them."""
        rows = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
        pairs, counts = np.unique(terms_by_row.astype(np.uint64) << np.uint64(32) | rows, return_counts=True)
        counted = np.minimum(counts, np.iinfo(np.uint16).max).astype(np.uint16)
        return cls._from_sorted((pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.int32), counted, lengths)

    @classmethod
    def _from_sorted(
        cls, terms: NDArray[np.uint32], rows: NDArray[np.int32], counts: NDArray[np.uint16], lengths: NDArray[np.int32]
    ) -> "Postings":
        """From postings that are sorted by term."""
        unique, first = np.unique(terms, return_index=True)
        return cls(unique, np.append(first, len(terms)).astype(np.int64), rows, counts, lengths)

    def filter(self, rows: NDArray[np.bool_]) -> "Postings":
        if rows.all():
            return self
        numbers = np.cumsum(rows, dtype=np.int32) - 1
        filtered = rows[self.rows]
        return self._from_sorted(
            self.term_of_each()[filtered], numbers[self.rows[filtered]], self.counts[filtered], self.lengths[rows]
        )

    def concat(self, other: "Postings") -> "Postings":
        terms = np.concatenate([self.term_of_each(), other.term_of_each()])
        order = np.argsort(terms, kind="stable")
        rows = np.concatenate([self.rows, other.rows + np.int32(len(self.lengths))])
        counts = np.concatenate([self.counts, other.counts])
        lengths = np.concatenate([self.lengths, other.lengths])
        return self._from_sorted(terms[order], rows[order], counts[order], lengths)

    def slice_of(self, term: int) -> slice:
        """Where the postings of a term are."""
        at = int(self.terms.searchsorted(np.uint32(term)))
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    def term_of_each(self) -> NDArray[np.uint32]:
        """(n_postings,) the term of every posting."""
        return np.repeat(self.terms, np.diff(self.starts))


class _TermRows(NamedTuple):
    """A term in the searched rows of a segment: the rows that hold it, ascending, counted from the first searched one,
    and tf · (k1 + 1) / (tf + norm) of each."""

    rows: NDArray[np.int32]
    weights: NDArray[np.float64]

    def contains(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        if not len(self.rows):
            return np.zeros(len(rows), dtype=np.bool_)
        at = np.minimum(self.rows.searchsorted(rows.astype(np.int32)), len(self.rows) - 1)
        found: NDArray[np.bool_] = self.rows[at] == rows
        return found


class _Term(NamedTuple):
    segments: list[_TermRows]
    idf: float

    @property
    def cache_size(self) -> int:
        return sum(len(found.rows) for found in self.segments) + TERM_OVERHEAD


class _SearchedRows(NamedTuple):
    """The rows of one collection in a segment: all that are searched lie from `start` to before `end`."""

    start: int
    end: int
    rows: NDArray[np.bool_] | None  # (end - start,) which of them are searched; None for all
    norms: NDArray[np.float64]  # (end - start,) k1 · (1 - b + b · length / mean length)


class _Collection(NamedTuple):
    """The searched rows of one collection by segment, and how many they are."""

    segments: list[_SearchedRows]
    rows: int

    def idf(self, df: int) -> float:
        """0 for a term that no row holds."""
        return math.log1p((self.rows - df + 0.5) / (df + 0.5)) if df else 0.0

    @property
    def unknown_idf(self) -> float:
        """The same for df 0."""
        return math.log1p((self.rows + 0.5) / 0.5)


class _Scores(NamedTuple):
    """The BM25 of every searched row for some terms."""

    segments: list[NDArray[np.float64]]  # (n_searched_rows,) of each segment
    idf: dict[int, float]  # {term: idf} in the order in which they first come

    @property
    def nbytes(self) -> int:
        return sum(scores.nbytes for scores in self.segments) + SCORES_OVERHEAD_BYTES + IDF_BYTES * len(self.idf)


class _RowMatches(NamedTuple):
    """Which of the requested rows are in a segment, and their numbers, counted from the first searched row."""

    which: NDArray[np.intp]
    rows: NDArray[np.intp]


@dataclass(frozen=True)
class TermScores:
    """The scores of rows for the terms of a question."""

    bm25: NDArray[np.float64]  # (n_rows,) 0 where a row holds none of the terms, or is not there
    idf: NDArray[np.float64]  # (n_terms,) of the collection; 0 for a term that no row of it holds
    highest_idf: float  # that of a term that one row holds
    unknown_idf: float  # what a term that none holds would have, were its idf not 0
    find_matches: Callable[[], NDArray[np.bool_]]

    @cached_property
    def term_matches(self) -> NDArray[np.bool_]:
        """(n_rows, n_terms) which of the terms each row holds; computed on first use."""
        return self.find_matches()


class InvertedIndex:
    """Segments of postings, searched. Immutable; thread-safe."""

    def __init__(self, segments: Segments[Postings]) -> None:
        self.segments = segments
        self._scopes = ScopeCache(segments)
        self._lock = threading.Lock()
        self._collections: LRUCache[tuple[str | None], _Collection] = LRUCache(MAX_CACHED_SCOPES)
        self._terms: LRUCache[tuple[str | None, int], _Term] = LRUCache(
            MAX_CACHED_POSTINGS, getsizeof=attrgetter("cache_size")
        )
        self._scores: LRUCache[tuple[str | None, tuple[int, ...]], _Scores] = LRUCache(
            MAX_CACHED_SCORES_BYTES, getsizeof=attrgetter("nbytes")
        )

    def search(
        self, terms: Sequence[int], limit: int, scope: Scope = EVERYTHING, *, of_all: bool = False
    ) -> list[Candidate]:
        """The `limit` rows with the highest BM25, best first, ties by id. Only rows with one of the terms are found;
        `of_all` only those with all of them, so all rows where there are none."""
        collection = self._collection(scope.collection)
        if limit < 1 or not collection.rows:
            return []
        scored = self._score(scope.collection, tuple(terms)).segments
        masks = None if scope.documents is None else self._scopes.masks(scope)
        holding = list(self._holding(terms, scope.collection)) if of_all and terms else None
        found: list[Candidate] = []
        for at, (segment, searched) in enumerate(zip(self.segments, collection.segments, strict=True)):
            scores = scored[at]
            if holding is not None:
                scores = np.zeros_like(scores)
                scores[holding[at]] = scored[at][holding[at]]
            elif of_all:
                scores = np.ones_like(scores) if searched.rows is None else searched.rows.astype(np.float64)
            if masks is not None:
                scores = np.where(masks[at][searched.start : searched.end], scores, 0.0)
            found += _best(segment, scores, searched.start, limit)
        return sorted(found, key=lambda row: (-row.score, row.passage_id))[:limit]

    def compare(self, terms: Sequence[int], ids: Sequence[str], collection: str | None = None) -> TermScores:
        """The BM25 of these rows of the collection, as `search` gives it, whether or not they are among its best.

        The columns of `term_matches` and `idf` are the distinct terms in order of first occurrence in `terms`.
        """
        scored = self._score(collection, tuple(terms))
        matches = self._find_rows(collection, ids)

        def find_term_matches() -> NDArray[np.bool_]:
            term_matches = np.zeros((len(ids), len(scored.idf)), dtype=np.bool_)
            for column, term in enumerate(scored.idf):
                for found, (which, rows) in zip(self._term(collection, term).segments, matches, strict=True):
                    term_matches[which, column] = found.contains(rows)
            return term_matches

        return TermScores(
            _scores_at(scored, matches, len(ids)),
            np.array(list(scored.idf.values()), dtype=np.float64),
            self._collection(collection).idf(1),
            self._collection(collection).unknown_idf,
            find_term_matches,
        )

    def bm25(
        self, questions: Sequence[Sequence[int]], ids: Sequence[str], collection: str | None = None
    ) -> list[NDArray[np.float64]]:
        """For the terms of each question (n_rows,) the BM25 of these rows, as `compare` gives it."""
        matches = self._find_rows(collection, ids) if questions else []
        return [_scores_at(self._score(collection, tuple(terms)), matches, len(ids)) for terms in questions]

    def count_holding(self, terms: Iterable[int], collection: str | None = None) -> int:
        """How many rows of the collection hold all of these terms; 0 without terms."""
        return sum(map(len, self._holding(terms, collection)))

    def first_holding(self, terms: Iterable[int], most: int, collection: str | None = None) -> list[str]:
        """The first rows that `count_holding` counts, at most so many."""
        starts = (each.start for each in self._collection(collection).segments)
        by_segment = zip(self.segments, starts, self._holding(terms, collection), strict=False)
        found = (segment.keys.ids[start + row] for segment, start, rows in by_segment for row in rows[:most].tolist())
        return list(map(str, islice(found, most)))

    def _holding(self, terms: Iterable[int], collection: str | None) -> Iterator[NDArray[np.int32]]:
        """By segment, the rows that hold all of these terms, counted from the first searched one."""
        of_terms = [self._term(collection, term).segments for term in dict.fromkeys(terms)]
        for of_segment in zip(*of_terms, strict=True):
            rarest, *others = sorted(of_segment, key=lambda each: len(each.rows))
            yield reduce(lambda rows, other: rows[other.contains(rows)], others, rarest.rows)

    def known(self, terms: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """(n_terms,) whether any row has had them, in whichever collection."""
        return np.isin(terms, np.concatenate([np.zeros(0, np.uint32), *(each.columns.terms for each in self.segments)]))

    def first_rows(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, str]:
        """The first passage of each of these documents that has any."""
        spans = {key: self.segments.find(key) for key in keys}
        return {key: str(span[0].keys.ids[span[1]]) for key, span in spans.items() if span is not None}

    def has_rows(self, collection: str) -> bool:
        return self._collection(collection).rows > 0

    def searched_collections(self) -> list[str | None]:
        """The most recently searched."""
        with self._lock:
            return [collection for (collection,) in self._collections]

    def with_warm_caches_of(self, before: "InvertedIndex") -> "InvertedIndex":
        """This, with the lookup tables built that searches of an earlier state have used."""
        searched = before.searched_collections()
        for segment in self.segments if searched else ():
            _ = segment.keys.row_of, segment.keys.spans, segment.keys.collections
        for collection in searched:
            self._collection(collection)
        return self

    def _find_rows(self, collection: str | None, ids: Sequence[str]) -> list[_RowMatches]:
        """These rows of a collection, by segment."""
        found: list[_RowMatches] = []
        for segment, searched in zip(self.segments, self._collection(collection).segments, strict=True):
            rows = segment.rows_of(ids)
            which = ((rows >= searched.start) & (rows < searched.end)).nonzero()[0]
            found.append(_RowMatches(which, rows[which] - searched.start))
        return found

    @cachedmethod(attrgetter("_scores"), lock=attrgetter("_lock"))
    def _score(self, collection: str | None, terms: tuple[int, ...]) -> _Scores:
        """Of every row of the collection; summed in ascending order of the terms."""
        times = Counter(terms)
        found = {term: self._term(collection, term) for term in times}
        segments = [np.zeros(searched.end - searched.start) for searched in self._collection(collection).segments]
        for term in sorted(times):
            for scores, (rows, weights) in zip(segments, found[term].segments, strict=True):
                scores[rows] += times[term] * found[term].idf * weights
        return _Scores(segments, {term: each.idf for term, each in found.items()})

    @cachedmethod(attrgetter("_collections"), lock=attrgetter("_lock"))
    def _collection(self, collection: str | None) -> _Collection:
        scoped = self._scopes.rows(Scope(collection))
        lengths = [segment.columns.lengths[each.mask] for segment, each in zip(self.segments, scoped, strict=True)]
        n_rows = sum(map(len, lengths))
        mean_length = max(sum(int(each.sum()) for each in lengths) / n_rows, 1.0) if n_rows else 1.0
        searched = [
            _searched(segment.columns, each, mean_length) for segment, each in zip(self.segments, scoped, strict=True)
        ]
        return _Collection(searched, n_rows)

    @cachedmethod(attrgetter("_terms"), lock=attrgetter("_lock"))
    def _term(self, collection: str | None, term: int) -> _Term:
        in_collection = self._collection(collection)
        found = [
            _term_rows(segment.columns, searched, term)
            for segment, searched in zip(self.segments, in_collection.segments, strict=True)
        ]
        return _Term(found, in_collection.idf(sum(len(each.rows) for each in found)))


def _scores_at(scored: _Scores, matches: Sequence[_RowMatches], n_rows: int) -> NDArray[np.float64]:
    """(n_rows,) the scores of the matching rows; 0 for the others."""
    bm25 = np.zeros(n_rows, dtype=np.float64)
    for scores, (which, rows) in zip(scored.segments, matches, strict=True):
        bm25[which] = scores[rows]
    return bm25


def _searched(postings: Postings, scoped: ScopedRows, mean_length: float) -> _SearchedRows:
    runs = scoped.runs
    start, end = (runs[0][0], runs[-1][1]) if runs else (0, 0)
    norms = K1 * (1 - B + B * postings.lengths[start:end].astype(np.float64) / mean_length)
    return _SearchedRows(start, end, None if len(runs) <= 1 else scoped.mask[start:end], norms)


def _term_rows(postings: Postings, searched: _SearchedRows, term: int) -> _TermRows:
    where = postings.slice_of(term)
    rows, counts = postings.rows[where], postings.counts[where]
    first, last = rows.searchsorted(np.array((searched.start, searched.end), dtype=np.int32)).tolist()
    rows, counts = rows[first:last] - np.int32(searched.start), counts[first:last].astype(np.float64)
    if searched.rows is not None:
        wanted = searched.rows[rows]
        rows, counts = rows[wanted], counts[wanted]
    return _TermRows(rows, counts * (K1 + 1) / (counts + searched.norms[rows]))


def _best(segment: Segment[Postings], scores: NDArray[np.float64], start: int, limit: int) -> list[Candidate]:
    """`scores` are those of the rows from `start` on."""
    best = top_rows(scores, limit, above=0.0)
    rows = best + start
    columns = (segment.keys.ids[rows], scores[best], segment.keys.documents[rows])
    return list(map(Candidate, *(column.tolist() for column in columns)))
