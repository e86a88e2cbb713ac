"""The graph channel's gate, and its score: a weighted sum of terms, by what a passage adds to a seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import neg
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.edges import Numbers
from query_api.index.graph.identifiers import MISSING, Keys
from query_api.index.graph.view import GraphView
from query_api.index.text.text_segments import EVERYTHING, Scope
from query_api.index.text.text_snapshot import TextSnapshot
from query_api.query.entity_linking import MAX_TARGETS, LinkedNames
from query_api.retrieval.exact_scores import CandidateScores, ExactScorer
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import Activation, Reason, Seed
from query_api.retrieval.retrievers.graph_seeds import PassageNumbers, ResidualHits, SeedSet, hop_strength
from query_api.retrieval.retrievers.relation_walks import joins

WITHOUT_NAMES = 0.5
WEB = 2.0
WEB_SAMPLE = 40  # passages; from 20 on it makes no difference, 3 are too few
SMOOTHING = 5  # passages assumed to mention a name, which decides for what is rare

NameUse = Callable[[Sequence[int]], Mapping[int, float]]
"""{entity: how surely its words are a name} of these entities."""


def name_use(view: GraphView, text: TextSnapshot) -> NameUse:
    """How surely a word is a name, from how the collection uses it: the share of the passages with the words of a name
    that mention what it names, p = (mentions + 5) / (holding + 5), scaled to 2 p - 1, from 0 for what is mostly an
    ordinary word to 1 for what is always a name. The passages of a document all hold its title: they do not count for
    it.

    The keyphraseness of Mihalcea, Csomai: "Wikify! Linking Documents to Encyclopedic Knowledge", CIKM 2007, section
    3.1, smoothed. Each entity is looked up once.
    """
    known: dict[int, float] = {}

    def of(entities: Sequence[int]) -> Mapping[int, float]:
        unknown = [entity for entity in dict.fromkeys(entities) if entity not in known]
        if unknown:
            keys = np.array(unknown, dtype=np.uint64)
            own, own_mentions = _own_passages(view, keys)
            mentions = view.passage_frequencies(keys) - own_mentions
            holding = np.maximum(_holding(view, text, unknown) - own, mentions)
            shares = (mentions + SMOOTHING) / (holding + SMOOTHING)
            known.update(zip(unknown, np.maximum(0.0, 2 * shares - 1).tolist(), strict=True))
        return {entity: known[entity] for entity in entities}

    return of


def _holding(view: GraphView, text: TextSnapshot, entities: Sequence[int]) -> Numbers:
    """(n_entities,) the passages of its collection that hold all words of each name."""
    known = view.entity_names(entities)
    counts: dict[int, int] = {}
    for collection in {collection for collection, _ in known.values()}:
        names = {entity: name for entity, (of, name) in known.items() if of == collection}
        counts |= zip(names, text.passages_holding(list(names.values()), collection), strict=True)
    return np.array([counts.get(entity, 0) for entity in entities], dtype=np.int64)


def _own_passages(view: GraphView, entities: Keys) -> tuple[Numbers, Numbers]:
    """(n_entities,) the passages of the documents that each is the title of, and how many of them mention it."""
    about = view.about(entities)
    ranges = [view.passages_of_document(document) for document in about.document.tolist()]
    owner = np.repeat(about.query_index, [len(each) for each in ranges])
    mentions = view.mention_edges_in(np.array([passage for each in ranges for passage in each], dtype=np.int64))
    own = np.unique(mentions.query_index[mentions.entity == entities[owner[mentions.query_index]]])
    size = len(entities)
    return np.bincount(owner, minlength=size), np.bincount(owner[own], minlength=size)


def open_gate(names: LinkedNames, use: NameUse, connected: Callable[[], float]) -> float:
    """How surely the question names a title, by the surest of the names; and at least the smoothstep of twice the share
    of what fits it that leads on by an explicit edge (`connected`), in full when the question names anything at all, by
    half otherwise. Where every second text leads on, documents are a web; where one in thirty does, that is chance."""
    surest = 0.0
    if names.links:
        entities = [link.entity for link in names.links]
        surest = 1.0 if names.given else max(use(entities).values())
    if surest >= 1.0:
        return surest
    web = smoothstep(min(1.0, WEB * connected()))
    return max(surest, web if names.links or names.entities else WITHOUT_NAMES * web)


def smoothstep(share: float) -> float:
    """3 x² - 2 x³, the cubic from 0 at 0 to 1 at 1 that is level at both."""
    return share * share * (3 - 2 * share)


def connected_share(view: GraphView, fitting: Mapping[int, float], use: NameUse) -> float:
    """The share of the best passages, {number: how well it fits}, that mention another document by its whole title, as
    far as that is surely a name, or link to one, or that a relation joins with something: whether this part of the
    collection is a web of documents, or documents side by side."""
    best = sorted(fitting, key=lambda passage: (-fitting[passage], passage))[:WEB_SAMPLE]
    if not best:
        return 0.0
    passages = np.array(best, dtype=np.int64)
    documents = view.documents_of_passages(passages)
    leading = np.zeros(len(best))
    outward = view.links_from(passages)
    leading[outward.query_index[outward.document != documents[outward.query_index]]] = 1.0
    mentions = view.mention_edges_in(passages)
    entities, entity_at = np.unique(mentions.entity, return_inverse=True)
    about = view.about(entities)
    whole = (about.weight >= 1) & (
        np.bincount(about.query_index, minlength=len(entities))[about.query_index] <= MAX_TARGETS
    )
    target = np.full(len(entities), MISSING, dtype=np.int64)
    target[about.query_index[whole]] = about.document[whole]
    outward_mention = (target[entity_at] != MISSING) & (target[entity_at] != documents[mentions.query_index])
    surely = use(entities[target != MISSING].tolist())
    of_each = np.array([surely.get(entity, 0.0) for entity in entities.tolist()])
    leading[joins(view, best)] = 1.0
    np.maximum.at(leading, mentions.query_index[outward_mention], of_each[entity_at[outward_mention]])
    return float(leading.mean())


MAX_REACHED = 300  # where the graph is searched alone, and walks
MAX_REACHED_HYBRID = 100  # beside other channels, which find the rest; the first ten hits are those of 300
UNCOVERED_IDF_BONUS = 1.0
SEEDLESS_TERMS = ("names", "matches")  # reasons that lead from no seed
NOT_EDGES = ("matches", "continues")  # an edge explains more than what a search found

Weighted = Sequence[tuple[float, Sequence[Activation]]]


@dataclass(frozen=True)
class TermWeights:
    """The weight of each term in the sum; docs/ranking.md says how they were found.

    `seed_alone` and `prior` count when the graph is searched alone: a seed is then a hit too, and a reached passage's
    own text counts; beside other channels these do so themselves.
    """

    named: float = 1.0
    title_mention: float = 0.4
    specific_title_mention: float = 0.4
    shared: float = 0.5
    residual: float = 0.5
    linked: float = 0.4
    stated: float = 0.4
    related: float = 1.0
    seed: float = 0.2
    seed_alone: float = 0.5
    prior: float = 0.5


class GraphResults(NamedTuple):
    """What the graph reached: passage numbers by passage id, scores, the strongest reason for each; the gate, which
    weighs the scores beside other channels; and the exact scores of all candidates."""

    gate: float
    numbers: dict[str, int]
    scores: dict[str, float]
    reasons: dict[str, Reason]
    seed_set: SeedSet | None
    exact: CandidateScores | None = None


NO_RESULTS = GraphResults(0.0, {}, {}, {}, None)


def reached_passages(
    view: GraphView,
    numbers: PassageNumbers,
    scope: Scope,
    found: CandidateScores,
    activations: Weighted,
    hops: Sequence[ResidualHits],
    most: int,
) -> dict[str, int]:
    """{passage id: number} of what can be scored: what the text channels and the hops found, as far as the graph holds
    it, and the `most` that the edges reach most strongly, as far as the scope allows them."""
    reached = numbers.look_up([*found.row_of, *(name for hop in hops for name in hop.first)])
    sums: dict[int, float] = {}
    for weight, of_term in activations:
        for passage, activation in graph_edges.strongest(of_term).items():
            sums[passage] = sums.get(passage, 0.0) + weight * activation.score
    ordered = [passage for _, passage in sorted(zip(map(neg, sums.values()), sums, strict=True))]
    if scope != EVERYTHING:  # a link may lead out of it
        ordered = [each for each in ordered if scope.allows(view.document_key(view.document_of_passage(each)))]
    led_to = ordered[:most]
    return reached | dict(zip(view.ids_of_passages(led_to), led_to, strict=True))


def uncovered_idf_shares(
    view: GraphView, scorer: ExactScorer, exact: CandidateScores, seeds: Sequence[Seed]
) -> NDArray[np.float64]:
    """(n_seeds, n_passages) the share of the question's idf that a seed leaves uncovered that each passage covers."""
    names = view.ids_of_passages([seed.passage for seed in seeds])
    known = exact.concat(scorer.score([name for name in names if name not in exact.row_of]))
    of_seeds = known.term_matches[np.array([known.row_of[name] for name in names], dtype=np.intp)]
    uncovered = np.where(of_seeds, 0.0, scorer.idf)
    totals = uncovered.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = (uncovered / np.where(totals > 0, totals, 1.0)) @ exact.term_matches.T
    return shares


