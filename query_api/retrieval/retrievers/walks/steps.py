"""Where a walk through the graph begins, its single steps, and the passages it reached, scored beside the best."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.builder import CHUNK_EDGE_KINDS
from query_api.index.graph.edges import rows_of
from query_api.index.graph.view import GraphView
from query_api.index.text.segments import EVERYTHING, Scope
from query_api.query.analysis import Question
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
)
from query_api.retrieval.retrievers.graph_scoring import MAX_REACHED, GraphResults
from query_api.retrieval.retrievers.graph_seeds import SeedSet
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
