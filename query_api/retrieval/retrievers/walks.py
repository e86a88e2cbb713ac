"""Walks from a few seeds: steps between passages, scored by expansion or by personalised PageRank."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.linking import DEFAULT_RULES
from query_api.index.graph.builder import CHUNK_EDGE_KINDS
from query_api.index.graph.edges import rows_of
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.view import GraphView
from query_api.index.text.text_segments import EVERYTHING, Scope
from query_api.index.text.text_snapshot import TextSnapshot
from query_api.query.analysis import Question
from query_api.retrieval.exact_scores import CandidateScores, ExactScorer
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import (
    Activation,
    MentionedEntity,
    Reason,
    Seed,
    edge_enabled,
    edge_kind_enabled,
    strongest,
)
from query_api.retrieval.retrievers.graph_scoring import MAX_REACHED, GraphResults
from query_api.retrieval.retrievers.graph_seeds import SeedSet
from query_api.retrieval.retrievers.pagerank import LEAST_WEIGHT, PassagesAndEntities, centrality, push
from query_api.retrieval.retrievers.relation_walks import EntryPassages
from query_api.retrieval.scoring import sentence_weight
from schemas.curation import LinkingChoice
from schemas.predicates import predicate_strength


def steps_from(
    view: GraphView,
    seeds: Iterable[Seed],
    entries: EntryPassages,
    edges: Collection[str],
    *,
    between_chunks: bool,
    relation_hops: int = 1,
    question: Question | None = None,
    prior: Mapping[int, float] | None = None,
) -> list[Activation]:
    """Every passage one step away from each of these, both directions, over the kinds in `edges`, all when empty; over
    edges between chunks only if `between_chunks`; over relations `relation_hops` steps.

    An activation's score is the weight of the edge, in (0, 1], whatever its seed weighs; its `origin` the index of the
    seed.
    """
    whole = [replace(seed, weight=1.0) for seed in seeds]
    if not whole:
        return []
    entities = graph_edges.seed_entities(view, whole)
    kinds: dict[str, Callable[[], Iterable[Activation]]] = {
        "title_mention": lambda: graph_edges.title_mentions(whole, entities, entries)[1],
        "mentioned_by": lambda: graph_edges.mentioned_by(view, whole),
        "shared_entity": lambda: graph_edges.shared(whole, entities),
        "link": lambda: graph_edges.linked(view, whole, entries),
        "statement": lambda: graph_edges.stated(view, whole, entries, predicate_strength),
        "relation": lambda: graph_edges.related(view, whole, entries, edges, relation_hops, question, prior),
    }
    stepped = [
        activation
        for kind, activate in kinds.items()
        if edge_kind_enabled(kind, edges)
        for activation in activate()
        if activation.score and edge_enabled(kind, activation.reason.predicate, edges)
    ]
    if between_chunks and any(edge_kind_enabled(kind, edges) for kind in CHUNK_EDGE_KINDS):
        stepped += [
            activation
            for activation in within_document(view, whole)
            if edge_kind_enabled(activation.reason.term, edges)
        ]
    return stepped


def within_document(view: GraphView, seeds: Sequence[Seed]) -> Iterator[Activation]:
    """Other passages of a seed's document, over the edges between its chunks and theirs; once for each such edge: its
    weight. The reason's term is one of CHUNK_EDGE_KINDS."""
    chunks = [view.chunks_of_passage(seed.passage) for seed in seeds]
    owners = [at for at, of_seed in enumerate(chunks) for _ in of_seed]
    chunk_edges = view.chunk_edges(np.array(list(chain.from_iterable(chunks)), dtype=np.int64))
    for query_index, chunk, kind, weight in rows_of(
        chunk_edges.query_index, chunk_edges.other, chunk_edges.kind, chunk_edges.weight
    ):
        at, passage = owners[query_index], view.passage_of_chunk(chunk)
        if passage != seeds[at].passage:
            yield Activation(passage, weight, Reason(CHUNK_EDGE_KINDS[kind], at, chunk=chunk))


