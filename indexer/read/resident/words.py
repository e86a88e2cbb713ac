"""Keyword search in memory: an inverted index of passages, and BM25 over the collection that is asked."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from indexer.read.resident.layers import Layer, Layers, best_rows
from indexer.read.resident.scope import EVERYTHING, KEPT_SCOPES, Runs, Scope, ScopeRows
from indexer.schema import MIB
from schemas.ids import DocumentKey

K1 = 1.2
B = 0.75
KEPT_POSTINGS = 4_000_000  # of the terms asked last, with what BM25 gives for each; 12 bytes each
A_TERM = 50  # postings that a kept term costs as much as beside its own
KEPT_SCORES_BYTES = 64 * MIB  # of what was asked last: one search asks the same several times
AN_ANSWER, ITS_TERM = 2_000, 100  # bytes that kept scores cost beside their arrays


@dataclass(frozen=True)
class Postings:
    """Which rows hold which term how often, in compressed sparse rows by term; 6 bytes a posting."""

    terms: NDArray[np.uint32]  # (n_terms,) ascending
    starts: NDArray[np.int64]  # (n_terms + 1,) where each term's postings begin
    rows: NDArray[np.int32]  # (n_postings,)
    counts: NDArray[np.uint16]  # (n_postings,) how often the term stands in the row
    lengths: NDArray[np.int32]  # (n_rows,) terms of each row, repetitions counted

    @classmethod
    def of(cls, terms_by_row: NDArray[np.uint32], lengths: NDArray[np.int32]) -> "Postings":
        """`terms_by_row` holds the terms of all rows, one after the other; row r has `lengths[r]` of them."""
        rows = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
        pairs, counts = np.unique(terms_by_row.astype(np.uint64) << np.uint64(32) | rows, return_counts=True)
        counted = np.minimum(counts, np.iinfo(np.uint16).max).astype(np.uint16)
        return cls._of_pairs((pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.int32), counted, lengths)

    @classmethod
    def _of_pairs(
        cls,
        terms: NDArray[np.uint32],
        rows: NDArray[np.int32],
        counts: NDArray[np.uint16],
        lengths: NDArray[np.int32],
    ) -> "Postings":
        """From postings that are sorted by term."""
        unique, first = np.unique(terms, return_index=True)
        return cls(unique, np.append(first, len(terms)).astype(np.int64), rows, counts, lengths)

    def kept(self, rows: NDArray[np.bool_]) -> "Postings":
        if rows.all():
            return self
        numbers = np.cumsum(rows, dtype=np.int32) - 1
        of_kept = rows[self.rows]
        return self._of_pairs(
            self.term_of_each[of_kept], numbers[self.rows[of_kept]], self.counts[of_kept], self.lengths[rows]
        )

    def followed_by(self, other: "Postings") -> "Postings":
        terms = np.concatenate([self.term_of_each, other.term_of_each])
        order = np.argsort(terms, kind="stable")
        rows = np.concatenate([self.rows, other.rows + np.int32(len(self.lengths))])
        counts = np.concatenate([self.counts, other.counts])
        lengths = np.concatenate([self.lengths, other.lengths])
        return self._of_pairs(terms[order], rows[order], counts[order], lengths)

    def of_term(self, term: int) -> slice:
        """Where the postings of a term are."""
        at = int(self.terms.searchsorted(np.uint32(term)))
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    @cached_property
    def term_of_each(self) -> NDArray[np.uint32]:
        """(n_postings,) the term of every posting."""
        return np.repeat(self.terms, np.diff(self.starts))


class FoundRow(NamedTuple):
    score: float
    id: str
    key: DocumentKey


class _Weighed(NamedTuple):
    """The postings of a term in the searched rows of a layer, counted from the first of these: the rows that hold it,
    ascending, and tf · (k1 + 1) / (tf + norm) of each."""

    rows: NDArray[np.int32]
    parts: NDArray[np.float64]

    def hold(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """(n_rows,) which of these rows hold the term."""
        if not len(self.rows):
            return np.zeros(len(rows), dtype=np.bool_)
        at = np.minimum(self.rows.searchsorted(rows.astype(np.int32)), len(self.rows) - 1)
        held: NDArray[np.bool_] = self.rows[at] == rows
        return held


class _Term(NamedTuple):
    """A term in one collection: its postings in each layer, and its idf."""

    layers: list[_Weighed]
    idf: float

    @property
    def postings(self) -> int:
        return sum(len(weighed.rows) for weighed in self.layers)


class _Searched(NamedTuple):
    """The rows of one collection in a layer: all that are searched lie from `start` to before `end`."""

    start: int
    end: int
    rows: NDArray[np.bool_] | None  # (end - start,) which of them are searched; None for all
    norms: NDArray[np.float64]  # (end - start,) k1 · (1 - b + b · length / mean length)


class _Counted(NamedTuple):
    """The rows of one collection, by layer, how many they are, and the terms asked of them."""

    layers: list[_Searched]
    rows: int
    terms: dict[int, _Term]

    def idf(self, df: int) -> float:
        """ln(1 + (n - df + .5) / (df + .5)); 0 for a term that no row holds."""
        return math.log1p((self.rows - df + 0.5) / (df + 0.5)) if df else 0.0

    @property
    def unknown_idf(self) -> float:
        """The same for df 0: ln(1 + (n + .5) / .5)."""
        return math.log1p((self.rows + 0.5) / 0.5)


class _Scored(NamedTuple):
    """What every searched row comes to for asked terms. Their postings are kept elsewhere, and counted there."""

    layers: list[NDArray[np.float64]]  # (n_rows,) BM25, by layer
    idf: dict[int, float]  # {term: idf} in the order in which they first come

    @property
    def nbytes(self) -> int:
        return sum(scores.nbytes for scores in self.layers) + AN_ANSWER + ITS_TERM * len(self.idf)


class _Places(NamedTuple):
    """Which of the rows asked for are in a layer, and where, counted from the first searched row."""

    which: NDArray[np.intp]
    places: NDArray[np.intp]


@dataclass(frozen=True)
class ComparedRows:
    """How rows compare with asked terms: their BM25, which of the terms each holds, and what each term is worth."""

    bm25: NDArray[np.float64]  # (n_rows,) 0 where a row holds none of the terms, or is not there
    idf: NDArray[np.float64]  # (n_terms,) of the collection; 0 for a term that no row of it holds
    unknown_idf: float  # what such a term would have: the most there is
    holding: Callable[[], NDArray[np.bool_]]

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """(n_rows, n_terms), found out when it is asked."""
        return self.holding()


class WordIndex:
    """Layers of postings, searched. Immutable; safe to use from several threads."""

    def __init__(self, layers: Layers[Postings]) -> None:
        self.layers = layers
        self._rows = ScopeRows(layers.stack)
        self._counted: dict[str | None, _Counted] = {}
        self._postings = 0
        self._scored: LRUCache[tuple[str | None, tuple[int, ...]], _Scored] = LRUCache(
            KEPT_SCORES_BYTES, getsizeof=lambda scored: scored.nbytes
        )
        self._lock = threading.Lock()

    def search(self, terms: Sequence[int], limit: int, scope: Scope = EVERYTHING) -> list[FoundRow]:
        """The `limit` rows with the highest BM25, best first, ties by id. Only rows with one of the terms are found.

        Σ over terms of idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / mean length)), with
        idf = ln(1 + (n - df + .5) / (df + .5)) (Robertson, Zaragoza 2009, section 3.4; the idf as in Lucene). What is
        counted is the searched collection alone: no other changes its scores, and no filter does.
        """
        counted = self._counts(scope.collection)
        if limit < 1 or not counted.rows:
            return []
        scored = self._scores(counted, terms, scope.collection)
        wanted = None if scope.documents is None else self._rows.of(scope)
        found: list[FoundRow] = []
        for at, (layer, searched) in enumerate(zip(self.layers.stack, counted.layers, strict=True)):
            scores = scored.layers[at]
            if wanted is not None:
                scores = np.where(wanted[at][searched.start : searched.end], scores, 0.0)
            found += _best(layer, scores, searched.start, limit)
        return sorted(found, key=lambda row: (-row.score, row.id))[:limit]

    def compare(self, terms: Sequence[int], ids: Sequence[str], collection: str | None = None) -> ComparedRows:
        """The BM25 of these rows of the collection, as `search` gives it, whether or not they are among its best.

        The columns of `held` and `idf` are the distinct terms in the order in which they first stand in `terms`.
        """
        counted = self._counts(collection)
        scored = self._scores(counted, terms, collection)
        found = self._places(counted, ids)

        def holding() -> NDArray[np.bool_]:
            held = np.zeros((len(ids), len(scored.idf)), dtype=np.bool_)
            for column, term in enumerate(scored.idf):
                for weighed, (which, places) in zip(self._term(counted, term).layers, found, strict=True):
                    held[which, column] = weighed.hold(places)
            return held

        return ComparedRows(
            _at(scored, found, len(ids)),
            np.array(list(scored.idf.values()), dtype=np.float64),
            counted.unknown_idf,
            holding,
        )

    def holding(self, terms: Iterable[int], collection: str | None = None) -> int:
        """How many rows of the collection hold all of these terms; 0 without terms."""
        counted = self._counts(collection)
        of_terms = [self._term(counted, term).layers for term in dict.fromkeys(terms)]
        rows_of_layers = ([weighed.rows for weighed in of_layer] for of_layer in zip(*of_terms, strict=True))
        return sum(len(reduce(_in_both, rows)) for rows in rows_of_layers)

    def bm25(
        self, texts: Sequence[Sequence[int]], ids: Sequence[str], collection: str | None = None
    ) -> list[NDArray[np.float64]]:
        """For the terms of each text (n_rows,) the BM25 of these rows, as `compare` gives it; looked up once."""
        counted = self._counts(collection)
        found = self._places(counted, ids) if texts else []
        return [_at(self._scores(counted, terms, collection), found, len(ids)) for terms in texts]

    def _places(self, counted: _Counted, ids: Sequence[str]) -> list[_Places]:
        """Where these rows of a collection stand, by layer."""
        found: list[_Places] = []
        for layer, searched in zip(self.layers.stack, counted.layers, strict=True):
            rows = layer.rows_of(ids)
            which = ((rows >= searched.start) & (rows < searched.end)).nonzero()[0]
            found.append(_Places(which, rows[which] - searched.start))
        return found

    def _scores(self, counted: _Counted, terms: Sequence[int], collection: str | None) -> _Scored:
        """Σ as `search` tells it, term by term in ascending order, for every row of the collection."""
        asked = collection, tuple(terms)
        with self._lock:
            known = self._scored.get(asked)
        if known is not None:
            return known
        times = Counter(terms)
        weighed = {term: self._term(counted, term) for term in times}
        layers = [np.zeros(searched.end - searched.start) for searched in counted.layers]
        for term in sorted(times):
            for scores, (rows, parts) in zip(layers, weighed[term].layers, strict=True):
                np.add.at(scores, rows, times[term] * weighed[term].idf * parts)
        found = _Scored(layers, {term: of_term.idf for term, of_term in weighed.items()})
        with self._lock:
            if found.nbytes <= KEPT_SCORES_BYTES:
                self._scored[asked] = found
        return found

    def prepared_as(self, before: "WordIndex") -> "WordIndex":
        """This, with all made ahead that the searches of an earlier state would else wait for."""
        for layer in self.layers.stack if before.asked else ():
            _ = layer.names.row_of, layer.names.spans, layer.names.collections
        for collection in before.asked:
            self._counts(collection)
        return self

    @property
    def asked(self) -> list[str | None]:
        """The collections that were searched last."""
        return list(self._counted)

    def leads(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, str]:
        """The first passage of each of these documents that has any."""
        found = {}
        for key in keys:
            for layer in self.layers.stack:
                span = layer.names.spans.get(key)
                if span is not None and layer.live[span[0]]:
                    found[key] = str(layer.names.ids[span[0]])
        return found

    def holds(self, collection: str) -> bool:
        """Whether any row is of this collection."""
        return self._counts(collection).rows > 0

    def _counts(self, collection: str | None) -> _Counted:
        counted = self._counted.get(collection)
        if counted is None:
            searched = self._rows.of(Scope(collection))
            rows = sum(int(mask.sum()) for mask in searched)
            length = sum(
                int(layer.content.lengths[mask].sum()) for layer, mask in zip(self.layers.stack, searched, strict=True)
            )
            if len(self._counted) >= KEPT_SCOPES:
                self._forget()
            mean = max(length / rows, 1.0) if rows else 1.0
            layers = [
                _searched(layer.content, runs, mask, mean)
                for layer, runs, mask in zip(
                    self.layers.stack, self._rows.runs(Scope(collection)), searched, strict=True
                )
            ]
            counted = self._counted[collection] = _Counted(layers, rows, {})
        return counted

    def _term(self, counted: _Counted, term: int) -> _Term:
        known = counted.terms.get(term)
        if known is None:
            layers = [
                _weighed(layer.content, searched, term)
                for layer, searched in zip(self.layers.stack, counted.layers, strict=True)
            ]
            known = _Term(layers, counted.idf(sum(len(weighed.rows) for weighed in layers)))
            if self._postings + known.postings + A_TERM > KEPT_POSTINGS:
                self._forget()
            self._postings += known.postings + A_TERM
            counted.terms[term] = known
        return known

    def _forget(self) -> None:
        """Searches under way keep what they hold."""
        self._counted = {}
        self._postings = 0


def _in_both(some: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.intersect1d(some, others, assume_unique=True)


def _at(scored: _Scored, found: Sequence[_Places], n_rows: int) -> NDArray[np.float64]:
    """(n_rows,) what rows at these places come to; 0 for one that has none."""
    bm25 = np.zeros(n_rows, dtype=np.float64)
    for scores, (which, places) in zip(scored.layers, found, strict=True):
        bm25[which] = scores[places]
    return bm25


def _searched(content: Postings, runs: Runs, rows: NDArray[np.bool_], mean_length: float) -> _Searched:
    start, end = (runs[0][0], runs[-1][1]) if runs else (0, 0)
    norms = K1 * (1 - B + B * content.lengths[start:end].astype(np.float64) / mean_length)
    return _Searched(start, end, None if len(runs) <= 1 else rows[start:end], norms)


def _weighed(content: Postings, searched: _Searched, term: int) -> _Weighed:
    where = content.of_term(term)
    rows, counts = content.rows[where], content.counts[where]
    first, last = rows.searchsorted(np.array((searched.start, searched.end), dtype=np.int32)).tolist()
    rows, counts = rows[first:last] - np.int32(searched.start), counts[first:last].astype(np.float64)
    if searched.rows is not None:
        wanted = searched.rows[rows]
        rows, counts = rows[wanted], counts[wanted]
    return _Weighed(rows, counts * (K1 + 1) / (counts + searched.norms[rows]))


def _best(layer: Layer[Postings], scores: NDArray[np.float64], start: int, limit: int) -> list[FoundRow]:
    """`scores` are those of the rows from `start` on."""
    best = best_rows(scores, limit, above=0.0)
    rows = best + start
    return [
        FoundRow(score, identifier, key)
        for score, identifier, key in zip(
            scores[best].tolist(), layer.names.ids[rows].tolist(), layer.names.keys[rows].tolist(), strict=True
        )
    ]
