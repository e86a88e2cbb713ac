"""One retrieval: the frames of its answer as they come; at the end its metrics, log line and provenance record."""

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import structlog

from query_api.answers.model.writer import AnswerWriter
from query_api.index.search_snapshot import Snapshot
from query_api.process_pool import SearchPool
from query_api.provenance_queue import ProvenanceQueue
from query_api.question_encoder import NotLoaded, ServedModel
from query_api.retrieval.cache import ResultCache, answer_key, replay_answer
from query_api.retrieval.pagination import PinnedSnapshots, next_cursor, page_of
from query_api.retrieval.retrievers.community_retriever import with_mode_of_intent
from query_api.retrieval.search_context import Diagnostics, SearchFailed, run_with_timeout
from query_api.service_metrics import ServiceMetrics
from schemas.answers import Answer
from schemas.entities import AnswerSubgraph
from schemas.frames import Done, Meta, SearchFrame, Stage
from schemas.hits import Hit, Understanding
from schemas.provenance import Retrieval, RetrievedHit
from schemas.search import SearchRequest
from schemas.tracing import trace_id

log = structlog.get_logger(__name__)

SUBGRAPH_SECONDS = 5.0  # of a graph that was just changed, the entities are counted first
SubgraphOf = Callable[[Snapshot, Understanding | None, Sequence[Hit]], Awaitable[AnswerSubgraph]]


@dataclass
class _RetrievalLog:
    """What is recorded of a retrieval so far."""

    request: SearchRequest
    retrieval_id: str
    traceparent: str | None = None
    counted: bool = True
    at_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    began: float = field(default_factory=time.perf_counter)
    meta: Meta | None = None
    done: Done | None = None
    cached: bool = False
    frames: list[SearchFrame] = field(default_factory=list)
    stages: dict[str, float] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)
    outcome: str = "cancelled"

    def add(self, frame: SearchFrame) -> None:
        self.frames.append(frame)
        match frame:
            case Meta():
                self.meta = frame
            case Stage() if not self.cached:
                self.stages[frame.name] = frame.seconds
            case Hit():
                self.hits.append(frame)
            case Done():
                frame.timings["total"] = round(time.perf_counter() - self.began, 6)
                self.stages |= frame.timings
                self.done = frame
                self.outcome = "done"

    def retrieval(self, seconds: float) -> Retrieval:
        return Retrieval(
            retrieval_id=self.retrieval_id,
            query=self.request.q,
            collection=self.request.collection,
            mode=self.request.mode,
            at_ms=self.at_ms,
            snapshot={} if self.meta is None else self.meta.snapshot.model_dump(),
            parameters=self.request.model_dump(exclude={"q", "collection", "mode", "cursor"}, exclude_none=True),
            hits=[_retrieved(hit) for hit in self.hits],
            answer=None if self.done is None or self.done.answer is None else _answered(self.done.answer),
            stages=dict(self.stages),
            failed_channels={} if self.done is None else dict(self.done.failed_channels),
            seconds=seconds,
            outcome=self.outcome,
            cached=self.cached,
            traceparent=self.traceparent,
            counted=self.counted,
        )


def _retrieved(hit: Hit) -> RetrievedHit:
    return RetrievedHit(
        rank=hit.rank,
        chunk_id=hit.chunk_id,
        passage_id=hit.passage_id,
        document_id=hit.document_id,
        collection=hit.collection,
        score=hit.score,
        scores=hit.scores,
        ranks=hit.ranks,
        confidence=hit.confidence,
        path=[edge.model_dump(by_alias=True, exclude_none=True) for edge in hit.path],
        source=hit.source.model_dump(exclude_none=True),
    )


def _answered(answer: Answer) -> dict[str, Any]:
    """Without texts, which a record never has."""
    of_citation = {"number", "collection", "document_id", "chunk_id", "hit", "start", "end"}
    return answer.model_dump(
        include=dict.fromkeys(("form", "confidence", "refused", "dropped", "usage"), True)
        | {"citations": {"__all__": of_citation}}
    )


