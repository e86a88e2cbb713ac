"""Repeating a call in place, with back-off, for as long as what it needs is away."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from streams.metrics import WorkerMetrics
from streams.progress.partitions import Progress

Result = TypeVar("Result")

LONGEST_WAIT_SECONDS = 15.0


class Patience:
    """Tries until it works, and tells meanwhile, in log, metrics and progress, what it waits for.

    Only cancelling ends it, and errors that are not among those to be waited out.
    """

    def __init__(
        self,
        target: str,
        errors: tuple[type[Exception], ...],
        metrics: WorkerMetrics,
        progress: Progress,
        *,
        first_wait_seconds: float,
    ) -> None:
        self._target = target
        self._errors = errors
        self._metrics = metrics
        self._progress = progress
        self._first_wait_seconds = first_wait_seconds
        self._log = structlog.get_logger("thalweg.worker")

    async def insist(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of the first call that does not fail. `work` must be idempotent."""
        attempts = AsyncRetrying(
            retry=retry_if_exception_type(self._errors),
            wait=wait_random_exponential(multiplier=self._first_wait_seconds, max=LONGEST_WAIT_SECONDS),
            before_sleep=self._tell,
        )

        async def attempt() -> Result:
            return await work()

        try:
            return await attempts(attempt)
        finally:
            self._progress.waiting_for.discard(self._target)

    def _tell(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self._progress.waiting_for.add(self._target)
        self._metrics.retries.labels(self._target).inc()
        self._log.warning(
            "it fails for now, trying again",
            target=self._target,
            attempt=state.attempt_number,
            error=f"{type(error).__name__}: {error}",
        )
