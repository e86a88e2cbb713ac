"""Whether anything that was found answers a question: signs, from which a regression says how likely."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.text_analysis import query_terms
from query_api.answers.features import AskedFor, Titles
from query_api.answers.sentences import Sentence, TermIdf
from query_api.query.analysis import Question
from schemas.hits import Hit

SIGNS = ("confidence", "names_missing", "lacks_kind", "held", "size")
FIRST = 3  # hits whose confidence counts


def signs(
    question: Question,
    asked_for: AskedFor,
    hits: Sequence[Hit],
    sentences: Sequence[Sentence],
    chosen: Sequence[Sentence],
    titles: Titles,
    weights: TermIdf,
) -> NDArray[np.float64] | None:
    """(len(SIGNS),): the highest confidence of the first hits; the share of the question's names that neither a title
    nor a sentence of the hits holds; 1 where a time or a number is asked for and no chosen sentence has one, else 0;
    the share of the question's idf that titles and sentences hold; the logarithm of the collection's size, since among
    many passages one is similar by chance. None where no confidence is known."""
    confidences = [hit.confidence for hit in hits[:FIRST] if hit.confidence is not None]
    if not confidences:
        return None
    names = _named_terms(question)
    held = titles.held_with(sentences)
    lacks_kind = asked_for.is_measured and not any(asked_for.is_in(each.text) for each in chosen)
    of_held = math.fsum(weight for term, weight in weights.idf.items() if term in held)
    return np.array(
        [
            max(confidences),
            len(names - held) / (len(names) or 1),
            float(lacks_kind),
            of_held / (math.fsum(weights.idf.values()) or 1.0),
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
