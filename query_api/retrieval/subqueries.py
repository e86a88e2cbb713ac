"""Query decomposition: sub-questions are searched separately, on one snapshot, and their orders merged into one.

A passage about one of two things that are compared answers half of the question, and rarely well; it fully answers the
sub-question that names this thing. So each has an order of its own. They are merged by rank, for scores of different
questions do not compare, and with that of the whole question, which alone covers both things.
"""

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple

from query_api.retrieval.fusion import DEEPER, DEPTH, RankedPassage, apply_limits, further_of_documents
from query_api.retrieval.ranking import QuestionResults, Ranking, rank, without_duplicates
from query_api.retrieval.scoring import reciprocal_rank_fusion, stable_paged_order
from query_api.retrieval.search_context import Diagnostics, SearchContext, gather_or_cancel
from schemas.frames import Stage
from schemas.search import SearchRequest

RANK_CONSTANT = 5  # with 60, what is far down in all orders ranks above the best of one (docs/ranking.md)
COVERAGE_BONUS = 0.25
ANSWERING_RANK = 10  # up to which a passage counts as an answer to a sub-question


def subqueries(context: SearchContext, subquestions: Sequence[str]) -> list[SearchContext]:
    """The contexts of the whole question and of its sub-questions; of the question alone where it is not decomposed."""
    requests = subquery_requests(context.request, subquestions)
    return [replace(context, request=each) for each in requests] or [context]


class MergedPassage(NamedTuple):
    """A passage as ranked by the search that ranks it best, and its rank in each search that found it, by number: 0
    is the whole question, the sub-questions follow."""

    passage: RankedPassage
    search: int
    ranks: Mapping[int, int]


def subquery_requests(request: SearchRequest, subquestions: Sequence[str]) -> list[SearchRequest]:
    """A request for the whole question and for each sub-question; none where the question is not decomposed.

    Limits and duplicates are applied once they are merged, a floor of confidence to each.
    """
    different = list(dict.fromkeys((request.q, *subquestions)))
    if not request.decompose or len(different) < 3:
        return []
    applied_later = {"group": "passage", "max_per_document": None, "diversity": None, "max_per_value": None}
    with_duplicates = {"duplicates": "keep", "duplicate_threshold": None}
    return [
        request.model_copy(update={"q": question, "offset": 0, "k": DEPTH} | applied_later | with_duplicates)
        for question in different
    ]


def merge(orders: Sequence[Sequence[RankedPassage]]) -> list[MergedPassage]:
    """One order out of that of the whole question and those of its sub-questions, each best first.

    score = Σ 1 / (5 + rank) x (1 + .25 x c): reciprocal rank fusion, and c from 0 for what one sub-question has among
    its first ten to 1 for what all have. The first hit of each sub-question comes before all others: among few
    documents, all of which every search finds, what is middling for all would else rank before the answer to each. By
    blocks of ever more passages of each order, so that longer orders only append to shorter ones.
    """
    known: dict[str, MergedPassage] = {}
    blocks: list[dict[str, float]] = []
    depth = DEPTH
    while True:
        ranks = [{passage.passage_id: rank for rank, passage in enumerate(order[:depth], 1)} for order in orders]
        fused = reciprocal_rank_fusion(ranks, k=RANK_CONSTANT)
        found_by = {name: {at: of[name] for at, of in enumerate(ranks) if name in of} for name in fused}
        blocks.append({name: score * _bonus(found_by[name], len(orders) - 1) for name, score in fused.items()})
        for name, by in found_by.items():
            if name not in known:
                best = min(by, key=lambda each: (by[each], each))
                known[name] = MergedPassage(orders[best][by[best] - 1], best, by)
        if depth >= max(map(len, orders)):
            break
        depth *= DEEPER
    firsts = {order[0].passage_id for order in orders[1:] if order}
    return list(_scored(blocks, known, firsts))


def _bonus(ranks: Mapping[int, int], subquestions: int) -> float:
    covered = sum(at > 0 and rank <= ANSWERING_RANK for at, rank in ranks.items())
    return 1 + COVERAGE_BONUS * max(0, covered - 1) / max(1, subquestions - 1)


