"""Repeating a call in place, with back-off, for as long as what it needs is away, or a few times."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential
from tenacity.stop import stop_after_attempt, stop_base, stop_never
from tenacity.wait import wait_base, wait_chain, wait_fixed

from indexer.errors import EncoderUnavailable
from streams.metrics import WorkerMetrics
from streams.runtime.progress import Progress

Result = TypeVar("Result")

LONGEST_WAIT_SECONDS = 15.0
LONGEST_ASKED_WAIT_SECONDS = 300.0


class Retrier:
    """Tries again, and tells meanwhile, in log, metrics and progress, what it waits for.

    Cancelling ends it, and errors that are not among those to be waited out. A failure that says how long to wait is
    waited out so long, up to five minutes at a time.
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

    async def retry_forever(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of the first call that does not fail. `work` must be idempotent."""
        wait = wait_random_exponential(multiplier=self._first_wait_seconds, max=LONGEST_WAIT_SECONDS)
        return await self._repeat(work, self._errors, wait, stop_never)

    async def retry(
        self, work: Callable[[], Awaitable[Result]], errors: tuple[type[Exception], ...], waits: Sequence[float]
    ) -> Result:
        """The same, with these waits between the calls, in seconds, and no more calls: raises what the last raised."""
        wait = wait_chain(*map(wait_fixed, waits))
        return await self._repeat(work, errors, wait, stop_after_attempt(len(waits) + 1))

    async def _repeat(
        self,
        work: Callable[[], Awaitable[Result]],
        errors: tuple[type[Exception], ...],
        wait: wait_base,
        stop: stop_base,
    ) -> Result:
        attempts = AsyncRetrying(
            retry=retry_if_exception_type(errors),
            wait=_AtLeastAsked(wait),
            stop=stop,
            before_sleep=self._tell,
            reraise=True,
        )

        async def attempt() -> Result:
            return await work()

        try:
            return await attempts(attempt)
        finally:
            self._progress.waiting_for.pop(self._target, None)

    def _tell(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        failure = f"{type(error).__name__}: {error}"
        self._progress.waiting_for[self._target] = failure
        self._metrics.retries.labels(self._target).inc()
        self._log.warning(
            "it fails for now, trying again",
            target=self._target,
            attempt=state.attempt_number,
            error=failure,
        )


class _AtLeastAsked(wait_base):
    """Another wait, or the longer one that the failure asks for."""

    def __init__(self, otherwise: wait_base) -> None:
        self._otherwise = otherwise

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after_seconds if isinstance(error, EncoderUnavailable) else None
        return max(self._otherwise(retry_state), min(asked or 0.0, LONGEST_ASKED_WAIT_SECONDS))
