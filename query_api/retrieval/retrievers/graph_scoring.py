"""The graph channel's gate, and its sum: what reaches each passage, term by term, beside what the passage holds."""

from collections.abc import Callable, Mapping, Sequence
from operator import neg
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.edges import Numbers
from query_api.index.graph.identifiers import MISSING, Keys
from query_api.index.graph.view import GraphView
from query_api.index.text.segments import EVERYTHING, Scope
from query_api.index.text.snapshot import TextSnapshot
from query_api.query.entity_linking import MAX_TARGETS, LinkedNames
from query_api.retrieval.comparison import Compared, Comparer
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import Activation, Reason, Seed
from query_api.retrieval.retrievers.graph_seeds import PassageNumbers, ResidualHits, SeedSet, along

WITHOUT_NAMES = 0.5
WEB = 2.0
LOOKED_AT = 40  # from 20 to all that was found it makes no difference; 3 tell too little
SMOOTHING = 5  # passages: so many that mention a name are taken for granted, which decides for what is rare

NameUse = Callable[[Sequence[int]], Mapping[int, float]]
"""{entity: how surely its words are a name} of these entities."""


def name_use(view: GraphView, text: TextSnapshot) -> NameUse:
    """How surely a word is a name, from how the collection uses it: the share of the passages with the words of a name
    that mention what it names, p = (mentions + 5) / (holding + 5), told as 2 p - 1, from 0 for what is mostly an
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
    called = view.entity_names(entities)
    counts: dict[int, int] = {}
    for collection in {collection for collection, _ in called.values()}:
        names = {entity: name for entity, (of, name) in called.items() if of == collection}
        counts |= zip(names, text.passages_holding(list(names.values()), collection), strict=True)
    return np.array([counts.get(entity, 0) for entity in entities], dtype=np.int64)


def _own_passages(view: GraphView, entities: Keys) -> tuple[Numbers, Numbers]:
    """(n_entities,) the passages of the documents that each is the title of, and how many of them mention it."""
    about = view.about(entities)
    ranges = [view.passages_of_document(document) for document in about.document.tolist()]
    owner = np.repeat(about.asked, [len(each) for each in ranges])
    mentions = view.mention_edges_in(np.array([passage for each in ranges for passage in each], dtype=np.int64))
    own = np.unique(mentions.asked[mentions.entity == entities[owner[mentions.asked]]])
    size = len(entities)
    return np.bincount(owner, minlength=size), np.bincount(owner[own], minlength=size)


def opening(names: LinkedNames, use: NameUse, connected: Callable[[], float]) -> float:
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
    far as that is surely a name, or link to one: whether this part of the collection is a web of documents, or
    documents side by side."""
    best = sorted(fitting, key=lambda passage: (-fitting[passage], passage))[:LOOKED_AT]
    if not best:
        return 0.0
    passages = np.array(best, dtype=np.int64)
    documents = view.documents_of_passages(passages)
    leading = np.zeros(len(best))
    outward = view.links_from(passages)
    leading[outward.asked[outward.document != documents[outward.asked]]] = 1.0
    mentions = view.mention_edges_in(passages)
    entities, places = np.unique(mentions.entity, return_inverse=True)
    about = view.about(entities)
    whole = (about.weight >= 1) & (np.bincount(about.asked, minlength=len(entities))[about.asked] <= MAX_TARGETS)
    target = np.full(len(entities), MISSING, dtype=np.int64)
    target[about.asked[whole]] = about.document[whole]
    elsewhere = (target[places] != MISSING) & (target[places] != documents[mentions.asked])
    surely = use(entities[target != MISSING].tolist())
    of_each = np.array([surely.get(entity, 0.0) for entity in entities.tolist()])
    np.maximum.at(leading, mentions.asked[elsewhere], of_each[places[elsewhere]])
    return float(leading.mean())


MAX_REACHED = 300  # where the graph is asked alone, and walks
MAX_BESIDE = 100  # beside other channels, which find the rest; the first ten hits are those of 300
OPEN_WORDS_COUNT = 1.0
BESIDE_SEEDS = ("names", "matches")  # reasons that leave no seed behind
NO_EDGES = ("matches", "continues")  # what the graph holds explains more than what a search found

Weighted = Sequence[tuple[float, Sequence[Activation]]]


class GraphResults(NamedTuple):
    """What the graph reached: passage numbers by passage id, scores, the strongest reason for each; how far the scores
    may count beside other channels; and how all that was found compares with the question."""

    gate: float
    numbers: dict[str, int]
    scores: dict[str, float]
    reasons: dict[str, Reason]
    seed_set: SeedSet | None
    compared: Compared | None = None


NOTHING = GraphResults(0.0, {}, {}, {}, None)


