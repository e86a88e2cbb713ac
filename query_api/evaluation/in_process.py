"""Evaluations that the service runs on itself: one at a time, at a lower priority than searches of callers.

They use the service's own search, but are not retrievals: no metric counts them and no provenance is recorded. They
queue as other searches do, and are retried when they are refused, so that no question is lost. All searches run in one
thread, so latencies are higher than a caller's; before each, an evaluation waits, for a bounded time, until no caller's
search runs.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay

from query_api.admission import SearchRefused, Turn
from query_api.evaluation.aggregation import Experiment, collection_result, not_measured
from query_api.evaluation.approaches import WITHOUT_RERANKER, Approach
from query_api.evaluation.datasets import KIND, LabelledCollection, LabelledDocument, Question
from query_api.evaluation.judgements import LeftOut
from query_api.evaluation.results import Answer, Evaluation, Loaded, ServiceFacts
from query_api.evaluation.statistics import LEVEL, RESAMPLES
from query_api.operations.jobs import Explanation, Job, Jobs, new_job_id
from schemas.analytics import EvaluationRequest, EvaluationState
from schemas.frames import Done, SearchFrame
from schemas.hits import Hit
from schemas.search import SearchRequest

YIELD_SECONDS = 0.02
MAX_YIELD_SECONDS = 1.0
RETRY_SECONDS = 600.0  # while the service is overloaded
SPLIT = "request"

log = structlog.get_logger(__name__)


SearchInThread = Callable[[SearchRequest, ThreadPoolExecutor], AsyncGenerator[SearchFrame, None]]
"""The frames of one search, in a thread of the caller's."""


@dataclass(kw_only=True)
class _Run(Job):
    """One evaluation and its progress."""

    request: EvaluationRequest
    approaches: Sequence[Approach]
    left_out: LeftOut | None = None
    asked: int = 0
    report: dict[str, Any] | None = None

    def shown(self, *, with_report: bool) -> EvaluationState:
        return EvaluationState(
            id=self.id,
            name=self.request.name,
            collection=self.request.collection,
            status=self.state,
            searches=len(self.request.questions) * len(self.approaches),
            asked=self.asked,
            created_at=self.created_at,
            message=self.message,
            left_out_documents=self.left_out.documents if self.left_out else [],
            left_out_questions=self.left_out.questions if self.left_out else [],
            report=self.report if with_report else None,
        )


