"""Retrying a call in place with back-off; bisecting a batch, so that a poison record cannot hold up the others."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential
from tenacity.stop import stop_after_attempt, stop_after_delay, stop_base, stop_never
from tenacity.wait import wait_base, wait_chain, wait_fixed

from indexer.errors import EncoderUnavailable, ExtractorUnavailable
from streams.runtime.partition_progress import Progress
from streams.worker_log import log
from streams.worker_metrics import WorkerMetrics

Item = TypeVar("Item")
Result = TypeVar("Result")

LONGEST_WAIT_SECONDS = 15.0
LONGEST_RETRY_AFTER_SECONDS = 300.0


@dataclass(eq=False)
class Retrier:
    """Retries calls, and shows in log, metrics and progress what it waits for.

    `target` is what the calls need, `errors` are the transient ones. Cancelling ends it. Where a failure says how long
    to wait, it waits as long, up to five minutes at a time.
    """

    target: str
    errors: tuple[type[Exception], ...]
    metrics: WorkerMetrics
    progress: Progress
    _: KW_ONLY
    first_wait_seconds: float

    async def retry_forever(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of the first call without a transient error. `work` must be idempotent."""
        wait = wait_random_exponential(multiplier=self.first_wait_seconds, max=LONGEST_WAIT_SECONDS)
        return await self._repeat(work, self.errors, wait, stop_never)

    async def retry(
        self, work: Callable[[], Awaitable[Result]], errors: tuple[type[Exception], ...], waits: Sequence[float]
    ) -> Result:
        """The same, with these waits in seconds between the calls; raises what the last call raised."""
        wait = wait_chain(*map(wait_fixed, waits))
        return await self._repeat(work, errors, wait, stop_after_attempt(len(waits) + 1))

    async def _repeat(
        self,
        work: Callable[[], Awaitable[Result]],
        errors: tuple[type[Exception], ...],
        wait: wait_base,
        stop: stop_base,
    ) -> Result:
        try:
            return await _repeat(work, errors, _AtLeastRetryAfter(wait), stop, self._report)
        finally:
            self.progress.waiting_for.pop(self.target, None)

    def _report(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        failure = f"{type(error).__name__}: {error}"
        self.progress.waiting_for[self.target] = failure
        self.metrics.retries.labels(self.target).inc()
        log.warning("a call failed, retrying", target=self.target, attempt=state.attempt_number, error=failure)


class _AtLeastRetryAfter(wait_base):
    """Another wait, or the longer one that the failure asks for."""

    def __init__(self, otherwise: wait_base) -> None:
        self._otherwise = otherwise

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        retry_after = (
            error.retry_after_seconds if isinstance(error, EncoderUnavailable | ExtractorUnavailable) else None
        )
        return max(self._otherwise(retry_state), min(retry_after or 0.0, LONGEST_RETRY_AFTER_SECONDS))


async def retry_for(
    seconds: float, work: Callable[[], Awaitable[Result]], error: type[Exception], *, every_seconds: float
) -> Result:
    """The result of the first call without the error; raises it when it is still there after so long."""
    return await _repeat(work, (error,), wait_fixed(every_seconds), stop_after_delay(seconds))


async def _repeat(
    work: Callable[[], Awaitable[Result]],
    errors: tuple[type[Exception], ...],
    wait: wait_base,
    stop: stop_base,
    before_sleep: Callable[[RetryCallState], None] | None = None,
) -> Result:
    attempts = AsyncRetrying(
        retry=retry_if_exception_type(errors), wait=wait, stop=stop, before_sleep=before_sleep, reraise=True
    )

    async def attempt() -> Result:  # tenacity awaits what coroutine functions return, and of a lambda it is unaware
        return await work()

    return await attempts(attempt)


async def bisect(
    batch: Sequence[Item],
    work: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
    reject: Callable[[Item, Exception], Awaitable[Result]],
    *,
    errors: tuple[type[Exception], ...] = (Exception,),
    fatal: tuple[type[Exception], ...] = (),
    name: str,
    log_traceback: bool = True,
) -> list[Result]:
    """The results of `work` on the batch; where that fails, on its halves, in order, until the failing item is alone.

    That one goes to `reject`, with its error. `work` may be called again with a part of what it failed for. Only
    `errors` are bisected, without those of `fatal`. `name` is the batch's in the log, which gets a traceback unless
    the errors of `work` may quote documents.
    """
    try:
        return list(await work(batch))
    except fatal:
        raise
    except errors as error:
        log.warning(
            "a batch failed",
            batch=name,
            records=len(batch),
            error=type(error).__name__,
            exc_info=error if log_traceback else None,
        )
        if not batch:
            raise
        if len(batch) == 1:
            return [await reject(batch[0], error)]
    results: list[Result] = []
    half = len(batch) // 2
    for part in (batch[:half], batch[half:]):
        results += await bisect(part, work, reject, errors=errors, fatal=fatal, name=name, log_traceback=log_traceback)
    return results
