"""An answer without a language model: the sentences of the hits that most likely hold it, word for word."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.text_analysis import query_terms
from query_api.answers import composition
from query_api.answers.features import AskedFor, Titles, sentence_features
from query_api.answers.forest import AnswerWeights, packaged_weights
from query_api.answers.refusal import signs
from query_api.answers.sentences import HITS, NO_TEXTS, Sentence, TermIdf, sentences_of_hits, terms_in
from query_api.index.text.text_snapshot import LEAST_REPEATS
from query_api.query.analysis import Question
from schemas.hits import Hit

REPEATED = 0.02  # what such a one counts at least, and half where it has all that is asked beyond its title


class Extract(NamedTuple):
    """The numbers of the sentences that answer, in the order to read them in, and how likely anything found does; None
    where that is not known. `likely` is (n_sentences, 2), see `Forest.predict`."""

    sentences: list[Sentence]
    likely: NDArray[np.float64]
    chosen: list[int]
    titles: Titles
    signs: NDArray[np.float64] | None
    confidence: float | None

    def missing_words(self, question: Question) -> list[str]:
        """The content words of the question that neither a sentence nor a title of the hits holds, each once."""
        held = self.titles.held_with(self.sentences)
        return [
            word for word in dict.fromkeys(question.words) if (terms := query_terms(word)) and held.isdisjoint(terms)
        ]


class Described(NamedTuple):
    """The sentences of the first hits, the hits' titles, and the features of each sentence."""

    asked_for: AskedFor
    sentences: list[Sentence]
    titles: Titles
    features: NDArray[np.float64]


def describe(question: Question, hits: Sequence[Hit], weights: TermIdf, most_words: int) -> Described:
    """What the scorer learns from, and is asked about."""
    hits, idf, asked_for = hits[:HITS], weights.idf, AskedFor.by(question)
    sentences = sentences_of_hits(hits, idf, most_words)
    titles = Titles.of(question, hits, idf)
    return Described(asked_for, sentences, titles, sentence_features(question, asked_for, hits, sentences, titles, idf))


def extract(
    question: Question,
    hits: Sequence[Hit],
    weights: TermIdf,
    *,
    most_sentences: int,
    most_words: int,
    learned: AnswerWeights | None = None,
    repeats: Callable[[str], int] = NO_TEXTS.repeats,
) -> Extract:
    """From the first hits of a search, by what is `learned`, else what comes with the program. What many documents
    repeat, such as a licence or a footer, gives way to what says something of the question; `repeats` is asked for few
    sentences."""
    learned = learned or packaged_weights()
    asked_for, sentences, titles, features = describe(question, hits, weights, most_words)
    likely = composition.without_fragments(asked_for, sentences, learned.forest.predict(features), titles)
    likely = composition.with_definitions(question, sentences, likely, titles).copy()
    chosen, looked_at = composition.choose(sentences, likely, most_sentences, most_words), set[int]()
    while len(looked_at) < composition.CANDIDATES and (new := set(chosen) - looked_at):
        looked_at |= new
        repeated = [at for at in sorted(new) if repeats(sentences[at].text) >= LEAST_REPEATS]
        if repeated:
            of_question = [_share_beyond_title(sentences[at], hits, titles, weights.idf) for at in repeated]
            likely[repeated] *= np.maximum(np.square(of_question) / 2, REPEATED).reshape(-1, 1)
            chosen = composition.choose(sentences, likely, most_sentences, most_words)
    chosen = [chosen[at] for at in composition.in_order([sentences[at] for at in chosen], titles)]
    seen = signs(question, hits, sentences, titles, weights)
    return Extract(sentences, likely, chosen, titles, seen, None if seen is None else learned.answered(seen))


def _share_beyond_title(sentence: Sentence, hits: Sequence[Hit], titles: Titles, idf: Mapping[int, float]) -> float:
    """The share of the question's idf that a sentence or the headings above it hold, and its document's title not."""
    section = " ".join(hits[sentence.hit].section)
    held = (sentence.terms | terms_in(section, 0, len(section), idf)) - titles.terms[sentence.hit]
    return math.fsum(idf[term] for term in sorted(held)) / (math.fsum(idf.values()) or 1.0)
