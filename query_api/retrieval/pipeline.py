"""One search, from the question to its hits: analyse, embed, text, compare, graph, fuse, re-rank, results, answer.

Each stage has its budget and an outcome: a channel that is late or broken is left out of the answer, and the answer
says so.
"""

from collections.abc import AsyncGenerator
from concurrent.futures import Executor
from contextlib import aclosing
from typing import Any

import numpy as np

from query_api.answers.answer import frames_of
from query_api.answers.sentences import HITS
from query_api.index.search_snapshot import QueryEncoder, Snapshot
from query_api.query.analysis import hops_of, understand
from query_api.question_encoder import ServedEncoder
from query_api.rerankers.reranker import ServedReranker
from query_api.retrieval.by_field import MOST_SORTED, count_facets, sorted_by_field
from query_api.retrieval.exact_phrases import apply_phrases
from query_api.retrieval.ranking import QuestionResults, rank
from query_api.retrieval.results.hit_assembly import batches, read_hits
from query_api.retrieval.retrievers.community_retriever import CommunityResults
from query_api.retrieval.retrievers.graph_scoring import NO_RESULTS, GraphResults
from query_api.retrieval.retrievers.structured import Structured
from query_api.retrieval.search_context import (
    ALL_CHANNELS,
    Diagnostics,
    Outcome,
    SearchContext,
    SearchFailed,
    SearchSettings,
    gather_or_cancel,
)
from query_api.retrieval.stages import (
    Analysis,
    Embedding,
    TextResults,
    analyse,
    answer,
    compare,
    embed,
    filter_by_query_date,
    follow_graph,
    rerank,
    search_texts,
    suggest,
)
from query_api.retrieval.subqueries import rank_merged, run_subqueries, subqueries
from schemas.choices import Mode
from schemas.frames import Done, Meta, SearchFrame, Stage
from schemas.hits import Hit, Understanding
from schemas.search import RERANKED_MODES, SearchRequest

UNCOMPARED: frozenset[Mode] = frozenset({"structured", "global"})
"""The modes whose candidates are not scored by words and meaning: they have an order of their own."""


def wants_reranker(request: SearchRequest) -> bool:
    """Whether a re-ranker re-orders this search, where there is one."""
    return request.mode in RERANKED_MODES and request.reranker is not False and request.sort is None


class SearchEngine:
    """Searches with the service's re-ranker."""

    def __init__(self, reranker: ServedReranker | None) -> None:
        self._reranker = reranker

    def reranks(self, request: SearchRequest) -> bool:
        """Whether a search for this uses a re-ranker, be it loaded or not."""
        return self._reranker is not None and wants_reranker(request)

    def search(
        self, request: SearchRequest, retrieval_id: str, snapshot: Snapshot, encoder: ServedEncoder, executor: Executor
    ) -> AsyncGenerator[SearchFrame, None]:
        """The frames of an answer, see `search`."""
        settings = SearchSettings(reranker=self._reranker)
        return search(request, retrieval_id, snapshot, encoder, executor, settings)


