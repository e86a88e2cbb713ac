"""The graph channel: from the names in a question and the passages that fit it to passages that share no word with it.

1. Look up the titles and entities that the question names: `names_in`.
2. Take the best passages as seeds, by their text and by these names; see how far the gate opens.
3. Weigh each sentence of a seed by what it covers of the question.
4. Ask the keyword index what the question still asks about the names in a seed's best sentences.
5. Follow title mentions, shared entities, links and statements from the seeds.
6. Compare what was reached with the question, and add up.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial

from query_api.index.graph.view import GraphView
from query_api.index.snapshot import PassageReader, Snapshot
from query_api.index.text.segments import Scope
from query_api.query.analysis import Question, WordWeights
from query_api.query.entity_linking import LinkedNames
from query_api.retrieval.comparison import Compared, Comparer
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import Activation, follows, looks_at
from query_api.retrieval.retrievers.graph_scoring import (
    MAX_BESIDE,
    MAX_REACHED,
    NOTHING,
    GraphResults,
    GraphScores,
    connected_share,
    name_use,
    open_shares,
    opening,
    reached_passages,
)
from query_api.retrieval.retrievers.graph_seeds import PassageNumbers, SeedSet, choose_seeds, read_seeds, residual_hop
from query_api.retrieval.retrievers.personalised_pagerank import personalised_pagerank
from query_api.retrieval.retrievers.walks import WalkStart, expansion, similar_across
from schemas.search import MAX_HOPS, GraphMethod


@dataclass(frozen=True)
class TermWeights:
    """What each term counts in the sum; docs/ranking.md tells how they were found.

    `seed_alone` and `prior` count when the graph is asked alone: a seed is then a hit too, and what a reached
    passage's own text is worth is added; beside other channels these say so themselves.
    """

    named: float = 1.0
    title_mention: float = 0.4
    telling_title_mention: float = 0.4
    shared: float = 0.5
    residual: float = 0.5
    linked: float = 0.4
    stated: float = 0.4
    seed: float = 0.2
    seed_alone: float = 0.5
    prior: float = 0.5


def graph_channel(
    question: Question,
    snapshot: Snapshot,
    names: LinkedNames,
    passages: PassageReader,
    scope: Scope,
    comparer: Comparer,
    found: Compared,
    *,
    always: bool,
    with_residuals: bool = True,
    edges: Collection[str] = (),
    weights: TermWeights = TermWeights(),
    method: GraphMethod = "hop",
    hops: int | None = None,
) -> GraphResults:
    """Reach passages from the question, whose names (step 1) are looked up before. Blocks: for a thread.

    `found` is what the text channels found. With `always` the graph is followed whatever the gate says: it is asked
    alone. Else a closed gate ends the work before it reads anything. Step 4 is left out unless `with_residuals`.
    `edges` are the kinds and predicates to follow, all when empty. By another `method` than `hop` the graph is walked
    from the seeds, in place of steps 4 to 6, and `weights` do not count; `hops` bound an expansion. Raises
    TransientStoreError.
    """
    view, text, numbers = snapshot.graph, snapshot.text, PassageNumbers(snapshot.graph)
    fitting = dict(zip(found.row_of, found.text.tolist(), strict=True))
    chosen = choose_seeds(view, numbers, names.links, fitting)  # 2
    use = name_use(view, text)
    gate = opening(names, use, lambda: connected_share(view, chosen.prior, use))
    if not gate and not always:
        return NOTHING._replace(compared=found)
    seeds = read_seeds(question, view, passages, WordWeights.of(question, comparer.weights_of), chosen)  # 3
    seed_set = SeedSet(names.links, chosen.prior, seeds)
    if method != "hop":
        start = WalkStart(question, view, seed_set, comparer, found, scope, gate, edges, always, hops or MAX_HOPS)
        if method == "pagerank":
            return personalised_pagerank(start)
        return expansion(replace(start, across=partial(similar_across, view, text, snapshot.linking)))
    asks_again = with_residuals and looks_at("residual", edges)
    followed = [
        residual_hop(at, seed, question, view, text, scope) for at, seed in enumerate(seeds if asks_again else ())
    ]  # 4
    leading = [hop for hop in followed if hop is not None]
    activations = _followed(question, view, seed_set, weights, alone=always, edges=edges)  # 5
    most = MAX_REACHED if always else MAX_BESIDE
    reached = reached_passages(view, numbers, scope, found, activations, leading, most)  # 6
    compared = found.followed_by(comparer.of([name for name in reached if name not in found.row_of]))
    sums = GraphScores(reached, compared)
    sums.add_edges(activations, open_shares(view, comparer, compared, seeds))
    of_hops = text.bm25_of([hop.query for hop in leading], list(reached), scope.collection)
    for hop, bm25 in zip(leading, of_hops, strict=True):
        sums.add_hop(hop, seeds[hop.seed], bm25)
    sums.close_hops(weights.residual)
    if always:
        sums.add_prior(weights.prior, chosen.prior)
    return sums.results(gate, seed_set)


def _followed(
    question: Question,
    view: GraphView,
    seed_set: SeedSet,
    weights: TermWeights,
    *,
    alone: bool,
    edges: Collection[str],
) -> list[tuple[float, list[Activation]]]:
    """Step 5: what each term reaches, with the term's weight."""
    seeds = seed_set.seeds
    enter = graph_edges.entrances(view, seed_set.prior)
    around = graph_edges.surroundings(view, seeds)
    plain, telling = graph_edges.title_mentions(seeds, around, enter)

    def strength(predicate: str) -> float:
        return graph_edges.value(1.0 if question.stems_in(predicate.replace("_", " ")) else 0.0)

    kinds: list[tuple[str, float, Iterable[Activation]]] = [
        ("named", weights.named, graph_edges.named(seed_set.links, enter)),
        ("title_mention", weights.title_mention, plain),
        ("title_mention", weights.telling_title_mention, telling),
        (
            "mentioned_by",
            weights.linked if edges else 0.0,
            graph_edges.mentioned_by(view, seeds),
        ),  # gains nothing unasked
        ("shared_entity", weights.shared, graph_edges.shared(seeds, around)),
        ("link", weights.linked, graph_edges.linked(view, seeds, enter)),
        ("statement", weights.stated, graph_edges.stated(view, seeds, enter, strength)),
    ]
    wanted = [
        (weight, [activation for activation in activations if follows(kind, activation.reason.predicate, edges)])
        for kind, weight, activations in kinds
        if weight and looks_at(kind, edges)
    ]
    return [*wanted, (weights.seed_alone if alone else weights.seed, list(graph_edges.seed_activations(seeds)))]
