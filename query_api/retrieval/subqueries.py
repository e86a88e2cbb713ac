"""A question of several parts: each is searched by itself, on the same snapshot, and their orders are merged into one.

A passage about one of two things that are compared answers half of the question, and seldom well; it answers the part
that names this thing as well as any. So each part has an order of its own. They are merged by rank, for scores of
different questions do not compare, and with that of the whole question, which alone says what is asked of both things.
"""

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple

from query_api.retrieval.fusion import DEEPER, DEPTH, RankedPassage, within_limits
from query_api.retrieval.ranking import Ranking, Retrieved, rank, without_duplicates
from query_api.retrieval.scoring import in_blocks, reciprocal_rank_fusion
from query_api.retrieval.stages import Diagnostics, SearchContext, together
from schemas.frames import Stage
from schemas.search import SearchRequest

RANK_CONSTANT = 5  # with 60, what is far down in all orders stands above the best of one (docs/ranking.md)
COVERAGE_BONUS = 0.25
COVERED_PLACES = 10  # of each part: what is further down is in its order, but no answer to it


def subqueries(context: SearchContext, parts: Sequence[str]) -> list[SearchContext]:
    """The contexts of the whole question and of its parts; of the question alone where it is not to be taken apart."""
    requests = parts_to_search(context.request, parts)
    return [replace(context, request=each) for each in requests] or [context]


class Merged(NamedTuple):
    """A place as the search has it that ranks it best, and its rank in each search that found it, by number: 0 is
    the whole question, the parts follow."""

    place: RankedPassage
    search: int
    ranks: Mapping[int, int]


def parts_to_search(request: SearchRequest, parts: Sequence[str]) -> list[SearchRequest]:
    """A request for the whole question and for each of its parts; none where the question is not to be taken apart.

    Which hits stay is decided once they are merged, but for a floor of confidence.
    """
    different = list(dict.fromkeys((request.q, *parts)))
    if not request.decompose or len(different) < 3:
        return []
    later = {"group": "passage", "max_per_document": None, "diversity": None, "max_per_value": None}
    kept = {"duplicates": "keep", "duplicate_threshold": None}
    return [request.model_copy(update={"q": part, "offset": 0, "k": DEPTH} | later | kept) for part in different]


def merged(orders: Sequence[Sequence[RankedPassage]]) -> list[Merged]:
    """One order out of that of the whole question and those of its parts, each best first.

    score = Σ 1 / (5 + rank) x (1 + .25 x c): reciprocal rank fusion, and c from 0 for what one part has among its first
    ten to 1 for what all have. What a part has first stands before what no part has: among few documents, all of which
    every part finds, what is middling for all would else stand before the answer to each. By blocks of ever more places
    of each order, so that longer orders of the same searches only append to what shorter ones give.
    """
    known: dict[str, Merged] = {}
    blocks: list[dict[str, float]] = []
    depth = DEPTH
    while True:
        ranks = [{place.passage_id: rank for rank, place in enumerate(order[:depth], 1)} for order in orders]
        fused = reciprocal_rank_fusion(ranks, k=RANK_CONSTANT)
        found_by = {name: {at: of[name] for at, of in enumerate(ranks) if name in of} for name in fused}
        blocks.append({name: score * _bonus(found_by[name], len(orders) - 1) for name, score in fused.items()})
        for name, by in found_by.items():
            if name not in known:
                best = min(by, key=lambda each: (by[each], each))
                known[name] = Merged(orders[best][by[best] - 1], best, by)
        if depth >= max(map(len, orders)):
            break
        depth *= DEEPER
    firsts = {order[0].passage_id for order in orders[1:] if order}
    return list(_scored(blocks, known, firsts))


def _bonus(ranks: Mapping[int, int], parts: int) -> float:
    covered = sum(at > 0 and rank <= COVERED_PLACES for at, rank in ranks.items())
    return 1 + COVERAGE_BONUS * max(0, covered - 1) / max(1, parts - 1)


