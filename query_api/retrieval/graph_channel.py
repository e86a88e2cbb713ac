"""The graph channel: from the names in a question and the passages that fit it to passages that share no word with it.

1. Look up the titles and entities that the question names: `link_names`.
2. Take the best passages as seeds, by their text and by these names; compute the gate.
3. Weigh each sentence of a seed by what it covers of the question.
4. Search by keywords for what the question still asks about the names in a seed's best sentences.
5. Follow title mentions, shared entities, links, statements and relations from the seeds.
6. Score what was reached exactly, and sum up.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from query_api.query.analysis import WordWeights, hops_of
from query_api.query.entity_linking import LinkedNames
from query_api.retrieval.exact_scores import ScoredCandidates
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import RELATION_HOPS, Activation, edge_enabled, edge_kind_enabled
from query_api.retrieval.retrievers.graph_scoring import (
    MAX_REACHED,
    MAX_REACHED_HYBRID,
    NO_RESULTS,
    GraphResults,
    GraphScores,
    connected_share,
    name_use,
    open_gate,
    reached_passages,
    uncovered_idf_shares,
)
from query_api.retrieval.retrievers.graph_seeds import PassageNumbers, SeedSet, choose_seeds, read_seeds, residual_hop
from query_api.retrieval.retrievers.walks import WalkStart, expansion, personalised_pagerank, similar_across
from query_api.retrieval.scoring import sentence_weight
from query_api.retrieval.search_context import SearchContext
from schemas.search import MAX_HOPS


def _walk(context: SearchContext, seed_set: SeedSet, candidates: ScoredCandidates, gate: float) -> GraphResults:
    """From the seeds, by PageRank or by expansion."""
    request, view, text = context.request, context.snapshot.graph, context.snapshot.text
    start = WalkStart(
        context.question,
        view,
        seed_set,
        *candidates,
        context.scope,
        gate,
        request.edges,
        request.mode == "graph",
        hops_of(request) or MAX_HOPS,
        request.hops or RELATION_HOPS,
    )
    if request.graph_method == "pagerank":
        return personalised_pagerank(start)
    return expansion(replace(start, across=partial(similar_across, view, text, context.snapshot.linking)))


def search_graph(
    context: SearchContext, names: LinkedNames, candidates: ScoredCandidates, *, with_residuals: bool
) -> GraphResults:
    """Reach passages from the question, whose names (step 1) are looked up before. Blocks.

    Where the graph is searched alone it is followed whatever the gate; else a closed gate ends the work before it reads
    anything. Step 4 is left out unless `with_residuals`. By another method than `hop` the graph is walked from the
    seeds, in place of steps 4 to 6, and the terms' weights do not count. Raises TransientStoreError.
    """
    request, question, scope, weights = context.request, context.question, context.scope, context.settings.terms
    snapshot, edges, alone = context.snapshot, request.edges, request.mode == "graph"
    view, text, numbers = snapshot.graph, snapshot.text, PassageNumbers(snapshot.graph)
    scorer, found = candidates
    text_scores = dict(zip(found.row_of, found.text.tolist(), strict=True))
    chosen = choose_seeds(view, numbers, names.links, text_scores, edges)  # 2
    use = name_use(view, text)
    gate = open_gate(names, use, lambda: connected_share(view, chosen.prior, use))
    if not gate and not alone:
        return NO_RESULTS._replace(exact=found)
    word_weights = WordWeights.from_idf(question, scorer.word_weights)
    seeds = read_seeds(question, view, context.passages, word_weights, chosen)  # 3
    seed_set = SeedSet(names.links, chosen.prior, seeds)
    if request.graph_method != "hop":
        return _walk(context, seed_set, candidates, gate)
    follows_residuals = with_residuals and edge_kind_enabled("residual", edges)
    residuals = (
        residual_hop(at, seed, question, view, text, scope)
        for at, seed in enumerate(seeds if follows_residuals else ())  # 4
    )
    residual_hops = [hop for hop in residuals if hop is not None]
    activations = _follow_edges(context, seed_set, alone=alone)  # 5
    most = MAX_REACHED if alone else MAX_REACHED_HYBRID
    reached = reached_passages(view, numbers, scope, found, activations, residual_hops, most)  # 6
    exact = found.concat(scorer.score([name for name in reached if name not in found.row_of]))
    scores = GraphScores(reached, exact)
    scores.add_edges(activations, uncovered_idf_shares(view, scorer, exact, seeds))
    of_hops = text.bm25_of([hop.query for hop in residual_hops], list(reached), scope.collection)
    for hop, bm25 in zip(residual_hops, of_hops, strict=True):
        scores.add_hop(hop, seeds[hop.seed], bm25)
    scores.add_hop_scores(weights.residual)
    if alone:
        scores.add_prior(weights.prior, chosen.prior)
    return scores.results(gate, seed_set)


def _follow_edges(context: SearchContext, seed_set: SeedSet, *, alone: bool) -> list[tuple[float, list[Activation]]]:
    """Step 5: what each term reaches, with the term's weight."""
    question, view, edges = context.question, context.snapshot.graph, context.request.edges
    weights, seeds, prior = context.settings.terms, seed_set.seeds, seed_set.prior
    entries = graph_edges.entry_passages(view, prior)
    entities = graph_edges.seed_entities(view, seeds)
    plain, specific = graph_edges.title_mentions(seeds, entities, entries)

    def strength(predicate: str) -> float:
        return sentence_weight(1.0 if question.stems_in(predicate.replace("_", " ")) else 0.0)

    terms: list[tuple[str, float, Iterable[Activation]]] = [
        ("named", weights.named, graph_edges.named(view, seed_set.links, entries, edges)),
        ("title_mention", weights.title_mention, plain),
        ("title_mention", weights.specific_title_mention, specific),
        # by default gains nothing
        ("mentioned_by", weights.linked if edges else 0.0, graph_edges.mentioned_by(view, seeds)),
        ("shared_entity", weights.shared, graph_edges.shared(seeds, entities)),
        ("link", weights.linked, graph_edges.linked(view, seeds, entries)),
        ("statement", weights.stated, graph_edges.stated(view, seeds, entries, strength)),
        ("relation", weights.related, graph_edges.related(view, seeds, entries, edges, RELATION_HOPS, question, prior)),
    ]
    followed = [
        (weight, [each for each in activations if edge_enabled(kind, each.reason.predicate, edges)])
        for kind, weight, activations in terms
        if weight and edge_kind_enabled(kind, edges)
    ]
    return [*followed, (weights.seed_alone if alone else weights.seed, list(graph_edges.seed_activations(seeds)))]
