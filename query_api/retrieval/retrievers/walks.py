"""Walks from a few strong seeds: steps between passages; how near, how central, how directly related each is."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from indexer.linking import DEFAULT_RULES
from query_api.index.graph.builder import CHUNK_EDGE_KINDS
from query_api.index.graph.edges import rows_of
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.view import GraphView
from query_api.index.text.segments import EVERYTHING, Scope
from query_api.index.text.snapshot import TextSnapshot
from query_api.query.analysis import Question
from query_api.query.entity_linking import MAX_TARGETS
from query_api.retrieval.comparison import Compared, Comparer
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import (
    Activation,
    Entrances,
    MentionedEntity,
    Reason,
    Seed,
    follows,
    looks_at,
    strongest,
)
from query_api.retrieval.retrievers.graph_scoring import MAX_REACHED, GraphResults
from query_api.retrieval.retrievers.graph_seeds import SeedSet
from schemas.curation import LinkingChoice
from schemas.graph_delta import predicate_strength


def steps_from(
    view: GraphView, seeds: Iterable[Seed], enter: Entrances, edges: Collection[str], *, between_chunks: bool
) -> list[Activation]:
    """Every passage one step away from each of these, both directions, over the kinds in `edges`, all when empty; over
    edges between chunks only if asked to.

    An activation's score is the weight of the edge, in (0, 1], whatever its seed weighs; its `origin` the index of the
    seed.
    """
    whole = [replace(seed, weight=1.0) for seed in seeds]
    if not whole:
        return []
    around = graph_edges.surroundings(view, whole)
    kinds: dict[str, Callable[[], Iterable[Activation]]] = {
        "title_mention": lambda: graph_edges.title_mentions(whole, around, enter)[1],
        "mentioned_by": lambda: graph_edges.mentioned_by(view, whole),
        "shared_entity": lambda: graph_edges.shared(whole, around),
        "link": lambda: graph_edges.linked(view, whole, enter),
        "statement": lambda: graph_edges.stated(view, whole, enter, predicate_strength),
    }
    stepped = [
        activation
        for kind, activate in kinds.items()
        if looks_at(kind, edges)
        for activation in activate()
        if activation.score and follows(kind, activation.reason.predicate, edges)
    ]
    if between_chunks and any(looks_at(kind, edges) for kind in CHUNK_EDGE_KINDS):
        stepped += [
            activation for activation in within_document(view, whole) if looks_at(activation.reason.term, edges)
        ]
    return stepped


def within_document(view: GraphView, seeds: Sequence[Seed]) -> Iterator[Activation]:
    """Other passages of a seed's document, over the edges between its chunks and theirs; once for each such edge: its
    weight. The reason's term is one of CHUNK_EDGE_KINDS."""
    chunks = [view.chunks_of_passage(seed.passage) for seed in seeds]
    owners = [at for at, of_seed in enumerate(chunks) for _ in of_seed]
    around = view.chunk_edges(np.array(list(chain.from_iterable(chunks)), dtype=np.int64))
    for asked, chunk, kind, weight in rows_of(around.asked, around.other, around.kind, around.weight):
        at, passage = owners[asked], view.passage_of_chunk(chunk)
        if passage != seeds[at].passage:
            yield Activation(passage, weight, Reason(CHUNK_EDGE_KINDS[kind], at, chunk=chunk))


def passed_through(view: GraphView, reached: Mapping[int, Reason], values: Mapping[int, float]) -> list[Seed]:
    """Passages as seeds of the next step. `reached` says how an earlier seed leads to each, `values` what each
    tells about the question: the v of all its entities, whose names are not read."""
    return [
        Seed(
            passage,
            view.document_of_passage(passage),
            1.0,
            None,
            (),
            {entity: MentionedEntity("", chunk, values[passage]) for entity, chunk in first_chunks.items()},
            reached[passage],
        )
        for passage, first_chunks in graph_edges.first_mentions(view, list(reached)).items()
    ]


MOST_STEPS = 4_000  # of the second ring; where passages share much, fewer of them are gone on from
RING = 32
BATCH = 8
PRIOR_ALONE = 0.5


