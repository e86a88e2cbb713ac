"""Exact scores of passages for a question, whichever channel found them: cosine, BM25, the terms they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.text_analysis import query_terms
from query_api.answers.sentences import TermIdf
from query_api.index.text.text_segments import Candidate
from query_api.index.text.text_snapshot import TextSnapshot
from query_api.index.text.vectors import CosineSpread
from query_api.retrieval.scoring import text_score, word_score

NO_COSINES: Mapping[str, float] = MappingProxyType({})


class CandidateScores(NamedTuple):
    """Rows are passages, columns of `term_matches` the distinct terms of the question."""

    row_of: Mapping[str, int]
    cosine: NDArray[np.float64]  # (n,)
    words: NDArray[np.float64]  # (n,) BM25 weighed by term specificity, see `scoring.word_score`
    term_matches: NDArray[np.bool_]  # (n, n_terms)

    @property
    def text(self) -> NDArray[np.float64]:
        """(n,) the text score of each."""
        return text_score(self.cosine, self.words)

    def concat(self, other: "CandidateScores") -> "CandidateScores":
        if not other.row_of:
            return self
        row_of = {**self.row_of, **{name: row + len(self.row_of) for name, row in other.row_of.items()}}
        arrays = (np.concatenate(pair) for pair in zip(self[1:], other[1:], strict=True))
        return CandidateScores(row_of, *arrays)


@dataclass(eq=False)
class ExactScorer:
    """Scores passages for one question over one state of the text stores. Safe to use from several threads. `vector` is
    None where the question has none; without `with_words` words count nothing. `known_cosines` are those of passages
    that a vector search found: no other passage has one above the lowest of them."""

    text: TextSnapshot
    query: str
    collection: str | None
    vector: NDArray[np.float32] | None
    known_cosines: Mapping[str, float]
    _: KW_ONLY
    with_words: bool

    def __post_init__(self) -> None:
        self._known = self.known_cosines
        self._floor = min(self.known_cosines.values(), default=0.0)
        self.terms = tuple(dict.fromkeys(query_terms(self.query)))
        of_terms = self.text.compare_words(self.query, (), self.collection)
        self.idf: NDArray[np.float64] = of_terms.idf
        self._highest_idf = of_terms.highest_idf
        self.spread: CosineSpread | None = (
            None if self.vector is None else self.text.cosine_spread(self.vector, self.collection)
        )
        self._unknown_idf = of_terms.unknown_idf

    def score(self, passage_ids: Sequence[str], known_cosines: Mapping[str, float] = NO_COSINES) -> CandidateScores:
        """These passages, each once; `known_cosines` are further ones. Raises TransientStoreError."""
        names = list(dict.fromkeys(passage_ids))
        zeros = np.zeros(len(names))
        if not names:
            return CandidateScores({}, zeros, zeros, np.zeros((0, len(self.terms)), dtype=np.bool_))
        held = self.text.compare_words(self.query, names, self.collection)
        return CandidateScores(
            row_of=dict(zip(names, range(len(names)), strict=True)),
            cosine=self._cosines(names, known_cosines),
            words=word_score(held.bm25, held.term_matches, self.idf, self._highest_idf) if self.with_words else zeros,
            term_matches=held.term_matches,
        )

    def idf_shares(self, term_matches: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(n,) the share of the question's idf that each row of (n, n_terms) holds."""
        shares: NDArray[np.float64] = term_matches @ self.idf / (float(self.idf.sum()) or 1.0)
        return shares

    @property
    def query_idf(self) -> NDArray[np.float64]:
        """(n_terms,) the idf; of a term that the collection does not hold, the one for a document frequency of 0."""
        return np.where(self.idf > 0, self.idf, self._unknown_idf)

    def word_weights(self, words: Sequence[str]) -> list[float]:
        """The highest idf of each word's terms; 0 for a word that the collection does not hold."""
        idf = dict(zip(self.terms, self.idf.tolist(), strict=True))
        return [max((idf.get(term, 0.0) for term in query_terms(word)), default=0.0) for word in words]

    def _cosines(self, names: Sequence[str], further: Mapping[str, float]) -> NDArray[np.float64]:
        if self.vector is None:
            return np.zeros(len(names))
        cosines = np.array([self._known.get(name, further.get(name, np.nan)) for name in names])
        unknown = np.flatnonzero(np.isnan(cosines))
        computed = self.text.compare_vectors(self.vector, [names[row] for row in unknown.tolist()])
        cosines[unknown] = np.where(np.isnan(computed), self._floor, computed)
        return cosines


def term_idf(text: TextSnapshot, query: str, collection: str | None) -> TermIdf:
    """Of the question's terms in a collection."""
    held = text.compare_words(query, (), collection)
    terms = dict.fromkeys(query_terms(query))
    unknown = held.unknown_idf
    return TermIdf({term: idf or unknown for term, idf in zip(terms, held.idf.tolist(), strict=True)}, unknown)


class ScoredCandidates(NamedTuple):
    """The candidates' exact scores, and the scorer for further passages."""

    scorer: ExactScorer
    scores: CandidateScores


def best_scores(candidates: Sequence[Candidate]) -> dict[str, float]:
    """{passage id: its best score} of candidates that are sorted best first."""
    scores: dict[str, float] = {}
    for candidate in candidates:
        scores.setdefault(candidate.passage_id, candidate.score)
    return scores