@dataclass(eq=False)
class Evaluations:
    """The last of them, in memory only."""

    search: SearchInThread
    turn: Callable[[], Turn]
    busy: Callable[[], bool]
    facts: Callable[[], ServiceFacts]

    def __post_init__(self) -> None:
        self._until_admitted = AsyncRetrying(
            retry=retry_if_exception_type(SearchRefused),
            wait=_retry_after,
            stop=stop_after_delay(RETRY_SECONDS),
            reraise=True,
        )
        self._jobs: Jobs[_Run] = Jobs("evaluation", _explained)
        self.stop = self._jobs.stop

    def begin(
        self,
        request: EvaluationRequest,
        approaches: Sequence[Approach],
        documents: Sequence[LabelledDocument],
        left_out: LeftOut | None = None,
    ) -> EvaluationState:
        """Start it in the background; `documents` are all of the collection's, `left_out` what `request` is asked
        without. Raises JobRunning."""
        self._jobs.require_idle()
        run = _Run(id=new_job_id("e"), request=request, approaches=approaches, left_out=left_out)
        return self._jobs.begin(run, lambda run: self._run(run, documents)).shown(with_report=False)

    def get(self, run_id: str) -> EvaluationState | None:
        run = self._jobs.get(run_id)
        return None if run is None else run.shown(with_report=True)

    def listed(self) -> list[EvaluationState]:
        return [run.shown(with_report=False) for run in self._jobs.newest_first()]

    async def _run(self, run: _Run, documents: Sequence[LabelledDocument]) -> None:
        began = time.perf_counter()
        with ThreadPoolExecutor(1, thread_name_prefix="evaluation") as threads:
            answers = await self._answers(run, threads)
            loop = asyncio.get_running_loop()
            run.report = await loop.run_in_executor(threads, self._report, run, documents, answers)
        log.info("evaluation", evaluation=run.id, asked=run.asked, seconds=round(time.perf_counter() - began, 3))

    async def _answers(self, run: _Run, threads: ThreadPoolExecutor) -> dict[str, list[Answer]]:
        answers: dict[str, list[Answer]] = {approach.name: [] for approach in run.approaches}
        for question in run.request.questions:
            for approach in run.approaches:
                await self._yield_to_searches()
                request = search_request(run.request, question.text, approach)
                answers[approach.name].append(await self._search_in_turn(question.id, request, threads))
                run.asked += 1
        return answers

    async def _yield_to_searches(self) -> None:
        deadline = time.monotonic() + MAX_YIELD_SECONDS
        await asyncio.sleep(0)
        while self.busy() and time.monotonic() < deadline:  # noqa: ASYNC110  (a count of searches has no event)
            await asyncio.sleep(YIELD_SECONDS)

    async def _search_in_turn(self, question_id: str, request: SearchRequest, threads: ThreadPoolExecutor) -> Answer:
        with await self._until_admitted(self._admitted):
            return await self._answer(question_id, request, threads)

    async def _admitted(self) -> Turn:
        turn = self.turn()
        try:
            await turn.begin()
        except BaseException:
            turn.end()
            raise
        return turn

    async def _answer(self, question_id: str, request: SearchRequest, threads: ThreadPoolExecutor) -> Answer:
        began = time.perf_counter()
        hits: list[Hit] = []
        first_hit: float | None = None
        done: Done | None = None
        async with aclosing(self.search(request, threads)) as frames:
            async for frame in frames:
                match frame:
                    case Hit():
                        first_hit = first_hit if hits else time.perf_counter() - began
                        hits.append(frame)
                    case Done():
                        done = frame
        if done is None:
            raise RuntimeError("a search ends with Done")
        seconds = time.perf_counter() - began
        return Answer(
            question_id=question_id,
            documents=tuple(hit.document_id for hit in hits),
            scores=tuple(hit.score for hit in hits),
            confidences=tuple(hit.confidence for hit in hits),
            stages=done.timings | {"total": round(seconds, 6)},
            first_hit_seconds=first_hit,
            seconds=seconds,
            failed_channels=done.failed_channels,
        )

    def _report(
        self, run: _Run, documents: Sequence[LabelledDocument], answers: Mapping[str, Sequence[Answer]]
    ) -> dict[str, Any]:
        request = run.request
        questions = tuple(
            Question(id=each.id, text=each.text, metadata=None if each.kind is None else {KIND: each.kind})
            for each in request.questions
        )
        judgements = {each.id: each.relevant for each in request.questions}
        experiment = Experiment(
            collection=LabelledCollection(
                name=request.name, split=SPLIT, documents=tuple(documents), questions=questions, judgements=judgements
            ),
            questions=questions,
            judgements=judgements,
            metadata={each.id: each.metadata or {} for each in documents},
            loaded=Loaded(
                collection=request.collection, documents=len(documents), sent=0, missing=(), token="", seconds=0.0
            ),
            k=request.k,
        )
        missing = not_measured(run.approaches, answers)
        measured = [approach for approach in run.approaches if approach.name not in missing]
        result = collection_result(experiment, measured, answers, not_offered={}, not_measured=missing, others={})
        evaluation = Evaluation(
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            service=self.facts(),
            k=request.k,
            group=request.group,
            lower_case=False,
            pool=None,
            level=LEVEL,
            resamples=RESAMPLES,
            collections=(result,),
        )
        report: dict[str, Any] = msgspec.to_builtins(evaluation)
        return report


def _explained(error: Exception) -> Explanation:
    return Explanation(f"{str(error) or type(error).__name__} Start it again once that is repaired.", foreseen=False)


def _retry_after(state: RetryCallState) -> float:
    """Seconds that an overloaded service asks to wait."""
    error = state.outcome.exception() if state.outcome else None
    return float(error.retry_after_seconds) if isinstance(error, SearchRefused) else 1.0


def search_request(evaluation: EvaluationRequest, text: str, approach: Approach) -> SearchRequest:
    """One of its searches. Raises pydantic's ValidationError where this service does not offer the approach."""
    scope = {"k": evaluation.k, "collection": evaluation.collection, "group": evaluation.group}
    return SearchRequest.model_validate({"q": text, **scope, **WITHOUT_RERANKER, **approach.parameters})
