"""One search, from the question to its hits: channels in parallel within their budgets, fused, assembled, streamed.

1. Embed the question; meanwhile ask the keyword index, and which documents have what the question names.
2. Ask the vector index.
3. Compare what was found with the question, whichever channel found it; then follow the graph from there and from what
   the question names.
4. Fuse the channels into one order.
5. Read the texts of a page of it, and hand out its hits, best first.

A question that is to be searched part by part takes these steps for each part (`decomposing`). Where a re-ranker is
used, the first places of the order are read and scored before step 5 (`reranking`).
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import numpy as np

from query_api.index.snapshot import QueryEncoder, Snapshot
from query_api.query.entity_linking import told
from query_api.query.informative_words import told_fields
from query_api.query.question import question_of
from query_api.query.understanding import hops_of, understood
from query_api.retrieval.finish import Finishing
from query_api.retrieval.fusion import DEPTH, Found, FusionWeights, Place, places
from query_api.retrieval.graph_stage import Following
from query_api.retrieval.requested_dates import newest_first, within_asked_time
from query_api.retrieval.rerank import Reranked, asks_reranker
from query_api.retrieval.results.confidence import TOGETHER
from query_api.retrieval.results.hits import Texts, hits_of
from query_api.retrieval.results.paths import Trail
from query_api.retrieval.results.selection import FLOOR_PLACES
from query_api.retrieval.retrievers.structured import Structured
from query_api.retrieval.stages import (
    TEXTS_OF_HITS,
    Account,
    Outcome,
    Reading,
    SearchFailed,
    SearchSettings,
    read_texts,
    within,
)
from query_api.retrieval.subqueries import Decomposed, Named, PartSearch, parts_to_search
from query_api.retrieval.text_stage import TextChannels
from schemas.frames import Done, Meta, SearchFrame, Stage
from schemas.hits import Hit, NamedInQuestion
from schemas.search import Channel, SearchRequest

FIRST_HITS = 20  # read and sent before the rest of a long page
BATCH_HITS = 200
ALL_CHANNELS: tuple[Channel, ...] = ("vector", "keyword", "structured", "graph")


async def search(
    request: SearchRequest,
    retrieval_id: str,
    snapshot: Snapshot,
    encoder: QueryEncoder,
    executor: Executor,
    settings: SearchSettings,
) -> AsyncGenerator[SearchFrame, None]:
    """The parts of an answer, as each is final: Meta, Stages, Hits in rank order, Done.

    Everything is read from `snapshot`, so the same request gives the same hits as long as the snapshot is kept, and
    the hits of two pages are those of one page of both lengths. Closing the iterator ends the work that waits; a
    thread that has begun a store call finishes it unheard. Raises SearchFailed when no channel could answer,
    MalformedFilter for filters that this snapshot's documents cannot answer.
    """
    reading, period = Reading.of(request, snapshot, encoder, executor, settings), None
    if "structured" in _asked(request):
        reading, period = await within_asked_time(reading)
    understanding = understood(request.q, request.intent)
    parts = parts_to_search(request, understanding.parts)
    reranker = settings.reranker if asks_reranker(request) else None
    searching: PartSearch = _Search(reading)
    if parts:
        searching = Decomposed(reading, {each.q: _Search(replace(reading, request=each)) for each in parts})
    if reranker is not None:
        searching = Reranked(reading, searching, reranker)
    decided = {
        "decomposed": bool(parts),
        "channels": tuple(filter(_asked(request).__contains__, ALL_CHANNELS)),
        "hops": hops_of(request),
        "period": period,
        "newest_first": reading.newest_first,
    }
    named = await searching.named()
    yield Meta(
        retrieval_id=retrieval_id,
        query=request.q,
        mode=request.mode,
        collection=request.collection,
        understanding=understanding.model_copy(update=decided | named._asdict()),
        snapshot=snapshot.info(),
        budget_seconds=settings.budgets.total_seconds + (reranker.budget_seconds if reranker else 0.0),
    )
    async with aclosing(searching.stages()) as stages:  # 1, 2, 3
        async for stage in stages:
            yield stage
    order = await searching.order(request.offset + request.k + 1)  # 4
    page = order[request.offset : request.offset + request.k]
    for start, end in _batches(len(page)):
        ranks = range(request.offset + start + 1, request.offset + end + 1)
        for hit in await searching.hits(page[start:end], ranks):  # 5
            yield hit
    following = request.offset + len(page)
    yield Done(
        retrieval_id=retrieval_id,
        hits=len(page),
        timings=searching.account.timings,
        failed_channels=searching.account.failed,
        next_offset=following if len(order) > following else None,
        best_confidence=searching.account.best_confidence,
    )


class _Search:
    """What one search knows so far."""

    def __init__(self, reading: Reading) -> None:
        self.account = Account()
        self._reading = reading
        self._question = question_of(reading.request.q)
        self._asked = _asked(reading.request)
        seeding: set[Channel] = {"vector", "keyword"} if reading.request.mode == "graph" else set()
        self._channels = TextChannels(reading, self._asked | seeding)
        self._following = Following(reading, self._question, self.account)
        self._finishing = Finishing(reading, self._question, self._channels, self._following, self.account)

    async def named(self) -> Named:
        """What the question names, where the channels are asked that go by it; it is embedded meanwhile."""
        self._channels.embed()
        names = await self._names()
        recognised = await self._channels.recognised()
        return Named(names, () if recognised is None else told_fields(recognised))

    async def _names(self) -> tuple[NamedInQuestion, ...]:
        if "graph" not in self._asked:
            return ()
        budget, view = self._reading.settings.budgets.graph_seconds, self._reading.snapshot.graph
        outcome = await within("names", budget, asyncio.shield(self._following.looking_up_names()))
        return () if outcome.value is None else told(outcome.value, view)

    async def stages(self) -> AsyncGenerator[Stage]:
        """Run the channels the mode asks for; a stage as each ends. Raises SearchFailed when none has an answer."""
        account, channels, following = self.account, self._channels, self._following
        async with aclosing(channels.outcomes()) as outcomes:  # 1, 2
            async for outcome in outcomes:
                yield account.stage(outcome, _found_by(outcome))
        account.blame_vector_for_embedding()
        if self._reading.request.mode != "structured":  # 3
            await following.compare(channels)
        if "graph" in self._asked:
            followed = await following.follow()
            yield account.stage(followed, len(following.findings.scores))
        needed = self._asked - {"graph", "structured"} or self._asked - {"graph"} or self._asked
        reached = following.findings.scores if self._reading.request.mode != "rerank" else {}
        if needed <= account.failed.keys() and not reached:
            raise SearchFailed(" ".join(f"{name}: {reason}." for name, reason in sorted(account.failed.items())))

    async def order(self, needed: int) -> list[Place]:
        """So many places from the first one on, or more, if there are."""
        request = self._reading.request
        wanted = max(needed, TOGETHER) if request.min_confidence is None else FLOOR_PLACES
        while True:
            await self._following.compare_rest(self._channels)
            found = self._places(wanted)
            if self._reading.newest_first:
                found = newest_first(self._places(max(wanted, DEPTH)), self._reading)[:wanted]
            chosen = await self._finishing.chosen(found)
            if len(chosen) >= needed or request.min_confidence is not None:
                return chosen
            if len(found) >= wanted:  # what is left out makes room for as many more
                wanted *= 2
                continue
            if not self._channels.may_give_more or request.mode == "graph":
                return chosen
            await self._channels.deepen(self.account)

    async def hits(self, page: Sequence[Place], ranks: Sequence[int]) -> list[Hit]:
        """The hits at these places, with their ranks and all their texts."""
        snapshot, findings = self._reading.snapshot, self._following.findings
        trail = Trail(self._question, snapshot.graph, findings) if findings.gathered is not None else None
        wanted = list(dict.fromkeys(place.passage_id for place in page))
        evidence = trail.passages_of_evidence(wanted) if trail else set()
        texts = await read_texts(self._reading, TEXTS_OF_HITS, self._texts(wanted, evidence), self.account)
        idf = self._following.idf
        found = hits_of(page, ranks, texts, self._question, idf, trail, snapshot.documents_topic)
        matches = self._channels.structured.matches
        matched = [hit.model_copy(update={"matches": list(matches.get(hit.passage_id, ()))}) for hit in found]
        return await self._finishing.told(matched, texts)

    async def _texts(self, wanted: Sequence[str], evidence: set[str]) -> Texts:
        """The passages, the chunks of these and of those that hold evidence, the documents they are of."""
        reading, text = self._reading, self._reading.snapshot.text
        parents = list(dict.fromkeys([*wanted, *sorted(evidence)]))
        passages, chunks = await asyncio.gather(
            reading.run(lambda: reading.passages.read(wanted)), reading.run(lambda: text.chunks_of_passages(parents))
        )
        keys = list(dict.fromkeys(passage.key for passage in passages.values()))
        return Texts(passages, chunks, await reading.run(lambda: text.documents(keys)))

    def _places(self, first: int) -> list[Place]:
        request, graph = self._reading.request, self._reading.snapshot.graph
        channels, findings, comparer = self._channels, self._following.findings, self._following.comparer
        return places(
            Found(
                channels.vector or [],
                channels.keyword or [],
                findings.scores,
                channels.structured.candidates,
                findings.gate,
                1.0 if request.mode == "structured" else channels.structured.conclusiveness,
                self._following.compared,
                np.zeros(0) if comparer is None else comparer.idf,
            ),
            lambda passage_id: graph.document_key(graph.document_of_passage(findings.numbers[passage_id])),
            mode=request.mode,
            group=request.group,
            fusion=request.fusion,
            weights=_weights(self._reading.settings.fusion, request),
            first=first,
            limits=self._reading.limits,
        )


def _asked(request: SearchRequest) -> frozenset[Channel]:
    """The channels that this request asks."""
    match request.mode:
        case "hybrid":
            return frozenset(request.channels or ALL_CHANNELS)
        case "rerank":
            return frozenset({"vector", "graph"})
        case mode:
            return frozenset({mode})


def _weights(weights: FusionWeights, request: SearchRequest) -> FusionWeights:
    """The weights, but for those that the request gives."""
    given = {"vector": request.vector_weight, "keyword": request.keyword_weight, "graph": request.graph_weight}
    return replace(weights, **{name: weight for name, weight in given.items() if weight is not None})


def _found_by(outcome: Outcome[Any]) -> int:
    """How many candidates a step brought; embedding a question brings one vector."""
    match outcome.value:
        case Structured(candidates):
            return len(candidates)
        case np.ndarray():
            return 1
        case found:
            return len(found or ())


def _batches(count: int) -> Iterator[tuple[int, int]]:
    """The spans that the rest of a page is read in: a short one first, so that its first hits come early."""
    start, size = 0, FIRST_HITS
    while start < count:
        yield start, min(start + size, count)
        start, size = start + size, BATCH_HITS
