"""A question of several parts: each is searched by itself, on the same snapshot, and their orders are merged into one.

A passage about one of two things that are compared answers half of the question, and seldom well; it answers the part
that names this thing as well as any. So each part has an order of its own. They are merged by rank, for scores of
different questions do not compare, and with that of the whole question, which alone says what is asked of both things.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple, Protocol, TypeVar

from query_api.query.question import question_of
from query_api.retrieval.diversity import at_most
from query_api.retrieval.finish import distinct_places
from query_api.retrieval.fusion import DEEPER, DEPTH, Place
from query_api.retrieval.scoring import in_blocks, reciprocal_rank_fusion
from query_api.retrieval.stages import Account, Reading
from schemas.frames import Stage
from schemas.hits import FieldInQuestion, Hit, NamedInQuestion
from schemas.search import SearchRequest

RANK_CONSTANT = 5  # with 60, what is far down in all orders stands above the best of one (docs/ranking.md)
COVERAGE_BONUS = 0.25
COVERED_PLACES = 10  # of each part: what is further down is in its order, but no answer to it

R = TypeVar("R")


class Named(NamedTuple):
    """What a question names: titles and entities of the graph, and what documents' own fields are to hold."""

    names: tuple[NamedInQuestion, ...]
    fields: tuple[FieldInQuestion, ...]


class PartSearch(Protocol):
    """One search, or several that are merged: its stages first, and a hit that is final with them; then `order` and
    `hits` as often as needed."""

    @property
    def account(self) -> Account: ...
    async def named(self) -> Named:
        """What the question names; to be asked first."""
        ...

    def stages(self) -> AsyncGenerator[Stage]: ...
    async def order(self, needed: int) -> list[Place]:
        """So many places from the first one on, or more, if there are; a longer order begins with a shorter one."""
        ...

    async def hits(self, page: Sequence[Place], ranks: Sequence[int]) -> list[Hit]: ...


class Merged(NamedTuple):
    """A place as the search tells it that ranks it best, and its rank in each search that found it, by their numbers:
    0 is the whole question, the parts follow."""

    place: Place
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


def merged(orders: Sequence[Sequence[Place]]) -> list[Merged]:
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


class Decomposed:
    """The searches of the whole question and of its parts, {question: its search} in this order, as one. `reading` is
    what was asked for, limits and all."""

    def __init__(self, reading: Reading, searches: Mapping[str, PartSearch]) -> None:
        self._reading = reading
        self._questions = list(searches)
        self._searches = list(searches.values())
        self._merged: dict[str, Merged] = {}

    @property
    def account(self) -> Account:
        """Of each step the longest time, and the first reason why it gave nothing; the best confidence of all."""
        total = Account()
        for search in self._searches:
            for name, seconds in search.account.timings.items():
                total.timings[name] = max(seconds, total.timings.get(name, 0.0))
        for question, search in zip(self._questions, self._searches, strict=True):
            for name, reason in search.account.failed.items():
                total.failed.setdefault(name, f"For {question[:80]!r}: {reason}")
        known = (search.account.best_confidence for search in self._searches)
        total.best_confidence = max((each for each in known if each is not None), default=None)
        return total

    async def named(self) -> Named:
        """As the whole question has it."""
        return await self._searches[0].named()

    async def stages(self) -> AsyncGenerator[Stage]:
        """The channels of all searches side by side; a stage for each once all have ended. Raises SearchFailed when
        none has an answer for one of them."""
        ended: dict[str, list[Stage]] = {}
        for stages in await _together(_all(search) for search in self._searches):
            for stage in stages:
                ended.setdefault(stage.name, []).append(stage)
        for name, each in ended.items():
            yield Stage(
                name=name,
                seconds=max(stage.seconds for stage in each),
                candidates=sum(stage.candidates for stage in each),
                error=next((stage.error for stage in each if stage.error is not None), None),
            )

    async def order(self, needed: int) -> list[Place]:
        """As of one search. Raises SearchFailed."""
        depth = DEPTH
        while True:
            orders = [order[:depth] for order in await _together(search.order(depth) for search in self._searches)]
            found = merged(orders)
            self._merged = {one.place.passage_id: one for one in found}
            chosen = await self._chosen([one.place for one in found])
            if len(chosen) >= needed or all(len(order) < depth for order in orders):
                return chosen
            depth *= DEEPER

    async def hits(self, page: Sequence[Place], ranks: Sequence[int]) -> list[Hit]:
        """Each hit as the search tells it that ranks it best, with its ranks in the parts."""
        owned = [
            [
                (place, rank)
                for place, rank in zip(page, ranks, strict=True)
                if self._merged[place.passage_id].search == at
            ]
            for at in range(len(self._searches))
        ]
        found = await _together(
            search.hits([place for place, _ in own], [rank for _, rank in own])
            for search, own in zip(self._searches, owned, strict=True)
            if own
        )
        hits = sorted((hit for each in found for hit in each), key=lambda hit: hit.rank)
        return [hit.model_copy(update={"parts": self._told(hit.passage_id)}) for hit in hits]

    def _told(self, passage_id: str) -> dict[str, int]:
        return {self._questions[at]: rank for at, rank in self._merged[passage_id].ranks.items() if at}

    async def _chosen(self, places: list[Place]) -> list[Place]:
        """The places that stay. Raises SearchFailed."""
        kept = at_most(self._reading.limits, places, lambda place: place.key)
        return await distinct_places(self._reading, question_of(self._reading.request.q), kept, Account())


async def _all(search: PartSearch) -> list[Stage]:
    async with aclosing(search.stages()) as stages:
        return [part async for part in stages if isinstance(part, Stage)]


async def _together(steps: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
    """The results of all, side by side; where one fails, or this is cancelled, the others end."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