@dataclass(frozen=True)
class WalkStart:
    """What one question has led to: its seeds in `seeds`, all that the text channels found in `found`, the kinds
    of `edges` to follow, all when empty. `alone` where the graph is the only channel that counts. `hops` are what an
    expansion goes; `across` finds what is like seeds in other documents, None where edges between chunks are not
    walked."""

    question: Question
    view: GraphView
    seed_set: SeedSet
    comparer: Comparer
    found: Compared
    scope: Scope
    gate: float
    edges: Collection[str]
    alone: bool
    hops: int = 2
    across: Callable[[Sequence[Seed]], Iterable[Activation]] | None = None

    def first_steps(self) -> list[Activation]:
        """What the seeds lead to."""
        seeds = self.seed_set.seeds
        like = self.across(seeds) if self.across is not None and looks_at("similar_to", self.edges) else ()
        return [*self._steps(seeds), *like]

    def second_steps(self, ring: Sequence[int], first: Iterable[Activation]) -> tuple[list[Seed], list[Activation]]:
        """The passages of the ring that were gone on from, and what they lead to: batch after batch, the first ones
        first, until there are enough steps. Origins count on from the seeds of the question."""
        reasons = {passage: activation.reason for passage, activation in graph_edges.strongest(first).items()}
        middle: list[Seed] = []
        steps: list[Activation] = []
        values = self._values(ring[:RING])
        for at in range(0, len(values), BATCH):
            if len(steps) >= MOST_STEPS:
                break
            batch = passed_through(self.view, {each: reasons[each] for each in ring[at : at + BATCH]}, values)
            begins = len(self.seed_set.seeds) + len(middle)
            steps += [_counted_on(activation, begins) for activation in self._steps(batch)]
            middle += batch
        return middle, steps

    def results(
        self, scores: Mapping[int, float], reasons: Mapping[int, Reason], middle: Sequence[Seed]
    ) -> GraphResults:
        """The best 300 by their scores, which count by their share of the best; where the graph is alone, half of how
        well each fits by its text is added, as a share of the best too."""
        view, seeds = self.view, self.seed_set.seeds
        ordered = sorted(scores, key=lambda passage: (-scores[passage], view.passage_id(passage)))
        if self.scope != EVERYTHING:
            ordered = [each for each in ordered if self.scope.allows(view.document_key(view.document_of_passage(each)))]
        kept = {view.passage_id(passage): passage for passage in ordered[:MAX_REACHED]}
        compared = self.found.followed_by(self.comparer.of([name for name in kept if name not in self.found.row_of]))
        best = max((scores[passage] for passage in kept.values()), default=0.0) or 1.0
        own: NDArray[np.float64] = compared.text[[compared.row_of[name] for name in kept]]
        share = PRIOR_ALONE / own.max() if self.alone and len(own) and own.max() > 0 else 0.0
        final = {
            name: scores[passage] / best + share * fit
            for (name, passage), fit in zip(kept.items(), own.tolist(), strict=True)
        }
        told = {seed.passage: Reason("matches", at) for at, seed in enumerate(seeds)} | dict(reasons)
        names = sorted(final, key=lambda name: (-final[name], name))
        return GraphResults(
            self.gate,
            {name: kept[name] for name in names},
            {name: final[name] for name in names},
            {name: told[kept[name]] for name in names if kept[name] in told},
            self.seed_set._replace(seeds=[*seeds, *middle]),
            compared,
        )

    def _steps(self, seeds: Sequence[Seed]) -> list[Activation]:
        enter = graph_edges.entrances(self.view, self.seed_set.prior)
        return steps_from(self.view, seeds, enter, self.edges, between_chunks=self.across is not None)

    def _values(self, passages: Sequence[int]) -> dict[int, float]:
        """What each passage tells about the question: the v of the share of its words' idf that the passage holds."""
        held = self.comparer.of([self.view.passage_id(passage) for passage in passages]).held
        shares = self.comparer.shares(held).tolist()
        return {passage: graph_edges.value(share) for passage, share in zip(passages, shares, strict=True)}


def _counted_on(activation: Activation, begins: int) -> Activation:
    return activation._replace(reason=activation.reason._replace(origin=begins + activation.reason.origin))


