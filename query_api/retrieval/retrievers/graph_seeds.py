"""Seeds: the few passages a question leads to directly, weighed sentence by sentence; and the residual hop, a keyword
search for what the question still asks once a seed is read."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.chunking.sentences import sentence_spans
from query_api.index.graph.edges import Neighbourhood
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import PassageReader
from query_api.index.text.text_segments import Candidate, Scope
from query_api.index.text.text_snapshot import TextSnapshot
from query_api.query.analysis import Question, WordWeights, normalise_text
from query_api.query.entity_linking import QueryLink
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import Seed, Sentence
from query_api.retrieval.retrievers.relation_walks import RelationStep
from query_api.retrieval.scoring import ranked, relative_to_best, sentence_weight

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
    found = text.keyword_search(query, RESIDUAL_HITS, scope) if query else []
    return residual_hits(at, view.passage_id(seed.passage), query, found)


def residual_query(question: Question, seed: Seed, title: str) -> str:
    """What the question asks that the seed does not hold, and the names in the seed's two best sentences that the
    question does not hold, but for the seed's own; empty without such a name."""
    covered = question.stems_in(" ".join(sentence.text for sentence in seed.sentences))
    open_words = [question.word_of_stem[stem] for stem in question.stems if stem not in covered]
    own = normalise_text(title)
    names = dict.fromkeys(
        name
        for sentence in seed.best_sentences(BEST_SENTENCES)
        for name in sentence.names
        if not question.names(name) and name not in own and not (own and own in name)
    )
    return " ".join([*open_words, *list(names)[:MAX_NAMES]]) if names else ""


def residual_hits(seed: int, passage_id: str, query: str, found: Sequence[Candidate]) -> ResidualHits | None:
    """None where nothing but the seed itself was found."""
    scores = {each.passage_id: each.score for each in found if each.passage_id != passage_id}
    if not scores:
        return None
    first = ranked(scores)
    return ResidualHits(seed, query, scores[first[0]], tuple(first))


def hop_strength(hop: ResidualHits, bm25: NDArray[np.float64]) -> NDArray[np.float64]:
    """How strongly passages of these scores continue a hop: s / best, at most 1."""
    return np.minimum(bm25 / hop.best, 1.0)


SEEDS = 3  # by their text; more did not help
NAMED_COUNTS = 0.3
SURELY_NAMED = 0.5  # strength of a name that makes a seed of what it leads to, beside the first three
MOST_NAMED = 3
MAX_SEED_CHARACTERS = 4_000
MAX_TITLE_TARGETS = 10


class SeedSet(NamedTuple):
    """The seeds of one question, before any edge is followed. `prior` is {number in the view: how well a passage fits
    by its text, in [0, 1]}."""

    links: list[QueryLink]
    prior: dict[int, float]
    seeds: list[Seed]


class ChosenSeeds(NamedTuple):
    """Passages by their numbers: `prior`, how well each fits by its text; `weights` of the chosen ones, relative to the
    best, best first; `via` the names of the question that lead to passages, with the relations from there."""

    prior: dict[int, float]
    weights: dict[int, float]
    via: dict[int, tuple[QueryLink, tuple[RelationStep, ...]]]