def reached_passages(
    view: GraphView,
    numbers: PassageNumbers,
    scope: Scope,
    found: Compared,
    activations: Weighted,
    hops: Sequence[ResidualHits],
    most: int,
) -> dict[str, int]:
    """{passage id: number} of what can be scored: what the text channels and the hops found, as far as the graph holds
    it, and so many that the edges reach most strongly, as far as the scope allows them."""
    reached = numbers.of([*found.row_of, *(name for hop in hops for name in hop.first)])
    sums: dict[int, float] = {}
    for weight, of_term in activations:
        for passage, activation in graph_edges.strongest(of_term).items():
            sums[passage] = sums.get(passage, 0.0) + weight * activation.score
    ordered = [passage for _, passage in sorted(zip(map(neg, sums.values()), sums, strict=True))]
    if scope != EVERYTHING:  # a link may lead out of it
        ordered = [each for each in ordered if scope.allows(view.document_key(view.document_of_passage(each)))]
    led_to = ordered[:most]
    return reached | dict(zip(view.ids_of_passages(led_to), led_to, strict=True))


def open_shares(view: GraphView, comparer: Comparer, compared: Compared, seeds: Sequence[Seed]) -> NDArray[np.float64]:
    """(n_seeds, n_passages) the share of what the question still asks after each seed that each passage holds: by
    the idf of the words that the seed does not hold."""
    names = view.ids_of_passages([seed.passage for seed in seeds])
    known = compared.followed_by(comparer.of([name for name in names if name not in compared.row_of]))
    held = known.held[np.array([known.row_of[name] for name in names], dtype=np.intp)]
    still_open = np.where(held, 0.0, comparer.idf)
    totals = still_open.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = (still_open / np.where(totals > 0, totals, 1.0)) @ compared.held.T
    return shares


class GraphScores:
    """Score = Σ weight x strongest activation by each term. An edge from a seed counts up to twice, by the open
    share of the passage it leads to."""

    def __init__(self, reached: Mapping[str, int], compared: Compared) -> None:
        """`compared` holds every reached passage."""
        self._names = list(reached)
        self._numbers = reached
        self._compared = compared
        self._place = {number: place for place, number in enumerate(reached.values())}
        self._rows = np.array([compared.row_of[name] for name in reached], dtype=np.intp)
        self._scores = np.zeros(len(reached))
        self._continued = np.zeros(len(reached))
        self._leading = np.full(len(reached), MISSING)
        self._best: dict[int, tuple[float, Reason]] = {}

    def add_edges(self, activations: Weighted, shares: NDArray[np.float64]) -> None:
        """`shares` is (n_seeds, n_compared)."""
        held = shares[:, self._rows]
        raised = 1.0 + OPEN_WORDS_COUNT * held
        for weight, of_term in activations:
            strongest: dict[int, tuple[float, Reason]] = {}
            for passage, reached, reason in of_term:
                place = self._place.get(passage)
                if place is None:
                    continue
                score = reached
                if reason.term not in BESIDE_SEEDS:
                    score *= float(raised[reason.origin, place])
                if place not in strongest or score > strongest[place][0]:
                    strongest[place] = score, reason
            for place, (score, reason) in strongest.items():
                self._scores[place] += weight * score
                if reason.term not in NO_EDGES and weight * score > self._best.get(place, (0.0, reason))[0]:
                    self._best[place] = weight * score, reason

    def add_hop(self, hop: ResidualHits, seed: Seed, bm25: NDArray[np.float64]) -> None:
        """`bm25` is (n_reached,), of the hop's query. Nothing leads from a seed to itself."""
        continued = seed.weight * along(hop, bm25)
        if (own := self._place.get(seed.passage)) is not None:
            continued[own] = 0.0
        self._leading = np.where(continued > self._continued, hop.seed, self._leading)
        self._continued = np.maximum(self._continued, continued)

    def close_hops(self, weight: float) -> None:
        self._scores += weight * self._continued

    def add_prior(self, weight: float, prior: Mapping[int, float]) -> None:
        """`prior` is {passage number: how well it fits by its text}."""
        for passage, score in prior.items():
            place = self._place.get(passage)
            if place is not None and self._scores[place]:
                self._scores[place] += weight * score

    def results(self, gate: float, seed_set: SeedSet) -> GraphResults:
        leading = self._leading.tolist()
        continuing = {at: Reason("continues", at) for at in set(leading)}
        reasons = {place: continuing[at] for place, at in enumerate(leading) if at != MISSING}
        for at, seed in enumerate(seed_set.seeds):
            reasons[self._place.get(seed.passage, MISSING)] = Reason("matches", at)
        reasons |= {place: reason for place, (_, reason) in self._best.items()}
        scores = self._scores.tolist()
        found = sorted(
            (-score, name, place)
            for place, (score, name) in enumerate(zip(scores, self._names, strict=True))
            if score and place in reasons
        )
        return GraphResults(
            gate,
            {name: self._numbers[name] for _, name, _ in found},
            {name: scores[place] for _, name, place in found},
            {name: reasons[place] for _, name, place in found},
            seed_set,
            self._compared,
        )
