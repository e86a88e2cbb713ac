"""One search, from the question to its hits: analyse, embed, text, compare, graph, fuse, re-rank, results.

Each stage is a module, with its budget and an outcome: a channel that is late or broken is left out of the answer, and
the answer says so.
"""

from collections.abc import AsyncGenerator
from concurrent.futures import Executor
from contextlib import aclosing
from typing import Any

import numpy as np

from query_api.index.snapshot import QueryEncoder, Snapshot
from query_api.query.analysis import hops_of, understood
from query_api.retrieval.analysis_stage import Analysis, analyse, within_asked_time
from query_api.retrieval.graph_stage import compare, follow_graph
from query_api.retrieval.page import batches, hits_at
from query_api.retrieval.ranking import Ranking, Retrieved, rank
from query_api.retrieval.rerank import asks_reranker, reranked, scored
from query_api.retrieval.retrievers.graph_scoring import NOTHING, GraphResults
from query_api.retrieval.retrievers.text import Structured
from query_api.retrieval.stages import (
    ALL_CHANNELS,
    Diagnostics,
    Outcome,
    SearchContext,
    SearchFailed,
    SearchSettings,
    together,
)
from query_api.retrieval.subqueries import MergedRanking, rank_together, side_by_side, subqueries
from query_api.retrieval.text_stage import Embedding, collected, embed, search_texts
from schemas.frames import Done, Meta, SearchFrame, Stage
from schemas.search import SearchRequest


async def search(
    request: SearchRequest,
    retrieval_id: str,
    snapshot: Snapshot,
    encoder: QueryEncoder,
    executor: Executor,
    settings: SearchSettings,
) -> AsyncGenerator[SearchFrame, None]:
    """The frames of an answer, as each is final: Meta, Stages, Hits in rank order, Done.

    1. Analyse the question; where it is to be searched part by part, take steps 2 to 5 for each part.
    2. Embed it, meanwhile look up what it names.
    3. Search the texts, by vectors, words and fields.
    4. Compare what was found with the question; then follow the graph from there and from what the question names.
    5. Fuse the channels into one order.
    6. Have the re-ranker score the first places, where one is used.
    7. Read the texts of a page of the order, and hand out its hits, best first.

    Everything is read from `snapshot`, so the same request gives the same hits as long as the snapshot is kept, and
    the hits of two pages are those of one page of both lengths. Closing the iterator ends the work that waits; a
    thread that has begun a store call finishes it unheard. Raises SearchFailed when no channel could answer,
    MalformedFilter for filters that this snapshot's documents cannot answer.
    """
    context = SearchContext.of(request, snapshot, encoder, executor, settings)
    context, period = await within_asked_time(context)  # 1
    understanding = understood(request.q, request.intent)
    contexts = subqueries(context, understanding.parts)
    reranker = settings.reranker if asks_reranker(request) else None
    embeddings = [embed(each) for each in contexts]  # 2
    try:
        analyses = await together(analyse(each) for each in contexts)
        names, fields = analyses[0].shown(context)
        decided = {
            "decomposed": len(contexts) > 1,
            "channels": tuple(filter(context.channels.__contains__, ALL_CHANNELS)),
            "hops": hops_of(request),
            "period": period,
            "newest_first": context.newest_first,
            "names": names,
            "fields": fields,
        }
        yield Meta(
            retrieval_id=retrieval_id,
            query=request.q,
            mode=request.mode,
            collection=request.collection,
            understanding=understanding.model_copy(update=decided),
            snapshot=snapshot.info(),
            budget_seconds=settings.budgets.total_seconds + (reranker.budget_seconds if reranker else 0.0),
        )
        retrieved: list[Retrieved] = []
        retrievals = [retrieve(*each) for each in zip(contexts, analyses, embeddings, strict=True)]
        async with aclosing(side_by_side(retrievals)) as parts:  # 3, 4
            async for part in parts:
                if isinstance(part, Stage):
                    yield part
                else:
                    retrieved = part
    finally:
        for embedding in embeddings:
            if embedding is not None:
                embedding.cancel()
    needed = request.offset + request.k + 1
    uses_model = reranker is not None and request.offset < reranker.depth  # a page behind does without
    if reranker is not None and uses_model:
        needed = max(needed, reranker.depth)
    ranking: Ranking | MergedRanking
    if len(retrieved) > 1:  # 5
        ranking = await rank_together(context, retrieved, needed)
    else:
        ranking = await rank(retrieved[0], needed)
    order, beside = ranking.places, Diagnostics()
    if reranker is not None and uses_model:  # 6
        outcome = await scored(context, reranker, order)
        yield beside.stage(outcome, len(outcome.value or {}))
        order = reranked(context, order, outcome.value or {}, reranker.depth)
    page = order[request.offset : request.offset + request.k]
    for start, end in batches(len(page)):  # 7
        for hit in await hits_at(ranking, page[start:end], range(request.offset + start + 1, request.offset + end + 1)):
            yield hit
    following = request.offset + len(page)
    diagnostics = ranking.diagnostics
    yield Done(
        retrieval_id=retrieval_id,
        hits=len(page),
        timings=diagnostics.timings | beside.timings,
        failed_channels=diagnostics.failed | beside.failed,
        next_offset=following if len(order) > following else None,
        best_confidence=ranking.best_confidence,
    )


async def retrieve(
    context: SearchContext, analysis: Analysis, embedding: Embedding | None
) -> AsyncGenerator[Stage | Retrieved]:
    """Steps 3 and 4 for one question: a stage as each channel ends, at last all that was found. Raises SearchFailed
    when no channel has an answer."""
    diagnostics, outcomes = Diagnostics(), []
    async with aclosing(search_texts(context, analysis, embedding)) as ended:  # 3
        async for outcome in ended:
            outcomes.append(outcome)
            yield diagnostics.stage(outcome, _candidates(outcome))
    diagnostics.blame_vector_for_embedding()
    text = collected(outcomes, context)
    compares = context.request.mode != "structured"
    comparison = await compare(context, text, diagnostics) if compares else None  # 4
    graph = NOTHING
    if "graph" in context.channels:
        followed = await follow_graph(context, analysis, comparison, diagnostics)
        graph = followed.value or NOTHING
        yield diagnostics.stage(followed, len(graph.scores))
        if comparison is not None and graph.compared is not None:
            comparison = comparison._replace(compared=graph.compared)
    _require_an_answer(context, diagnostics, graph)
    yield Retrieved(context, analysis, text, comparison, graph, diagnostics)


def _require_an_answer(context: SearchContext, diagnostics: Diagnostics, graph: GraphResults) -> None:
    needed = context.channels - {"graph", "structured"} or context.channels - {"graph"} or context.channels
    reached = graph.scores if context.request.mode != "graph_rerank" else {}
    if needed <= diagnostics.failed.keys() and not reached:
        raise SearchFailed(" ".join(f"{name}: {reason}." for name, reason in sorted(diagnostics.failed.items())))


def _candidates(outcome: Outcome[Any]) -> int:
    """How many candidates a step brought; embedding a question brings one vector."""
    match outcome.value:
        case Structured(candidates):
            return len(candidates)
        case np.ndarray():
            return 1
        case found:
            return len(found or ())