def _scored(
    blocks: Sequence[Mapping[str, float]], known: Mapping[str, MergedPassage], firsts: Collection[str]
) -> Iterable[MergedPassage]:
    """In order, `firsts` before all; scores relative to the best, and never above the one before."""
    scores = {name: score for block in reversed(blocks) for name, score in block.items()}
    lowest = 1.0
    best = max(blocks[0].values(), default=1.0)
    for name in sorted(stable_paged_order(blocks), key=lambda name: name not in firsts):
        lowest = min(lowest, scores[name] / best)
        one = known[name]
        yield one._replace(passage=one.passage._replace(score=lowest))


@dataclass(frozen=True)
class MergedRanking:
    """Passages, best first, from the rankings of the whole question and its sub-questions; `merged` by passage id."""

    passages: list[RankedPassage]
    rankings: Sequence[Ranking]
    merged: Mapping[str, MergedPassage]

    @property
    def best_confidence(self) -> float | None:
        return max((each.best_confidence for each in self.rankings if each.best_confidence is not None), default=None)

    @property
    def diagnostics(self) -> Diagnostics:
        """The longest time of each stage, and the first reason why it failed."""
        total = Diagnostics()
        for ranking in self.rankings:
            question = ranking.results.context.request.q
            for name, seconds in ranking.diagnostics.timings.items():
                total.timings[name] = max(seconds, total.timings.get(name, 0.0))
            for name, reason in ranking.diagnostics.failed.items():
                total.failed.setdefault(name, f"For {question[:80]!r}: {reason}")
        return total

    def ranks_in_parts(self, passage_id: str) -> dict[str, int]:
        """{sub-question: the rank of a passage in it}."""
        questions = [ranking.results.context.request.q for ranking in self.rankings]
        return {questions[at]: rank for at, rank in self.merged[passage_id].ranks.items() if at}


async def rank_merged(context: SearchContext, results: Sequence[QuestionResults], needed: int) -> MergedRanking:
    """As `rank`; `context` is that of the request, limits and all, `results` those of the whole question and its
    sub-questions."""
    depth = DEPTH
    while True:
        rankings = await gather_or_cancel(rank(each, depth) for each in results)
        results = [ranking.results for ranking in rankings]
        merged = merge([ranking.passages[:depth] for ranking in rankings])
        order = [one.passage for one in merged]
        kept = apply_limits(context.limits, order, lambda passage: passage.key)
        if context.request.group == "document":
            found = {passage.passage_id for ranking in rankings for passage in ranking.passages[:DEPTH]}
            further = further_of_documents(order[: len(found)], lambda passage: passage.key)
            kept = [passage.with_further(further.get(passage.key, ())) for passage in kept]
        distinct = await without_duplicates(context, kept, Diagnostics())
        if len(distinct) >= needed or all(len(ranking.passages) < depth for ranking in rankings):
            return MergedRanking(distinct, rankings, {one.passage.passage_id: one for one in merged})
        depth *= DEEPER


async def run_subqueries(
    searches: Sequence[AsyncGenerator[Stage | QuestionResults]],
) -> AsyncGenerator[Stage | list[QuestionResults]]:
    """The stages of one search as each ends, of several those of one name together once all have ended; at last the
    results. Raises SearchFailed when none of the channels has an answer for one of them."""
    if len(searches) == 1:
        async with aclosing(searches[0]) as frames:
            async for frame in frames:
                yield frame if isinstance(frame, Stage) else [frame]
        return
    ended: dict[str, list[Stage]] = {}
    results: list[QuestionResults] = []
    for frames_of_one in await gather_or_cancel(_all(each) for each in searches):
        for frame in frames_of_one:
            if isinstance(frame, Stage):
                ended.setdefault(frame.name, []).append(frame)
            else:
                results.append(frame)
    for name, stages in ended.items():
        yield Stage(
            name=name,
            seconds=max(stage.seconds for stage in stages),
            candidates=sum(stage.candidates for stage in stages),
            error=next((stage.error for stage in stages if stage.error is not None), None),
        )
    yield results


async def _all(search: AsyncGenerator[Stage | QuestionResults]) -> list[Stage | QuestionResults]:
    async with aclosing(search) as frames:
        return [frame async for frame in frames]