def _scored(
    blocks: Sequence[Mapping[str, float]], known: Mapping[str, Merged], firsts: Collection[str]
) -> Iterable[Merged]:
    """The places in order, `firsts` before all; their scores relative to the best, and never above the one before."""
    scores = {name: score for block in reversed(blocks) for name, score in block.items()}
    lowest = 1.0
    best = max(blocks[0].values(), default=1.0)
    for name in sorted(in_blocks(blocks), key=lambda name: name not in firsts):
        lowest = min(lowest, scores[name] / best)
        one = known[name]
        yield one._replace(place=one.place._replace(score=lowest))


@dataclass(frozen=True)
class MergedRanking:
    """Places, best first, out of the rankings of the whole question and of its parts; `merged` by passage id."""

    places: list[RankedPassage]
    rankings: Sequence[Ranking]
    merged: Mapping[str, Merged]

    @property
    def best_confidence(self) -> float | None:
        return max((each.best_confidence for each in self.rankings if each.best_confidence is not None), default=None)

    @property
    def diagnostics(self) -> Diagnostics:
        """Of each step the longest time, and the first reason why it gave nothing."""
        total = Diagnostics()
        for ranking in self.rankings:
            question = ranking.retrieved.context.request.q
            for name, seconds in ranking.diagnostics.timings.items():
                total.timings[name] = max(seconds, total.timings.get(name, 0.0))
            for name, reason in ranking.diagnostics.failed.items():
                total.failed.setdefault(name, f"For {question[:80]!r}: {reason}")
        return total

    def ranks_in_parts(self, passage_id: str) -> dict[str, int]:
        """{part of the question: the rank of a passage in it}."""
        questions = [ranking.retrieved.context.request.q for ranking in self.rankings]
        return {questions[at]: rank for at, rank in self.merged[passage_id].ranks.items() if at}


async def rank_together(context: SearchContext, retrieved: Sequence[Retrieved], needed: int) -> MergedRanking:
    """As `rank`; `context` is what was asked for, limits and all, `retrieved` the whole question's and its parts'."""
    depth = DEPTH
    while True:
        rankings = await together(rank(each, depth) for each in retrieved)
        retrieved = [ranking.retrieved for ranking in rankings]
        found = merged([ranking.places[:depth] for ranking in rankings])
        kept = within_limits(context.limits, [one.place for one in found], lambda place: place.key)
        chosen = await without_duplicates(context, kept, Diagnostics())
        if len(chosen) >= needed or all(len(ranking.places) < depth for ranking in rankings):
            return MergedRanking(chosen, rankings, {one.place.passage_id: one for one in found})
        depth *= DEEPER


async def side_by_side(
    retrievals: Sequence[AsyncGenerator[Stage | Retrieved]],
) -> AsyncGenerator[Stage | list[Retrieved]]:
    """The stages of one retrieval as each ends, of several those of one name together once all have ended; at last
    what was retrieved. Raises SearchFailed when none of the channels has an answer for one of them."""
    if len(retrievals) == 1:
        async with aclosing(retrievals[0]) as parts:
            async for part in parts:
                yield part if isinstance(part, Stage) else [part]
        return
    ended: dict[str, list[Stage]] = {}
    retrieved: list[Retrieved] = []
    for parts_of_one in await together(_all(each) for each in retrievals):
        for part in parts_of_one:
            if isinstance(part, Stage):
                ended.setdefault(part.name, []).append(part)
            else:
                retrieved.append(part)
    for name, stages in ended.items():
        yield Stage(
            name=name,
            seconds=max(stage.seconds for stage in stages),
            candidates=sum(stage.candidates for stage in stages),
            error=next((stage.error for stage in stages if stage.error is not None), None),
        )
    yield retrieved


async def _all(retrieval: AsyncGenerator[Stage | Retrieved]) -> list[Stage | Retrieved]:
    async with aclosing(retrieval) as parts:
        return [part async for part in parts]
