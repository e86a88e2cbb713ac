"""One question's places in order: channels fused, judged, and without what the request leaves out.

Every step depends on a place and on those before it only, so pages agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from indexer.text_analysis import query_terms
from query_api.retrieval.analysis_stage import Analysis, newest_first
from query_api.retrieval.fusion import DEPTH, ChannelResults, FusionWeights, RankedPassage, rank_passages
from query_api.retrieval.graph_stage import Comparison, compare_rest
from query_api.retrieval.results.confidence import TOGETHER, Evidence, with_confidence
from query_api.retrieval.results.dedup import distinct
from query_api.retrieval.retrievers.graph_scoring import GraphResults
from query_api.retrieval.stages import TEXTS_OF_HITS, Diagnostics, SearchContext, read_texts
from query_api.retrieval.text_stage import TextResults, deepen
from schemas.search import SearchRequest

FLOOR_PLACES = 64  # what a floor of confidence looks at: one channel's first candidates


@dataclass(frozen=True)
class Retrieved:
    """All that was found for one question. `comparison` is None where it was not compared, or that failed."""

    context: SearchContext
    analysis: Analysis
    text: TextResults
    comparison: Comparison | None
    graph: GraphResults
    diagnostics: Diagnostics

    @property
    def idf(self) -> dict[int, float]:
        """What each term of the question tells; all the same where nothing was compared."""
        if self.comparison is None:
            return dict.fromkeys(query_terms(self.context.request.q), 1.0)
        comparer = self.comparison.comparer
        return dict(zip(comparer.terms, comparer.idf.tolist(), strict=True))

    @property
    def evidence(self) -> Evidence | None:
        """What confidence and factors go by."""
        if self.comparison is None:
            return None
        structured = self.text.structured
        return Evidence(
            self.comparison.compared,
            self.comparison.comparer.asked_idf,
            self.graph.gate,
            self.graph.scores,
            meaning=self.text.question_vector is not None,
            decided=frozenset(each.passage_id for each in structured.candidates if structured.conclusiveness),
        )


@dataclass(frozen=True)
class Ranking:
    """Places, best first, and what they were made of, by as many candidates as that took. With a floor of confidence,
    `best_confidence` is that of the likeliest place."""

    places: list[RankedPassage]
    retrieved: Retrieved
    best_confidence: float | None = None

    @property
    def diagnostics(self) -> Diagnostics:
        return self.retrieved.diagnostics


async def rank(retrieved: Retrieved, needed: int) -> Ranking:
    """So many places from the first one on, or more, if there are; a longer order begins with a shorter one. Raises
    SearchFailed."""
    context, diagnostics = retrieved.context, retrieved.diagnostics
    request, floor = context.request, context.request.min_confidence
    best_confidence: float | None = None
    wanted = max(needed, TOGETHER) if floor is None else FLOOR_PLACES
    while True:
        if retrieved.comparison is not None:
            comparison = await compare_rest(context, retrieved.text, retrieved.comparison, diagnostics)
            retrieved = replace(retrieved, comparison=comparison)
        order = _fused(retrieved, wanted)
        if context.newest_first:
            order = newest_first(_fused(retrieved, max(wanted, DEPTH)), context)[:wanted]
        judged = _judged(retrieved, order)
        if floor is not None:
            best_confidence = max((each.confidence for each in judged if each.confidence is not None), default=None)
            judged = [each for each in judged if each.confidence is None or each.confidence >= floor]
        chosen = await without_duplicates(context, judged, diagnostics)
        if len(chosen) >= needed or floor is not None:
            return Ranking(chosen, retrieved, best_confidence)
        if len(order) >= wanted:  # what is left out makes room for as many more
            wanted *= 2
        elif retrieved.text.may_give_more and request.mode != "graph":
            retrieved = replace(retrieved, text=await deepen(context, retrieved.text, diagnostics))
        else:
            return Ranking(chosen, retrieved)


async def without_duplicates(
    context: SearchContext, order: list[RankedPassage], diagnostics: Diagnostics
) -> list[RankedPassage]:
    """The places without the duplicates that the request asks to leave out. Raises SearchFailed."""
    request, text, passages = context.request, context.snapshot.text, context.passages
    if request.duplicates == "keep":
        return order
    step = context.run(lambda: distinct(order, request, context.question, text, passages))
    return await read_texts(context, TEXTS_OF_HITS, step, diagnostics)


def _fused(retrieved: Retrieved, first: int) -> list[RankedPassage]:
    context, text, found = retrieved.context, retrieved.text, retrieved.graph
    request, graph, comparison = context.request, context.snapshot.graph, retrieved.comparison
    return rank_passages(
        ChannelResults(
            text.vector or [],
            text.keyword or [],
            found.scores,
            text.structured.candidates,
            found.gate,
            1.0 if request.mode == "structured" else text.structured.conclusiveness,
            None if comparison is None else comparison.compared,
            np.zeros(0) if comparison is None else comparison.comparer.idf,
        ),
        lambda passage_id: graph.document_key(graph.document_of_passage(found.numbers[passage_id])),
        mode=request.mode,
        group=request.group,
        fusion=request.fusion,
        weights=_weights(context.settings.fusion, request),
        first=first,
        limits=context.limits,
    )


def _weights(weights: FusionWeights, request: SearchRequest) -> FusionWeights:
    """The weights, but for those that the request gives."""
    given = {"vector": request.vector_weight, "keyword": request.keyword_weight, "graph": request.graph_weight}
    asked: Mapping[str, float] = {name: weight for name, weight in given.items() if weight is not None}
    return replace(weights, **asked)


def _judged(retrieved: Retrieved, order: list[RankedPassage]) -> list[RankedPassage]:
    evidence, judge = retrieved.evidence, retrieved.context.settings.judge
    if evidence is None or judge is None:
        return order
    return with_confidence(order, retrieved.context.request.mode, evidence, judge)