class GraphScores:
    """Score = Σ weight x strongest activation by each term. An edge from a seed counts up to twice, by the uncovered
    idf share of the passage it leads to."""

    def __init__(self, reached: Mapping[str, int], exact: CandidateScores) -> None:
        """`exact` holds every reached passage."""
        self._names = list(reached)
        self._numbers = reached
        self._exact = exact
        self._index = {number: at for at, number in enumerate(reached.values())}
        self._rows = np.array([exact.row_of[name] for name in reached], dtype=np.intp)
        self._scores = np.zeros(len(reached))
        self._continued = np.zeros(len(reached))
        self._leading = np.full(len(reached), MISSING)
        self._best: dict[int, tuple[float, Reason]] = {}

    def add_edges(self, activations: Weighted, shares: NDArray[np.float64]) -> None:
        """`shares` is (n_seeds, n_compared)."""
        factors = 1.0 + UNCOVERED_IDF_BONUS * shares[:, self._rows]
        for weight, of_term in activations:
            strongest: dict[int, tuple[float, Reason]] = {}
            for passage, activation, reason in of_term:
                at = self._index.get(passage)
                if at is None:
                    continue
                seedless = reason.term in SEEDLESS_TERMS
                score = activation if seedless else activation * float(factors[reason.origin, at])
                if at not in strongest or score > strongest[at][0]:
                    strongest[at] = score, reason
            for at, (score, reason) in strongest.items():
                self._scores[at] += weight * score
                if reason.term not in NOT_EDGES and weight * score > self._best.get(at, (0.0, reason))[0]:
                    self._best[at] = weight * score, reason

    def add_hop(self, hop: ResidualHits, seed: Seed, bm25: NDArray[np.float64]) -> None:
        """`bm25` is (n_reached,), of the hop's query. Nothing leads from a seed to itself."""
        continued = seed.weight * hop_strength(hop, bm25)
        if (own := self._index.get(seed.passage)) is not None:
            continued[own] = 0.0
        self._leading = np.where(continued > self._continued, hop.seed, self._leading)
        self._continued = np.maximum(self._continued, continued)

    def add_hop_scores(self, weight: float) -> None:
        self._scores += weight * self._continued

    def add_prior(self, weight: float, prior: Mapping[int, float]) -> None:
        """`prior` is {passage number: how well it fits by its text}."""
        for passage, score in prior.items():
            at = self._index.get(passage)
            if at is not None and self._scores[at]:
                self._scores[at] += weight * score

    def results(self, gate: float, seed_set: SeedSet) -> GraphResults:
        leading = self._leading.tolist()
        continuing = {at: Reason("continues", at) for at in set(leading)}
        reasons = {at: continuing[origin] for at, origin in enumerate(leading) if origin != MISSING}
        for origin, seed in enumerate(seed_set.seeds):
            reasons[self._index.get(seed.passage, MISSING)] = Reason("matches", origin)
        reasons |= {at: reason for at, (_, reason) in self._best.items()}
        scores = self._scores.tolist()
        found = sorted(
            (-score, name, at)
            for at, (score, name) in enumerate(zip(scores, self._names, strict=True))
            if score and at in reasons
        )
        return GraphResults(
            gate,
            {name: self._numbers[name] for _, name, _ in found},
            {name: scores[at] for _, name, at in found},
            {name: reasons[at] for _, name, at in found},
            seed_set,
            self._exact,
        )
