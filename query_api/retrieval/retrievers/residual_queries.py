"""The residual hop: what the question still asks once a parent is read, put to the keyword index.

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
from query_api.retrieval.retrievers.graph_edges import Parent
from query_api.retrieval.retrievers.text import keyword_channel
from query_api.retrieval.scoring import ranked

BEST_SENTENCES = 2
MAX_NAMES = 12
RESIDUAL_HITS = 31  # 30, and the parent itself


class Hop(NamedTuple):
    """What one parent's residual query found: `best` is the highest BM25 but for the parent's own passage; `first` the
    passages found, best first."""

    parent: int
    query: str
    best: float
    first: tuple[str, ...]


def residual_hop(
    at: int, parent: Parent, question: Question, view: GraphView, text: TextSnapshot, scope: Scope
) -> Hop | None:
    """Of the parent with this index; None where nothing but itself is found. Raises TransientStoreError."""
    query = residual_query(question, parent, view.title(parent.document))
    found = keyword_channel(text, query, RESIDUAL_HITS, scope) if query else []
    return hop_of(at, view.passage_id(parent.passage), query, found)


def residual_query(question: Question, parent: Parent, title: str) -> str:
    """What the question asks that the parent does not hold, and the names in the parent's two best sentences that the
    question does not hold, but for the parent's own; empty without such a name."""
    held = question.stems_in(" ".join(sentence.text for sentence in parent.sentences))
    open_words = [question.word_of_stem[stem] for stem in question.stems if stem not in held]
    own = normalise_text(title)
    names = dict.fromkeys(
        name
        for sentence in parent.best_sentences(BEST_SENTENCES)
        for name in sentence.names
        if not question.names(name) and name not in own and not (own and own in name)
    )
    return " ".join([*open_words, *list(names)[:MAX_NAMES]]) if names else ""


def hop_of(parent: int, passage_id: str, query: str, found: Sequence[Candidate]) -> Hop | None:
    """None where nothing but the parent itself was found."""
    scores = {each.passage_id: each.score for each in found if each.passage_id != passage_id}
    if not scores:
        return None
    first = ranked(scores)
    return Hop(parent, query, scores[first[0]], tuple(first))


def along(hop: Hop, bm25: NDArray[np.float64]) -> NDArray[np.float64]:
    """How passages of these scores continue a hop: s / best, at most 1."""
    return np.minimum(bm25 / hop.best, 1.0)