class PassageNumbers:
    """The numbers of passages in one view, each looked up once in a search. Safe to use from several threads."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
        self._known: dict[str, int] = {}

    def look_up(self, passage_ids: Iterable[str]) -> dict[str, int]:
        """{passage id: number}; passages that the graph does not hold yet are left out."""
        wanted = list(dict.fromkeys(passage_ids))
        unknown = [name for name in wanted if name not in self._known]
        if unknown:
            self._known.update(zip(unknown, self._view.passages(unknown).tolist(), strict=True))
        return {name: number for name in wanted if (number := self._known[name]) != MISSING}


def choose_seeds(
    view: GraphView,
    numbers: PassageNumbers,
    links: Sequence[QueryLink],
    fitting: Mapping[str, float],
    edges: Collection[str] = (),
) -> ChosenSeeds:
    """The best three passages by text score / best + .3 x query link, and up to three more that the question surely
    names; a seed counts for as much as the name that leads to it, if that is more.

    `fitting` is {passage id: text score} of what the text channels found; `edges` are the kinds to follow. Passages
    that the graph does not hold yet are left out; so are those of score 0.
    """
    relative = relative_to_best(fitting)
    prior = {number: relative[name] for name, number in numbers.look_up(relative).items()}
    named = graph_edges.strongest(graph_edges.named(view, links, graph_edges.entry_passages(view, prior), edges))
    scores = dict(prior)
    for passage, activation in named.items():
        scores[passage] = scores.get(passage, 0.0) + NAMED_COUNTS * activation.score
    ordered = sorted((passage for passage in scores if scores[passage] > 0), key=lambda each: (-scores[each], each))
    sure = [each for each in ordered[SEEDS:] if each in named and named[each].score >= SURELY_NAMED]
    chosen = [*ordered[:SEEDS], *sure[:MOST_NAMED]]
    weights = {
        passage: max(scores[passage] / scores[chosen[0]], named[passage].score if passage in named else 0.0)
        for passage in chosen
    }
    via = {passage: (links[reason.origin], reason.over) for passage, (_, _, reason) in named.items()}
    return ChosenSeeds(prior, weights, via)


def read_seeds(
    question: Question, view: GraphView, passages: PassageReader, word_weights: WordWeights, chosen: ChosenSeeds
) -> list[Seed]:
    """The chosen passages with their sentences and entities weighed; those whose text is gone are left out. Raises
    TransientStoreError."""
    wanted = list(chosen.weights)
    ids = dict(zip(wanted, view.ids_of_passages(wanted), strict=True))
    texts = passages.read(ids.values())
    mentioned = graph_edges.first_mentions(view, wanted)
    near = graph_edges.neighbourhoods(view, list(set().union(*mentioned.values())))
    names = {entity: each.name for entity, each in near.items()}
    by_specificity = _by_specificity(near)
    titles = _titles(view, wanted)
    seeds = []
    for passage, weight in chosen.weights.items():
        row = texts.get(ids[passage])
        if row is None:
            continue
        content = f"{row.title}.\n{row.text}"[:MAX_SEED_CHARACTERS]
        first_chunks = {entity: chunk for entity, chunk in mentioned[passage].items() if entity in names}
        own_names = [names[entity] for entity in by_specificity if entity in first_chunks]
        link, over = chosen.via.get(passage, (None, ()))
        sentences = tuple(_sentences(question, content, titles[passage], own_names, word_weights))
        entities = _weighted_entities(first_chunks, names, sentences)
        seeds.append(
            Seed(
                passage,
                view.document_of_passage(passage),
                weight,
                link,
                sentences,
                entities,
                near={entity: near[entity] for entity in entities},
                over=over,
            )
        )
    return seeds


def _titles(view: GraphView, passages: Sequence[int]) -> dict[int, list[str]]:
    """{passage: the names of what its document is about, the longest first}."""
    about = view.about_of(np.array([view.document_of_passage(passage) for passage in passages], dtype=np.int64))
    names = view.entity_names(about.entity.tolist())
    titles: dict[int, list[str]] = {passage: [] for passage in passages}
    for query_index, entity in zip(about.query_index.tolist(), about.entity.tolist(), strict=True):
        if entity in names:
            titles[passages[query_index]].append(names[entity][1])
    return {passage: sorted(of_passage, key=lambda name: (-len(name), name)) for passage, of_passage in titles.items()}


def _weighted_entities(
    first_chunks: Mapping[int, int], names: Mapping[int, str], sentences: Sequence[Sentence]
) -> dict[int, graph_edges.MentionedEntity]:
    """The entities of a passage, each with the weight of the best sentence that names it."""
    shares: dict[str, float] = {}
    for sentence in sentences:
        for name in sentence.names:
            shares[name] = max(shares.get(name, 0.0), sentence.share)
    written = " ".join(sentence.normalised for sentence in sentences)
    return {
        entity: graph_edges.MentionedEntity(names[entity], chunk, sentence_weight(shares.get(names[entity], 0.0)))
        for entity, chunk in first_chunks.items()
        if names[entity] in shares or f" {names[entity]} " not in written  # one made of parts is in no text as such
    }


def _by_specificity(near: Mapping[int, Neighbourhood]) -> list[int]:
    """Entities in the order in which their names are matched: titles first, then names that other passages mention
    too, the longer first. So `Kiss and Tell` leaves no `Kiss` where both are titles. Entities and not names: a title in
    one collection is not a title in another."""

    def specificity(entity: int) -> tuple[int, int, str]:
        name, frequency, about, _ = near[entity]
        rank = 0 if 0 < len(about) <= MAX_TITLE_TARGETS else 1 if frequency > 1 else 2
        return rank, -len(name), name

    return sorted(near, key=specificity)


def _sentences(
    question: Question, content: str, titles: Sequence[str], names: Sequence[str], word_weights: WordWeights
) -> Iterator[Sentence]:
    """`titles` are matched before all names: `Love in a Fallen City` does not mention the `Fallen City`."""
    own_names = frozenset(names)
    for start, end in sentence_spans(content):
        sentence = content[start:end]
        normalised = rest = f" {normalise_text(sentence)} "
        found = []
        for name in dict.fromkeys([*titles, *names]):
            if f" {name} " in rest:
                rest = rest.replace(f" {name} ", "  ")
                if name in own_names:
                    found.append(name)
        yield Sentence(sentence, normalised, word_weights.share(question.stems_in(sentence)), tuple(found))
