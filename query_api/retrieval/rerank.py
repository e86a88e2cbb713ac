"""A search whose first places are put into another order by a model that reads the question with each of their texts.

Not the mode `rerank`, in which the graph re-orders what the vector channel finds. The model reads the same places
whatever the page, so pages agree; what stands behind them stays where it was. A model that is late or broken leaves the
order as it was, and the account says why.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from query_api.rerankers.served import ServedReranker
from query_api.retrieval.fusion import Place
from query_api.retrieval.stages import Account, Reading, within
from query_api.retrieval.subqueries import Named, PartSearch
from schemas.frames import Stage
from schemas.hits import Hit
from schemas.search import RERANKED_MODES, SearchRequest

STEP = "rerank"


def asks_reranker(request: SearchRequest) -> bool:
    """Whether a re-ranker is to re-order this search, where there is one."""
    return request.mode in RERANKED_MODES and request.reranker is not False


class Reranked:
    """An inner search, its first `depth` places sorted by the model's scores, ties and what has no text as before."""

    def __init__(self, reading: Reading, inner: PartSearch, reranker: ServedReranker) -> None:
        self._reading = reading
        self._inner = inner
        self._reranker = reranker
        self._own = Account()
        self._scores: Mapping[str, float] = {}

    @property
    def account(self) -> Account:
        """The inner search's, and the model's step."""
        total, inner = Account(), self._inner.account
        total.timings = inner.timings | self._own.timings
        total.failed = inner.failed | self._own.failed
        total.best_confidence = inner.best_confidence
        return total

    async def named(self) -> Named:
        return await self._inner.named()

    async def stages(self) -> AsyncGenerator[Stage]:
        """The inner search's, then the model's; a page behind all that it reads does without it. Raises
        SearchFailed."""
        async with aclosing(self._inner.stages()) as stages:
            async for stage in stages:
                yield stage
        if self._reading.request.offset < self._reranker.depth:
            first = (await self._inner.order(self._reranker.depth))[: self._reranker.depth]
            outcome = await within(STEP, self._reranker.budget_seconds, self._scored(first))
            self._scores = outcome.value or {}
            yield self._own.stage(outcome, len(self._scores))

    async def order(self, needed: int) -> list[Place]:
        """As of the inner search, each place that the model has scored with its score. Raises SearchFailed."""
        depth = self._reranker.depth
        order = await self._inner.order(max(needed, depth))
        scored = [place for place in order[:depth] if self._unit(place) in self._scores]
        scored.sort(key=lambda place: -self._scores[self._unit(place)])  # a stable sort: ties as before
        told = [place._replace(scores=place.scores | {STEP: self._scores[self._unit(place)]}) for place in scored]
        unread = [place for place in order[:depth] if self._unit(place) not in self._scores]
        return [*told, *unread, *order[depth:]]

    async def hits(self, page: Sequence[Place], ranks: Sequence[int]) -> list[Hit]:
        return await self._inner.hits(page, ranks)

    async def _scored(self, places: Sequence[Place]) -> dict[str, float]:
        """{what stands at a place: the model's score}, without what the text stores do not hold. Raises
        RerankerFailure, or TransientStoreError."""
        texts = await self._texts(places)
        scores = await self._reranker.scores(self._reading.request.q, list(texts.values()))
        return dict(zip(texts, scores.tolist(), strict=True))

    async def _texts(self, places: Sequence[Place]) -> dict[str, str]:
        """What the model reads of each place: the title with the passage, or with the chunk where hits are chunks."""
        reading, wanted = self._reading, list(dict.fromkeys(place.passage_id for place in places))
        passages = await reading.run(lambda: reading.passages.read(wanted))
        chunks: dict[str, str] = {}
        if reading.request.group == "chunk":
            held = await reading.run(lambda: reading.snapshot.text.chunks_of_passages(wanted))
            chunks = {chunk.id: chunk.text for of_passage in held.values() for chunk in of_passage}
        texts: dict[str, str] = {}
        for place in places:
            if passage := passages.get(place.passage_id):
                unit = self._unit(place)
                text = chunks.get(unit, passage.text)
                texts[unit] = f"{passage.title}. {text}" if passage.title else text
        return texts

    def _unit(self, place: Place) -> str:
        """The id of what stands at a place."""
        return (place.chunk_id if self._reading.request.group == "chunk" else None) or place.passage_id