def intermediate_seeds(view: GraphView, reached: Mapping[int, Reason], values: Mapping[int, float]) -> list[Seed]:
    """Passages as seeds of the next step. `reached` says how an earlier seed leads to each, `values` is the v of all
    its entities, whose names are not read."""
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


MAX_STEPS = 4_000  # of the second ring; where passages share much, fewer of them are expanded
RING = 32
BATCH = 8
PRIOR_ALONE = 0.5


@dataclass(frozen=True)
class WalkStart:
    """Where a walk starts: the seeds of a question, the exact scores of what the text channels found, the kinds of
    `edges` to follow, all when empty. `alone` where the graph is the only channel. `hops` is the depth of an expansion;
    `across` finds passages of other documents that are similar to seeds, None where edges between chunks are not
    walked."""

    question: Question
    view: GraphView
    seed_set: SeedSet
    scorer: ExactScorer
    found: CandidateScores
    scope: Scope
    gate: float
    edges: Collection[str]
    alone: bool
    hops: int = 2
    relation_hops: int = 1  # of the first step
    across: Callable[[Sequence[Seed]], Iterable[Activation]] | None = None

    def first_steps(self) -> list[Activation]:
        """The steps from the seeds."""
        seeds = self.seed_set.seeds
        similar = self.across(seeds) if self.across is not None and edge_kind_enabled("similar_to", self.edges) else ()
        return [*self._steps(seeds, self.relation_hops), *similar]

    def second_steps(
        self, near: Mapping[int, float], first: Iterable[Activation]
    ) -> tuple[list[Seed], list[Activation]]:
        """The passages of the first ring that were expanded, and the steps from them: batch after batch, the nearest
        first, until there are enough steps. Origins are numbered after the seeds of the question."""
        reasons = {passage: activation.reason for passage, activation in strongest(first).items()}
        seeds = {seed.passage for seed in self.seed_set.seeds}
        ring = sorted(near.keys() & reasons.keys() - seeds, key=lambda each: (-near[each], each))
        middle: list[Seed] = []
        steps: list[Activation] = []
        values = self._values(ring[:RING])
        for at in range(0, len(values), BATCH):
            if len(steps) >= MAX_STEPS:
                break
            batch = intermediate_seeds(self.view, {each: reasons[each] for each in ring[at : at + BATCH]}, values)
            begins = len(self.seed_set.seeds) + len(middle)
            steps += [_rebase_origin(activation, begins) for activation in self._steps(batch)]
            middle += batch
        return middle, steps

    def results(
        self,
        scores: Mapping[int, float],
        first: Sequence[Activation] = (),
        second: Sequence[Activation] = (),
        middle: Sequence[Seed] = (),
    ) -> GraphResults:
        """The best 300 by their scores, relative to the best; where the graph is alone, half of each text score is
        added, relative to the best too."""
        seeds, kept = self.seed_set.seeds, self._best(scores)
        exact = self.found.concat(self.scorer.score([name for name in kept if name not in self.found.row_of]))
        best = max((scores[passage] for passage in kept.values()), default=0.0) or 1.0
        own: NDArray[np.float64] = exact.text[[exact.row_of[name] for name in kept]]
        fitting = own.max(initial=0.0)
        share = PRIOR_ALONE / fitting if self.alone and fitting else 0.0
        final = {
            name: scores[passage] / best + share * fit
            for (name, passage), fit in zip(kept.items(), own.tolist(), strict=True)
        }
        reasons_of = {seed.passage: Reason("matches", at) for at, seed in enumerate(seeds)}
        reasons_of |= {passage: found.reason for passage, found in (strongest(second) | strongest(first)).items()}
        names = sorted(final, key=lambda name: (-final[name], name))
        return GraphResults(
            self.gate,
            {name: kept[name] for name in names},
            {name: final[name] for name in names},
            {name: reasons_of[kept[name]] for name in names if kept[name] in reasons_of},
            self.seed_set._replace(seeds=[*seeds, *middle]),
            exact,
        )

    def _best(self, scores: Mapping[int, float]) -> dict[str, int]:
        """{passage id: number} of the first MAX_REACHED that the scope allows, best first."""
        view = self.view
        ordered = sorted(scores, key=lambda passage: (-scores[passage], view.passage_id(passage)))
        if self.scope != EVERYTHING:
            ordered = [each for each in ordered if self.scope.allows(view.document_key(view.document_of_passage(each)))]
        return {view.passage_id(passage): passage for passage in ordered[:MAX_REACHED]}

    def _steps(self, seeds: Sequence[Seed], relation_hops: int = 1) -> list[Activation]:
        entries = graph_edges.entry_passages(self.view, self.seed_set.prior)
        return steps_from(
            self.view,
            seeds,
            entries,
            self.edges,
            between_chunks=self.across is not None,
            relation_hops=relation_hops,
            question=self.question,
            prior=self.seed_set.prior,
        )

    def _values(self, passages: Sequence[int]) -> dict[int, float]:
        """The v of each passage, by the share of the question's idf that it holds."""
        scores = self.scorer.score([self.view.passage_id(passage) for passage in passages])
        shares = self.scorer.idf_shares(scores.term_matches).tolist()
        return {passage: sentence_weight(share) for passage, share in zip(passages, shares, strict=True)}


