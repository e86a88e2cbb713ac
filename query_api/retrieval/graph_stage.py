"""From what the text channels found into the graph: compared with the question first, then followed."""

from typing import NamedTuple

from indexer.errors import TransientStoreError
from query_api.query.analysis import hops_of
from query_api.query.entity_linking import names_in
from query_api.retrieval.analysis_stage import Analysis
from query_api.retrieval.comparison import Compared, Comparer, best_scores
from query_api.retrieval.fusion import DEPTH
from query_api.retrieval.retrievers.graph import graph_channel
from query_api.retrieval.retrievers.graph_scoring import GraphResults
from query_api.retrieval.stages import Diagnostics, Outcome, SearchContext, within
from query_api.retrieval.text_stage import TextResults


class Comparison(NamedTuple):
    """How what was found compares with the question, and what compares further passages."""

    comparer: Comparer
    compared: Compared


async def compare(context: SearchContext, text: TextResults, diagnostics: Diagnostics) -> Comparison | None:
    """Compare the first candidates of every channel with the question, so that a deeper page begins from the same; None
    where that fails."""
    request, tables = context.request, context.snapshot.text
    known = best_scores((text.vector or ())[:DEPTH])
    words = text.keyword is not None or request.mode == "vector"  # which compares for confidence only

    def compared() -> Comparison:
        comparer = Comparer(tables, request.q, request.collection, text.question_vector, known, words=words)
        return Comparison(comparer, comparer.of(text.candidates(DEPTH)))

    outcome = await within("compare", context.settings.budgets.graph_seconds, context.run(compared))
    diagnostics.stage(outcome, 0)
    return outcome.value


async def compare_rest(
    context: SearchContext, text: TextResults, comparison: Comparison, diagnostics: Diagnostics
) -> Comparison:
    """Compare what deeper lists brought."""
    comparer, compared = comparison
    rest = [name for name in text.candidates() if name not in compared.row_of]
    if not rest:
        return comparison
    known = best_scores(text.vector or ())
    comparing = context.run(lambda: comparer.of(rest, known))
    more = await within("compare", context.settings.budgets.graph_seconds, comparing)
    diagnostics.note_failure(more)
    return comparison if more.value is None else Comparison(comparer, compared.followed_by(more.value))


async def follow_graph(
    context: SearchContext, analysis: Analysis, comparison: Comparison | None, diagnostics: Diagnostics
) -> Outcome[GraphResults]:
    """What the graph reaches from the names in the question and from what was found. The keyword index is not asked
    again where it has failed before."""
    request, snapshot, question = context.request, context.snapshot, context.question

    def follow() -> GraphResults:
        if comparison is None:
            reason = diagnostics.failed.get("compare", "it was not tried")
            raise TransientStoreError(f"What was found was not compared with the question: {reason}")
        names = analysis.names or names_in(question, snapshot.graph, request.collection, request.names)
        return graph_channel(
            question,
            snapshot,
            names,
            context.passages,
            context.scope,
            *comparison,
            with_residuals="keyword" not in diagnostics.failed,
            always=request.mode == "graph",
            edges=request.edges,
            weights=context.settings.terms,
            method=request.graph_method,
            hops=hops_of(request),
        )

    return await within("graph", context.settings.budgets.graph_seconds, context.run(follow))