async def search(
    request: SearchRequest,
    retrieval_id: str,
    snapshot: Snapshot,
    encoder: QueryEncoder,
    executor: Executor,
    settings: SearchSettings,
) -> AsyncGenerator[SearchFrame, None]:
    """The frames of an answer, as each is final: Meta, Stages, Hits in rank order, Done.

    1. Analyse the question; where it is decomposed, take steps 2 to 5 for each sub-question.
    2. Embed it, meanwhile link its names and recognise its fields.
    3. Search the texts: vector, keyword and structured channel.
    4. Score the candidates exactly; then follow the graph from them and from the names.
    5. Fuse the channels into one order.
    6. Sort it by a field, or have the re-ranker score the first hits, where that is asked for.
    7. Read the texts of a page of the order, and yield its hits, best first.
    8. Where an answer is asked for, choose its sentences from the first hits; count the fields that are asked for.

    Everything is read from `snapshot`, so the same request gives the same hits as long as the snapshot is kept, and
    the hits of two pages are those of one page of both lengths. Closing the iterator ends the work that waits; a
    thread that has begun a store call finishes it. Raises SearchFailed when no channel could answer, MalformedFilter
    for filters that this snapshot's documents cannot answer.
    """
    context = SearchContext.create(request, snapshot, encoder, executor, settings)
    context, phrases = await apply_phrases(context)  # 1
    context, period = await filter_by_query_date(context)
    understanding = understand(context.request.q, request.intent)
    contexts = subqueries(context, understanding.parts)
    reranker = settings.reranker if wants_reranker(request) else None
    embeddings = [embed(each) for each in contexts]  # 2
    try:
        analyses = await gather_or_cancel(analyse(each) for each in contexts)
        names, fields = analyses[0].shown(context)
        understood = {"decomposed": len(contexts) > 1, "period": period, "names": names, "fields": fields}
        understanding = understanding.model_copy(update=understood | {"phrases": phrases})
        yield _meta(context, retrieval_id, understanding, reranker).model_copy(update={"query": request.q})
        results: list[QuestionResults] = []
        searches = [search_question(*each) for each in zip(contexts, analyses, embeddings, strict=True)]
        async with aclosing(run_subqueries(searches)) as frames:  # 3, 4
            async for frame in frames:
                if isinstance(frame, Stage):
                    yield frame
                else:
                    results = frame
    finally:
        for embedding in filter(None, embeddings):
            embedding.cancel()
    if reranker is not None and request.offset >= reranker.depth:
        reranker = None  # the page begins beyond what it re-orders
    needed = max(request.offset + request.k + 1, reranker.depth if reranker else 0, MOST_SORTED if request.sort else 0)
    is_decomposed = len(results) > 1  # 5
    ranking = await (rank_merged(context, results, needed) if is_decomposed else rank(results[0], needed))
    order, rerank_diagnostics = await sorted_by_field(context, ranking.passages), Diagnostics()
    if reranker is not None:  # 6
        order, outcome = await rerank(context, reranker, order)
        yield rerank_diagnostics.stage(outcome, len(outcome.value or {}))
    page = order[request.offset : request.offset + request.k]
    first: list[Hit] = []
    for start, end in batches(len(page)):  # 7
        ranks = range(request.offset + start + 1, request.offset + end + 1)
        for hit in await read_hits(ranking, page[start:end], ranks):
            if len(first) < HITS:
                first.append(hit)
            yield hit
    following = request.offset + len(page)
    diagnostics = ranking.diagnostics
    answered = await answer(context, first, diagnostics) if request.answer else None  # 8
    for piece in frames_of(answered) if request.answer_form == "extract" else ():
        yield piece
    facets = await count_facets(results, diagnostics) if request.facets else []
    yield Done(
        retrieval_id=retrieval_id,
        hits=len(page),
        timings=diagnostics.timings | rerank_diagnostics.timings,
        failed_channels=diagnostics.failed | rerank_diagnostics.failed,
        next_offset=following if len(order) > following else None,
        best_confidence=ranking.best_confidence,
        answer=answered,
        facets=facets,
        suggestion=await suggest(context, request.q, results[0].idf, order),
    )


def _meta(
    context: SearchContext, retrieval_id: str, understanding: Understanding, reranker: ServedReranker | None
) -> Meta:
    request, total_seconds = context.request, context.settings.budgets.total_seconds
    understood = {
        "channels": tuple(filter(context.channels.__contains__, ALL_CHANNELS)),
        "hops": hops_of(request),
        "newest_first": context.newest_first,
    }
    return Meta(
        retrieval_id=retrieval_id,
        query=request.q,
        mode=request.mode,
        collection=request.collection,
        understanding=understanding.model_copy(update=understood),
        snapshot=context.snapshot.info(),
        budget_seconds=total_seconds + (reranker.budget_seconds if reranker else 0.0),
    )


async def search_question(
    context: SearchContext, analysis: Analysis, embedding: Embedding | None
) -> AsyncGenerator[Stage | QuestionResults]:
    """Steps 3 and 4 for one question: a stage as each channel ends, at last the results. Raises SearchFailed when no
    channel has an answer."""
    diagnostics, outcomes = Diagnostics(), []
    async with aclosing(search_texts(context, analysis, embedding)) as ended:  # 3
        async for outcome in ended:
            outcomes.append(outcome)
            yield diagnostics.stage(outcome, _candidates(outcome))
    diagnostics.blame_vector_for_embedding()
    text = TextResults.from_outcomes(outcomes, context)
    candidates = await compare(context, text, diagnostics) if context.request.mode not in UNCOMPARED else None  # 4
    graph = text.communities.graph
    if "graph" in context.channels:
        followed = await follow_graph(context, analysis, candidates, diagnostics)
        graph = followed.value or NO_RESULTS
        yield diagnostics.stage(followed, len(graph.scores))
        if candidates is not None and graph.exact is not None:
            candidates = candidates._replace(scores=graph.exact)
    _require_an_answer(context, diagnostics, graph)
    yield QuestionResults(context, analysis, text, candidates, graph, diagnostics)


def _require_an_answer(context: SearchContext, diagnostics: Diagnostics, graph: GraphResults) -> None:
    needed = context.channels - {"graph", "structured"} or context.channels - {"graph"} or context.channels
    reached = graph.scores if context.request.mode != "graph_rerank" else {}
    if needed <= diagnostics.failed.keys() and not reached:
        raise SearchFailed(" ".join(f"{name}: {reason}." for name, reason in sorted(diagnostics.failed.items())))


def _candidates(outcome: Outcome[Any]) -> int:
    """How many candidates a stage found; embedding a question gives one vector."""
    match outcome.value:
        case Structured(candidates) | CommunityResults(candidates):
            return len(candidates)
        case np.ndarray():
            return 1
        case found:
            return len(found or ())