DAMPING = 0.85  # Brin, Page 1998
TOLERANCE = 1e-6
MOST_ROUNDS = 100

_kept: "WeakKeyDictionary[GraphView, NDArray[np.float64]]" = WeakKeyDictionary()
_lock = threading.Lock()


def centrality(view: GraphView) -> NDArray[np.float64]:
    """PageRank by document number, of all live documents; 0 for others. Computed at the first look at a view, which
    takes a while, and kept as long as the view is. Others who ask meanwhile wait."""
    with _lock:
        ranks = _kept.get(view)
        if ranks is None:
            ranks = _kept[view] = _of(view)
        return ranks


def _of(view: GraphView) -> NDArray[np.float64]:
    """An edge from each document that mentions another's title (alias weight / sqrt(documents of that name)) or links
    to it (weight)."""
    documents = view.live_documents()
    if not len(documents):
        return np.zeros(0)
    own = view.about_of(documents)
    _, places = np.unique(own.entity, return_inverse=True)
    targets = np.bincount(places)[places]
    few = np.flatnonzero(targets <= MAX_TARGETS)
    mentions = view.mention_edges_of(own.entity[few])
    row = few[mentions.asked]
    links = view.links_to(documents)
    sources = view.documents_of_passages(np.concatenate([mentions.passage, links.passage]))
    goals = np.concatenate([own.document[row], links.document])
    weights = np.concatenate([own.weight[row] / np.sqrt(targets[row]), links.weight]).astype(np.float64)
    elsewhere = sources != goals
    at = np.searchsorted(documents, sources[elsewhere]), np.searchsorted(documents, goals[elsewhere])
    ranks = np.zeros(int(documents[-1]) + 1)
    ranks[documents] = pagerank(*at, weights[elsewhere], len(documents))
    return ranks


def pagerank(
    sources: NDArray[np.int64], targets: NDArray[np.int64], weights: NDArray[np.float64], n_nodes: int
) -> NDArray[np.float64]:
    """(n_nodes,) the stationary distribution, to 1e-6 in sum, of a walk that goes on along an edge with probability .85
    and else anywhere; from a node that no edge leaves, always anywhere.

    Brin, Page: "The Anatomy of a Large-Scale Hypertextual Web Search Engine", WWW 1998; by power iteration.
    """
    leaving = np.bincount(sources, weights, minlength=n_nodes)
    shares = weights / leaving[sources]
    ranks = np.full(n_nodes, 1 / n_nodes)
    for _ in range(MOST_ROUNDS):
        followed = DAMPING * np.bincount(targets, ranks[sources] * shares, minlength=n_nodes)
        following = followed + (1 - followed.sum()) / n_nodes
        moved = np.abs(following - ranks).sum()
        ranks = following
        if moved < TOLERANCE:
            break
    return ranks


SPARE = 4  # chunks looked at for each passage wanted: several may be of one


def similar_across(
    view: GraphView, text: TextSnapshot, linking: Mapping[str, LinkingChoice], seeds: Iterable[Seed]
) -> Iterator[Activation]:
    """The passages of other documents nearest to each seed, where its collection chose to join such: weight x c.

    c is the cosine of a passage's nearest chunk with the mean of the seed's. Raises TransientStoreError.
    """
    for at, seed in enumerate(seeds):
        key = view.document_key(seed.document)
        rules = DEFAULT_RULES.with_choice(linking.get(key.collection, LinkingChoice()))
        if not rules.max_across:
            continue
        chunks = [view.chunk_id(chunk) for chunk in view.chunks_of_passage(seed.passage)]
        vectors = list(text.vectors(chunks).values())
        if not vectors:
            continue
        mean = np.mean(vectors, axis=0)
        own = sum(len(view.chunks_of_passage(passage)) for passage in view.passages_of_document(seed.document))
        nearest = text.vector_search(mean / np.linalg.norm(mean), own + SPARE * rules.max_across, Scope(key.collection))
        near = {
            found.passage_id: found
            for found in reversed(nearest)
            if found.key != key and found.score > rules.similar_above
        }
        best = sorted(near.values(), key=lambda found: (-found.score, found.chunk_id))[: rules.max_across]
        for found, chunk in zip(best, view.chunks([each.chunk_id for each in best]).tolist(), strict=True):
            if chunk != MISSING:
                score = min(1.0, rules.similar_across * found.score)
                yield Activation(view.passage_of_chunk(chunk), score, Reason("similar_across", at, chunk=chunk))


