"""The residual hop: what the question still asks once a seed is read, put to the keyword index.

It reaches passages about something between question and answer that no title names.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.view import GraphView
from query_api.index.snapshot import Candidate
from query_api.index.text.segments import Scope
from query_api.index.text.snapshot import TextSnapshot
from query_api.query.analysis import Question, normalise_text
from query_api.retrieval.retrievers.graph_edges import Seed
from query_api.retrieval.retrievers.text import keyword_channel
from query_api.retrieval.scoring import ranked

BEST_SENTENCES = 2
MAX_NAMES = 12
RESIDUAL_HITS = 31  # 30, and the seed itself


class ResidualHits(NamedTuple):
    """What one seed's residual query found: `best` is the highest BM25 but for the seed's own passage; `first` the
    passages found, best first."""

    seed: int
    query: str
    best: float
    first: tuple[str, ...]


def residual_hop(
    at: int, seed: Seed, question: Question, view: GraphView, text: TextSnapshot, scope: Scope
) -> ResidualHits | None:
    """Of the seed with this index; None where nothing but itself is found. Raises TransientStoreError."""
    query = residual_query(question, seed, view.title(seed.document))
    found = keyword_channel(text, query, RESIDUAL_HITS, scope) if query else []
    return hop_of(at, view.passage_id(seed.passage), query, found)


def residual_query(question: Question, seed: Seed, title: str) -> str:
    """What the question asks that the seed does not hold, and the names in the seed's two best sentences that the
    question does not hold, but for the seed's own; empty without such a name."""
    held = question.stems_in(" ".join(sentence.text for sentence in seed.sentences))
    open_words = [question.word_of_stem[stem] for stem in question.stems if stem not in held]
    own = normalise_text(title)
    names = dict.fromkeys(
        name
        for sentence in seed.best_sentences(BEST_SENTENCES)
        for name in sentence.names
        if not question.names(name) and name not in own and not (own and own in name)
    )
    return " ".join([*open_words, *list(names)[:MAX_NAMES]]) if names else ""


def hop_of(seed: int, passage_id: str, query: str, found: Sequence[Candidate]) -> ResidualHits | None:
    """None where nothing but the seed itself was found."""
    scores = {each.passage_id: each.score for each in found if each.passage_id != passage_id}
    if not scores:
        return None
    first = ranked(scores)
    return ResidualHits(seed, query, scores[first[0]], tuple(first))


def along(hop: ResidualHits, bm25: NDArray[np.float64]) -> NDArray[np.float64]:
    """How passages of these scores continue a hop: s / best, at most 1."""
    return np.minimum(bm25 / hop.best, 1.0)
