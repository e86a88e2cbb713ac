"""One retrieval: the engine's parts handed on as they come; at the end its metric, log line and record."""

import time
from collections.abc import AsyncGenerator
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from query_api.metrics import ServiceMetrics
from query_api.searching.engine import LazyEngine, SearchPart, SearchUnanswered
from query_api.settings import SearchBudgetSettings
from query_api.upkeep.resting_encoder import RestingEncoder
from query_api.writing.provenance import ProvenanceQueue
from schemas.api import Hit, SearchRequest
from schemas.frames import Done, Meta, Stage
from schemas.provenance import Retrieval, RetrievedHit
from schemas.tracing import trace_id

if TYPE_CHECKING:
    from query_api.reading.snapshot import Snapshot

log = structlog.get_logger(__name__)


@dataclass
class _Account:
    """What a retrieval has come to so far."""

    request: SearchRequest
    retrieval_id: str
    traceparent: str | None = None
    at_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    began: float = field(default_factory=time.perf_counter)
    meta: Meta | None = None
    done: Done | None = None
    stages: dict[str, float] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)
    outcome: str = "cancelled"

    def add(self, part: SearchPart) -> None:
        match part:
            case Meta():
                self.meta = part
            case Stage():
                self.stages[part.name] = part.seconds
            case Hit():
                self.hits.append(part)
            case Done():
                part.timings["total"] = round(time.perf_counter() - self.began, 6)
                self.stages |= part.timings
                self.done = part
                self.outcome = "done"

    def retrieval(self, seconds: float) -> Retrieval:
        return Retrieval(
            retrieval_id=self.retrieval_id,
            query=self.request.q,
            collection=self.request.collection,
            mode=self.request.mode,
            at_ms=self.at_ms,
            snapshot={} if self.meta is None else self.meta.snapshot.model_dump(),
            parameters=self.request.model_dump(exclude={"q", "collection", "mode"}, exclude_none=True),
            hits=[_retrieved(hit) for hit in self.hits],
            stages=dict(self.stages),
            failed_channels={} if self.done is None else dict(self.done.failed_channels),
            seconds=seconds,
            outcome=self.outcome,
            traceparent=self.traceparent,
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
        path=[edge.model_dump(by_alias=True, exclude_none=True) for edge in hit.path],
        source=hit.source.model_dump(exclude_none=True),
    )


class Retriever:
    """Runs searches and accounts for each of them, however it ends."""

    def __init__(
        self,
        engine: LazyEngine,
        executor: Executor,
        budgets: SearchBudgetSettings,
        metrics: ServiceMetrics,
        provenance: ProvenanceQueue,
        resumable_seconds: float,
    ) -> None:
        self.encoder: RestingEncoder | None = None
        self.under_way = 0
        self._engine = engine
        self._executor = executor
        self._budgets = budgets
        self._metrics = metrics
        self._provenance = provenance
        self._resumable_seconds = resumable_seconds

    async def retrieve(
        self,
        request: SearchRequest,
        retrieval_id: str,
        snapshot: "Snapshot",
        *,
        traceparent: str | None = None,
        resumable: bool = False,
    ) -> AsyncGenerator[SearchPart, None]:
        """The parts of the answer. Closing the iterator stops the work; the retrieval is recorded all the same.

        `traceparent` is the request's own, for the record and the log line. A `resumable` one that is
        cut off is recorded once it can no longer be finished.
        """
        if self.encoder is None:
            raise SearchUnanswered("The model is not loaded yet.")
        account = _Account(request, retrieval_id, traceparent)
        parts = self._engine.engine.search(request, retrieval_id, snapshot, self.encoder, self._executor, self._budgets)
        self.under_way += 1
        try:
            async with aclosing(parts):
                async for part in parts:
                    account.add(part)
                    yield part
        except Exception:  # only to tell failures from clients that left; it is raised on
            account.outcome = "failed"
            raise
        finally:
            self.under_way -= 1
            self._close(account, resumable=resumable)

    def _close(self, account: _Account, *, resumable: bool) -> None:
        seconds = time.perf_counter() - account.began
        mode = account.request.mode
        for stage, spent in (account.stages | {"total": seconds}).items():
            self._metrics.search_seconds.labels(mode=mode, stage=stage).observe(spent)
        self._metrics.searches.labels(mode=mode, outcome=account.outcome).inc()
        if resumable and account.outcome == "cancelled":
            self._provenance.hold(account.retrieval(seconds), self._resumable_seconds)
        else:
            self._provenance.add(account.retrieval(seconds))
        log.info(
            "search",
            retrieval_id=account.retrieval_id,
            mode=mode,
            k=account.request.k,
            hits=len(account.hits),
            outcome=account.outcome,
            seconds=round(seconds, 4),
            failed_channels=sorted(account.done.failed_channels) if account.done else [],
            **({"trace": trace_id(account.traceparent)} if account.traceparent else {}),
        )