@dataclass(eq=False)
class Retriever:
    """Runs searches and accounts for each of them, however it ends."""

    model: ServedModel
    pool: SearchPool
    metrics: ServiceMetrics
    provenance: ProvenanceQueue
    cache: ResultCache
    pinned: PinnedSnapshots
    subgraph_of: SubgraphOf
    writer: AnswerWriter | None
    _: KW_ONLY
    resumable_seconds: float
    under_way: int = 0

    async def retrieve(
        self,
        request: SearchRequest,
        retrieval_id: str,
        snapshot: Snapshot,
        *,
        traceparent: str | None = None,
        counted: bool = True,
        caller: str = "",
        resumable: bool = False,
        searched: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[SearchFrame, None]:
        """The frames of the answer, searched or from the cache. Closing the iterator stops the work; the retrieval is
        recorded all the same.

        `traceparent` is the request's own, for the record and the log line; analytics leave out a retrieval that is not
        `counted`. Tokens of a language model are counted for the `caller`; before it is asked, which may take a minute,
        `searched` is called. A `resumable` one that is cut off is recorded once it can no longer be finished. Raises
        MalformedCursor, SearchFailed, or TransientStoreError.
        """
        encoder = self.model.of(snapshot.generation) or NotLoaded()
        if isinstance(encoder, NotLoaded) and request.needs_vector:
            raise SearchFailed("The model is not loaded yet.")
        page = await with_mode_of_intent(page_of(request), snapshot)
        key = answer_key(page, snapshot) if request.cache and self.model.encoder else None
        cached = None if key is None else self.cache.get(key)
        retrieved = _RetrievalLog(page, retrieval_id, traceparent, counted, cached=cached is not None)
        if cached is None:
            frames = self.pool.search(page, retrieval_id, snapshot, encoder)
        else:
            frames = replay_answer(cached, retrieval_id)
        self.under_way += 1
        try:
            async with aclosing(frames):
                async for frame in frames:
                    if isinstance(frame, Done):
                        further = self._further(retrieved, snapshot, frame, caller, searched)
                        async with aclosing(further) as parts:
                            async for part in parts:
                                retrieved.add(part)
                                yield part
                        frame.next_cursor = next_cursor(request, snapshot, frame.next_offset, self.pinned)
                        key = None if frame.notes or frame.failed_channels else key  # the next one may get more
                        frame.notes += [*_empty_notes(page, snapshot, frame), *_confidence_notes(page, frame)]
                        frame.notes += [*_unknown_name_notes(page, retrieved.meta), *_reading_notes(retrieved.meta)]
                        frame.notes += [f"Did you mean: {frame.suggestion}"] if frame.suggestion else []
                    retrieved.add(frame)
                    if key is not None and cached is None and retrieved.done:
                        self.cache.put(key, retrieved.frames)
                    yield frame
        except Exception:  # only to distinguish failures from clients that left; it is re-raised
            retrieved.outcome = "failed"
            raise
        finally:
            self.under_way -= 1
            self._record(retrieved, resumable=resumable)

    async def _further(
        self, retrieved: _RetrievalLog, snapshot: Snapshot, done: Done, caller: str, searched: Callable[[], None]
    ) -> AsyncGenerator[SearchFrame]:
        """What follows the hits of a search, unless it is from the cache, before it is done."""
        request = retrieved.request
        if self.writer is not None and request.answer_form == "model" and not retrieved.cached:
            searched()
            async with aclosing(self.writer.write(request, retrieved.hits, done, caller)) as pieces:
                async for piece in pieces:
                    yield piece
        if request.subgraph and not retrieved.cached:
            for found in await self._subgraph(retrieved, snapshot, done):
                yield found

    async def _subgraph(self, retrieved: _RetrievalLog, snapshot: Snapshot, done: Done) -> list[SearchFrame]:
        """What was found is about. Where that is late or broken, the answer does without, and says so."""
        understanding = None if retrieved.meta is None else retrieved.meta.understanding
        step, diagnostics = self.subgraph_of(snapshot, understanding, retrieved.hits), Diagnostics()
        outcome = await run_with_timeout("subgraph", SUBGRAPH_SECONDS, step)
        stage = diagnostics.stage(outcome, len(outcome.value.entities) if outcome.value else 0)
        done.timings |= diagnostics.timings
        done.failed_channels |= diagnostics.failed
        return [stage, *filter(None, [outcome.value])]

    def _record(self, retrieved: _RetrievalLog, *, resumable: bool) -> None:
        seconds = time.perf_counter() - retrieved.began
        mode = retrieved.request.mode
        for stage, spent in (retrieved.stages | {"total": seconds}).items():
            self.metrics.search_seconds.labels(mode=mode, stage=stage).observe(spent)
        self.metrics.searches.labels(mode=mode, outcome=retrieved.outcome).inc()
        if resumable and retrieved.outcome == "cancelled":
            self.provenance.delay(retrieved.retrieval(seconds), self.resumable_seconds)
        else:
            self.provenance.add(retrieved.retrieval(seconds))
        log.info(
            "search",
            retrieval_id=retrieved.retrieval_id,
            mode=mode,
            k=retrieved.request.k,
            hits=len(retrieved.hits),
            outcome=retrieved.outcome,
            cached=retrieved.cached,
            seconds=round(seconds, 4),
            failed_channels=sorted(retrieved.done.failed_channels) if retrieved.done else [],
            **({"trace": trace_id(retrieved.traceparent)} if retrieved.traceparent else {}),
        )


def _empty_notes(request: SearchRequest, snapshot: Snapshot, done: Done) -> list[str]:
    """Why an answer may be empty though nothing failed: a collection is there as long as a document is in it."""
    if done.hits or done.failed_channels or request.offset or request.collection is None:
        return []
    if snapshot.text.holds(request.collection):
        return []
    empty = f"No document is in the collection {request.collection[:80]!r} at this snapshot."
    advice = "Look whether its name is right (GET /v1/collections lists those there are)"
    return [f"{empty} {advice}; if you have just written to it, search with `after`."]


def _confidence_notes(request: SearchRequest, done: Done) -> list[str]:
    """A note where a floor of confidence left out all, or could leave out nothing."""
    floor, best = request.min_confidence, done.best_confidence
    if floor is None or request.offset:
        return []
    if best is not None and not done.hits:
        return [f"Nothing is at least {_percent(floor)} likely to be relevant; the best was {_percent(best)}."]
    if best is None and done.hits:
        unknown = "Of none of these hits a confidence is known, so `min_confidence` left none out."
        return [f"{unknown} It was fitted to no such embedding model, or documents' fields decide their order."]
    return []


def _reading_notes(meta: Meta | None) -> list[str]:
    """What quotation marks, exclusions and a time in the question did."""
    understanding = None if meta is None else meta.understanding
    if understanding is None:
        return []
    period, notes = understanding.period, list(understanding.phrases)
    if period is None:
        return notes
    if not period.documents:
        return [*notes, f"No document is from {period.words!r}, so all were searched."]
    if not period.filters:
        return [*notes, f"Documents from {period.words!r} are raised; none is left out."]
    count = "1 document" if period.documents == 1 else f"{period.documents:,} documents"
    dated = " or ".join([*period.fields, "arrival"])
    searched = f"Only the {count} from {period.words!r}, by {dated}, were searched"
    return [*notes, f"{searched}; `channels` without `structured` searches all."]


def _percent(share: float) -> str:
    """To one decimal, rounded down: what is below a floor does not look as if it were at it."""
    return f"{math.floor(share * 1000 + 1e-9) / 10:g} %"


def _unknown_name_notes(request: SearchRequest, meta: Meta | None) -> list[str]:
    """Which of the names that were given the graph does not know."""
    if not request.names or meta is None or meta.understanding is None:
        return []
    known = {named.words for named in meta.understanding.names}
    unknown = [name for name in request.names if name.strip() and name not in known]
    if not unknown:
        return []
    return [f"No title or entity is called {', '.join(repr(name[:80]) for name in unknown)}: give each separately."]
