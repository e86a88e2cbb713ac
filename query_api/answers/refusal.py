"""Whether anything that was found answers a question: signs, from which a regression says how likely."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.text_analysis import query_terms
from query_api.answers.features import Titles
from query_api.answers.sentences import HITS, Sentence, TermIdf
from query_api.query.analysis import Question
from schemas.hits import Hit

SIGNS = ("confidence", "mean_confidence", "cosine", "names_missing", "best_hit", "size")
FIRST = 3  # hits whose highest confidence counts
USUAL_COSINE = 0.3  # of the hits that were learned from; for those of a search without vectors
_LEAST = 0.01  # below which, and as far from 1, a likelihood counts as this


def signs(
    question: Question, hits: Sequence[Hit], sentences: Sequence[Sentence], titles: Titles, weights: TermIdf
) -> NDArray[np.float64] | None:
    """(len(SIGNS),): the highest confidence of the first hits; the log-odds of the mean confidence of those that are
    looked at, and their mean cosine with the question, of which a high one says little where all passages resemble each
    other; the share of the question's names that neither a title nor a sentence of the hits holds; the highest share of
    the question's idf that one hit holds, with its title; the logarithm of the collection's size, since among many
    passages one is similar by chance. None where no confidence is known."""
    hits = hits[:HITS]
    known = [hit.confidence for hit in hits if hit.confidence is not None]
    if not known:
        return None
    names = _named_terms(question)
    mean = min(max(math.fsum(known) / len(hits), _LEAST), 1 - _LEAST)
    cosines = [hit.scores["vector"] for hit in hits if "vector" in hit.scores]
    held = [titles.terms[at].union(*(each.terms for each in sentences if each.hit == at)) for at in range(len(hits))]
    shares = [math.fsum(weights.idf[term] for term in sorted(terms)) for terms in held]
    return np.array(
        [
            max(hit.confidence or 0.0 for hit in hits[:FIRST]),
            math.log(mean / (1 - mean)),
            math.fsum(cosines) / len(cosines) if cosines else USUAL_COSINE,
            len(names.difference(*held)) / (len(names) or 1),
            max(shares) / (math.fsum(weights.idf.values()) or 1.0),
            weights.unknown,
        ]
    )


def _named_terms(question: Question) -> frozenset[int]:
    """The terms of the words of a question that are written as names are: with a capital, but for the first word, or
    with a digit."""
    marked = [
        word for at, word in enumerate(question.words) if any(map(str.isdigit, word)) or (at and word[0].isupper())
    ]
    return frozenset(term for word in marked for term in query_terms(word))
