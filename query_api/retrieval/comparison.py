"""How passages compare with a question, however they were found: exact cosine, exact BM25, the words they hold."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.text_analysis import query_terms
from query_api.index.snapshot import Candidate
from query_api.index.text.snapshot import TextSnapshot
from query_api.retrieval.scoring import text_score

NONE_FURTHER: Mapping[str, float] = MappingProxyType({})


class Compared(NamedTuple):
    """Passages beside a question: rows are passages, columns of `held` the distinct terms of the question."""

    row_of: Mapping[str, int]
    cosine: NDArray[np.float64]  # (n,)
    bm25: NDArray[np.float64]  # (n,)
    held: NDArray[np.bool_]  # (n, n_terms)
    share: NDArray[np.float64]  # (n,) of the question's idf that each holds

    @property
    def text(self) -> NDArray[np.float64]:
        """(n,) how well each fits by its text."""
        return text_score(self.cosine, self.bm25, self.share)

    def followed_by(self, other: "Compared") -> "Compared":
        if not other.row_of:
            return self
        row_of = {**self.row_of, **{name: row + len(self.row_of) for name, row in other.row_of.items()}}
        return Compared(
            row_of,
            np.concatenate([self.cosine, other.cosine]),
            np.concatenate([self.bm25, other.bm25]),
            np.concatenate([self.held, other.held]),
            np.concatenate([self.share, other.share]),
        )


class Comparer:
    """One question over one state of the text stores. Safe to use from several threads."""

    def __init__(
        self,
        text: TextSnapshot,
        query: str,
        collection: str | None,
        vector: NDArray[np.float32] | None,
        known_cosines: Mapping[str, float],
        *,
        words: bool,
    ) -> None:
        """`vector` is None where the question has none; without `words` BM25 counts nothing. `known_cosines` are those
        of passages that a vector search found: no other passage has one above the lowest of them."""
        self._text = text
        self._query = query
        self._collection = collection
        self._vector = vector
        self._known = known_cosines
        self._floor = min(known_cosines.values(), default=0.0)
        self._words = words
        self.terms = tuple(dict.fromkeys(query_terms(query)))
        words_of_question = text.compare_words(query, (), collection)
        self.idf: NDArray[np.float64] = words_of_question.idf
        self._unknown_idf = words_of_question.unknown_idf

    def of(self, passage_ids: Sequence[str], known_cosines: Mapping[str, float] = NONE_FURTHER) -> Compared:
        """These passages, each once; `known_cosines` are further ones. Raises TransientStoreError."""
        names = list(dict.fromkeys(passage_ids))
        if not names:
            return Compared({}, np.zeros(0), np.zeros(0), np.zeros((0, len(self.terms)), dtype=np.bool_), np.zeros(0))
        words = self._text.compare_words(self._query, names, self._collection)
        nothing = np.zeros(len(names))
        return Compared(
            row_of=dict(zip(names, range(len(names)), strict=True)),
            cosine=self._cosines(names, known_cosines),
            bm25=words.bm25 if self._words else nothing,
            held=words.held,
            share=self.shares(words.held) if self._words else nothing,
        )

    def shares(self, held: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(n,) the share of the question's idf that each of (n, n_terms) holds."""
        shares: NDArray[np.float64] = held @ self.idf / (float(self.idf.sum()) or 1.0)
        return shares

    @property
    def asked_idf(self) -> NDArray[np.float64]:
        """(n_terms,) the idf; of a term that the collection does not hold, what one would have that nothing holds."""
        return np.where(self.idf > 0, self.idf, self._unknown_idf)

    def weights_of(self, words: Sequence[str]) -> list[float]:
        """What each of these words of the question tells: the highest idf of its terms, 0 for a word that the
        collection does not hold."""
        idf = dict(zip(self.terms, self.idf.tolist(), strict=True))
        return [max((idf.get(term, 0.0) for term in query_terms(word)), default=0.0) for word in words]

    def _cosines(self, names: Sequence[str], further: Mapping[str, float]) -> NDArray[np.float64]:
        if self._vector is None:
            return np.zeros(len(names))
        cosines = np.array([self._known.get(name, further.get(name, np.nan)) for name in names])
        unknown = np.flatnonzero(np.isnan(cosines))
        told = self._text.compare_vectors(self._vector, [names[row] for row in unknown.tolist()])
        cosines[unknown] = np.where(np.isnan(told), self._floor, told)
        return cosines


def best_scores(candidates: Sequence[Candidate]) -> dict[str, float]:
    """{passage id: its best score} of candidates that are sorted best first."""
    scores: dict[str, float] = {}
    for candidate in candidates:
        scores.setdefault(candidate.passage_id, candidate.score)
    return scores