CONNECTIVITY, CENTRALITY, RELATIONSHIP = 0.5, 0.3, 0.2


class Discovered(NamedTuple):
    """Passages as rows, seeds as columns."""

    passages: list[int]
    distances: NDArray[np.float64]  # (n_passages, n_seeds)


def expansion(start: WalkStart) -> GraphResults:
    """Score = .5 connectivity + .3 centrality + .2 relationship, of the seeds and what so many hops from them reach,
    one or two.

    - connectivity = exp(-Σ w · d / Σ w) over the seeds that reach it: d is the length of the shortest way from
      a seed of weight w, an edge of weight e being 1 / e long.
    - centrality = the PageRank of its document / the highest of those discovered.
    - relationship = the strongest edge from a seed, w · e, as a share of the strongest of all.
    """
    seeds = start.seed_set.seeds
    if not seeds:
        return start.results({}, {}, [])
    seed_passages = [seed.passage for seed in seeds]
    weights = np.array([seed.weight for seed in seeds])
    first = start.first_steps()
    near = distances(seed_passages, first)
    nearest = dict(zip(near.passages, connectivity(near.distances, weights).tolist(), strict=True))
    stepped = {activation.passage for activation in first}
    ring = sorted(
        (each for each in nearest if each in stepped and each not in seed_passages),
        key=lambda each: (-nearest[each], each),
    )
    middle, second = start.second_steps(ring, first) if start.hops > 1 else ([], [])
    found = distances(seed_passages, first, [seed.passage for seed in middle], second)
    direct = dict.fromkeys(found.passages, 0.0)
    for activation in first:
        direct[activation.passage] = max(
            direct[activation.passage], weights[activation.reason.origin] * activation.score
        )
    ranks = centrality(start.view)[start.view.documents_of_passages(np.array(found.passages, dtype=np.int64))]
    scores = (
        CONNECTIVITY * connectivity(found.distances, weights)
        + CENTRALITY * ranks / (ranks.max() or 1.0)
        + RELATIONSHIP * np.array(list(direct.values())) / (max(direct.values()) or 1.0)
    )
    reasons = {passage: activation.reason for passage, activation in (strongest(second) | strongest(first)).items()}
    return start.results(dict(zip(found.passages, scores.tolist(), strict=True)), reasons, middle)


def distances(
    seeds: Sequence[int], first: Sequence[Activation], middle: Sequence[int] = (), second: Sequence[Activation] = ()
) -> Discovered:
    """How far each passage is from each seed, infinite where two steps do not lead there.

    `first` begins at the seeds; `second` at the passages of `middle`, whose origins count on from the seeds.
    """
    row_of = {
        passage: row for row, passage in enumerate(dict.fromkeys([*seeds, *(r.passage for r in (*first, *second))]))
    }
    lengths = np.full((len(row_of), len(seeds)), np.inf)
    lengths[[row_of[seed] for seed in seeds], range(len(seeds))] = 0.0
    for passage, score, reason in first:
        lengths[row_of[passage], reason.origin] = min(lengths[row_of[passage], reason.origin], 1 / score)
    before = lengths.copy()
    for passage, score, reason in second:
        way = before[row_of[middle[reason.origin - len(seeds)]]] + 1 / score
        lengths[row_of[passage]] = np.minimum(lengths[row_of[passage]], way)
    return Discovered(list(row_of), lengths)


def connectivity(lengths: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_passages,) exp of minus the mean distance to the seeds that reach it, by their weights; 0 where none does."""
    reaches = np.isfinite(lengths)
    of_those = reaches @ weights
    means = np.where(reaches, lengths, 0.0) @ weights / np.where(of_those > 0, of_those, 1.0)
    near: NDArray[np.float64] = np.where(of_those > 0, np.exp(-means), 0.0)
    return near
