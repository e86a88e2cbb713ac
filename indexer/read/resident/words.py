"""Keyword search in memory: an inverted index of passages, and BM25 over the collection that is asked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.layers import KEPT_SCOPES, Layer, Layers, best_rows
from schemas.ids import DocumentKey

K1 = 1.2
B = 0.75


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
        at = int(np.searchsorted(self.terms, np.uint32(term)))
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


class _Scope(NamedTuple):
    """The rows that one collection's searches look at, by layer, and what BM25 needs to know of them."""

    searched: list[NDArray[np.bool_]]
    rows: int
    mean_length: float


class WordIndex:
    """Layers of postings, searched. Immutable; safe to use from several threads."""

    def __init__(self, layers: Layers[Postings]) -> None:
        self.layers = layers
        self._scopes: dict[str | None, _Scope] = {}

    def search(self, terms: Sequence[int], limit: int, collection: str | None = None) -> list[FoundRow]:
        """The `limit` rows with the highest BM25, best first, ties by id. Only rows with one of the terms are found.

        Σ over terms of idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / mean length)), with
        idf = ln(1 + (n - df + .5) / (df + .5)) (Robertson, Zaragoza 2009, section 3.4; the idf as in Lucene). What is
        counted is the searched collection alone: no other changes its scores.
        """
        scope = self._scope(collection)
        if limit < 1 or not scope.rows:
            return []
        scores = [np.zeros(len(searched), dtype=np.float64) for searched in scope.searched]
        for term, asked in sorted(Counter(terms).items()):
            postings = [
                self._postings(layer, term, searched)
                for layer, searched in zip(self.layers.stack, scope.searched, strict=True)
            ]
            df = sum(len(rows) for rows, _, _ in postings)
            idf = np.log1p((scope.rows - df + 0.5) / (df + 0.5))
            for of_layer, (rows, counts, lengths) in zip(scores, postings, strict=True):
                if len(rows):
                    norm = K1 * (1 - B + B * lengths / scope.mean_length)
                    of_layer[rows] += asked * idf * counts * (K1 + 1) / (counts + norm)
        found = [
            row
            for layer, of_layer in zip(self.layers.stack, scores, strict=True)
            for row in _best(layer, of_layer, limit)
        ]
        return sorted(found, key=lambda row: (-row.score, row.id))[:limit]

    def holds(self, collection: str) -> bool:
        """Whether any row is of this collection."""
        return self._scope(collection).rows > 0

    def _scope(self, collection: str | None) -> _Scope:
        scope = self._scopes.get(collection)
        if scope is None:
            searched = [layer.in_collection(collection) for layer in self.layers.stack]
            rows = sum(int(mask.sum()) for mask in searched)
            length = sum(
                int(layer.content.lengths[mask].sum()) for layer, mask in zip(self.layers.stack, searched, strict=True)
            )
            if len(self._scopes) >= KEPT_SCOPES:
                self._scopes.clear()
            scope = self._scopes[collection] = _Scope(searched, rows, max(length / rows, 1.0) if rows else 1.0)
        return scope

    @staticmethod
    def _postings(
        layer: Layer[Postings], term: int, searched: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
        """(rows that hold the term, how often, their lengths), of the searched rows only."""
        content = layer.content
        where = content.of_term(term)
        rows = content.rows[where]
        wanted = searched[rows]
        rows = rows[wanted]
        return rows, content.counts[where][wanted].astype(np.float64), content.lengths[rows]


def _best(layer: Layer[Postings], scores: NDArray[np.float64], limit: int) -> list[FoundRow]:
    held = np.flatnonzero(scores)
    best = held[best_rows(scores[held], limit)]
    return [
        FoundRow(score, identifier, key)
        for score, identifier, key in zip(
            scores[best].tolist(), layer.names.ids[best].tolist(), layer.names.keys[best].tolist(), strict=True
        )
    ]