def _rebase_origin(activation: Activation, first: int) -> Activation:
    return activation._replace(reason=activation.reason._replace(origin=first + activation.reason.origin))


CHUNKS_A_PASSAGE = 4  # searched for each passage wanted: several may be of one


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
        nearest = text.vector_search(
            mean / np.linalg.norm(mean), own + CHUNKS_A_PASSAGE * rules.max_across, Scope(key.collection)
        )
        near = {
            found.passage_id: found
            for found in reversed(nearest)
            if found.key != key and found.score > rules.similar_above
        }
        best = sorted(near.values(), key=lambda found: (-found.score, found.chunk_id))[: rules.max_across]
        for found, chunk in zip(best, view.chunks([each.chunk_id or "" for each in best]).tolist(), strict=True):
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
        return start.results({})
    seed_passages = [seed.passage for seed in seeds]
    weights = np.array([seed.weight for seed in seeds])
    first = start.first_steps()
    near = distances(seed_passages, first)
    nearest = dict(zip(near.passages, connectivity(near.distances, weights).tolist(), strict=True))
    middle, second = start.second_steps(nearest, first) if start.hops > 1 else ([], [])
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
    return start.results(dict(zip(found.passages, scores.tolist(), strict=True)), first, second, middle)


def distances(
    seeds: Sequence[int], first: Sequence[Activation], middle: Sequence[int] = (), second: Sequence[Activation] = ()
) -> Discovered:
    """How far each passage is from each seed, infinite where two steps do not lead there.

    `first` begins at the seeds; `second` at the passages of `middle`, whose origins are numbered after the seeds.
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


RESTART = 0.3
EPSILON = 1e-3
MOST_OPENED = 2_000


def personalised_pagerank(start: WalkStart) -> GraphResults:
    """Score = what a walk from the seeds leaves at a passage, beyond what it began with there."""
    seeds = start.seed_set.seeds
    if not seeds:
        return start.results({})
    weights = {seed.passage: seed.weight for seed in seeds}
    graph = PassagesAndEntities(start.view, start.edges)
    mass = push(
        graph.neighbours, weights, restart=RESTART, epsilon=EPSILON, least_weight=LEAST_WEIGHT, most_opened=MOST_OPENED
    )
    total = sum(weights.values())
    scores = {
        node: estimate - RESTART * weights.get(node, 0.0) / total
        for node, estimate in zip(mass.node.tolist(), mass.estimate.tolist(), strict=True)
        if node >= 0 and estimate > 0
    }
    first = start.first_steps()
    middle, second = start.second_steps(scores, first)
    return start.results(scores, first, second, middle)
