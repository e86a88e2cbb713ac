"""Parents: the few passages that a question leads to directly, and what their sentences tell about it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from indexer.sentences import sentence_spans
from query_api.channels import terms
from query_api.channels.query_links import QueryLink
from query_api.channels.question import Question, WordWeights, normalise_text
from query_api.channels.terms import Parent, Sentence
from query_api.graph.identifiers import MISSING
from query_api.graph.view import GraphView
from query_api.ranking import relative_to_best
from query_api.reading.passages import PassageReader
from query_api.reading.snapshot import Candidate

PARENTS = 3  # more did not help
NAMED_COUNTS = 0.3
POOL = 24
MAX_PARENT_CHARACTERS = 4_000


class ChosenParents(NamedTuple):
    """Passages by their numbers: `prior`, how well each fits by its text; `weights` of the chosen ones, relative to the
    best, best first; `via` the names of the question that lead to passages."""

    prior: dict[int, float]
    weights: dict[int, float]
    via: dict[int, QueryLink]


def choose_parents(
    view: GraphView, links: Sequence[QueryLink], vector: Sequence[Candidate], keyword: Sequence[Candidate]
) -> ChosenParents:
    """The best three passages by .5 vector + .5 keyword + .3 query link, each relative to its best.

    Passages that the graph does not hold yet are left out; so are those of score 0.
    """
    by_vector = _numbered(view, relative_to_best(best_scores(vector)))
    by_words = _numbered(view, relative_to_best(best_scores(keyword)))
    prior = text_prior(by_vector, by_words)
    named = terms.strongest(terms.named(links, terms.entrances(view, prior)))
    scores = dict(prior)
    for passage, reach in named.items():
        scores[passage] = scores.get(passage, 0.0) + NAMED_COUNTS * reach.score
    best = sorted(scores, key=lambda passage: (-scores[passage], passage))[:PARENTS]
    weights = {passage: scores[passage] / scores[best[0]] for passage in best if scores[passage] > 0}
    return ChosenParents(prior, weights, {passage: links[reach.reason.origin] for passage, reach in named.items()})


def text_prior(vector: Mapping[int, float], keyword: Mapping[int, float]) -> dict[int, float]:
    """.5 vector + .5 keyword; what a channel lacks counts 0."""
    return {
        passage: 0.5 * vector.get(passage, 0.0) + 0.5 * keyword.get(passage, 0.0)
        for passage in vector.keys() | keyword.keys()
    }


def pool_of(keyword: Sequence[Candidate]) -> list[str]:
    """The passages whose texts say which of the question's words tell candidates apart."""
    return list(dict.fromkeys(candidate.passage_id for candidate in keyword[:POOL]))


def read_parents(
    question: Question, view: GraphView, passages: PassageReader, chosen: ChosenParents, pool: Sequence[str]
) -> list[Parent]:
    """The chosen passages with their sentences and entities weighed; those whose text is gone are left out.

    One read brings their texts, and those of the pool that says what each word of the question is worth.
    """
    ids = {passage: view.passage_id(passage) for passage in chosen.weights}
    texts = passages.read([*pool, *ids.values()])
    word_weights = WordWeights.over(
        question.stems, (question.stems_in(texts[identifier].text) for identifier in pool if identifier in texts)
    )
    parents = []
    for passage, weight in chosen.weights.items():
        row = texts.get(ids[passage])
        if row is not None:
            content = f"{row.title}.\n{row.text}"[:MAX_PARENT_CHARACTERS]
            parents.append(_parent(question, view, passage, weight, chosen.via.get(passage), content, word_weights))
    return parents


def _parent(
    question: Question,
    view: GraphView,
    passage: int,
    weight: float,
    link: QueryLink | None,
    content: str,
    word_weights: WordWeights,
) -> Parent:
    mentions = view.mentions_in(np.array([passage], dtype=np.int64))
    first_chunks: dict[int, int] = {}
    for entity, chunk in zip(mentions.entity.tolist(), mentions.chunk.tolist(), strict=True):
        first_chunks.setdefault(entity, chunk)
    names = {entity: name for entity, (_, name) in view.entity_names(list(first_chunks)).items()}
    longest_first = sorted(set(names.values()), key=lambda name: (-len(name), name))
    sentences = tuple(_sentences(question, content, longest_first, word_weights))
    entities = {
        entity: terms.Held(name, first_chunks[entity], terms.value(_best_share(sentences, name)))
        for entity, name in names.items()
    }
    return Parent(passage, view.document_of_passage(passage), weight, link, sentences, entities)


def _sentences(
    question: Question, content: str, longest_first: Sequence[str], word_weights: WordWeights
) -> Iterator[Sentence]:
    for start, end in sentence_spans(content):
        sentence = content[start:end]
        normalised = rest = f" {normalise_text(sentence)} "
        names = []
        for name in longest_first:
            if f" {name} " in rest:
                names.append(name)
                rest = rest.replace(f" {name} ", "  ")
        yield Sentence(sentence, normalised, word_weights.share(question.stems_in(sentence)), tuple(names))


def _best_share(sentences: Sequence[Sentence], name: str) -> float:
    return max((sentence.share for sentence in sentences if f" {name} " in sentence.normalised), default=0.0)


def best_scores(candidates: Sequence[Candidate]) -> dict[str, float]:
    """{passage id: its best score} of candidates that are sorted best first."""
    scores: dict[str, float] = {}
    for candidate in candidates:
        scores.setdefault(candidate.passage_id, candidate.score)
    return scores


def _numbered(view: GraphView, scores: Mapping[str, float]) -> dict[int, float]:
    """Scores by passage number; passages that the graph does not hold yet are left out."""
    numbers = view.passages(list(scores)).tolist()
    return {number: score for number, score in zip(numbers, scores.values(), strict=True) if number != MISSING}
