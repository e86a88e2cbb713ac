"""The graph channel's sum: what reaches each passage, term by term, beside what the passage itself holds."""

from collections.abc import Mapping, Sequence
from operator import neg
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.view import GraphView
from query_api.index.text.segments import EVERYTHING, Scope
from query_api.retrieval.comparison import Compared, Comparer
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import Activation, Reason, Seed
from query_api.retrieval.retrievers.graph_seeds import PassageNumbers, SeedSet
from query_api.retrieval.retrievers.residual_queries import ResidualHits, along

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
