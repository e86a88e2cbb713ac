"""A store's one thread: every call to a writer runs in it, one after the other, and is repeated while the store cannot."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential_jitter

from indexer.errors import TransientStoreError
from streams.errors import StoreFailure
from streams.metrics import WorkerMetrics
from streams.progress import Progress

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

DATA_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 15.0


class StoreThread:
    """Runs a writer's blocking calls in one thread of their own, so that heartbeats go on meanwhile."""

    def __init__(
        self, name: str, metrics: WorkerMetrics, progress: Progress, *, first_wait_seconds: float = _FIRST_WAIT_SECONDS
    ) -> None:
        self._name = name
        self._metrics = metrics
        self._progress = progress
        self._first_wait_seconds = first_wait_seconds
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._log = structlog.get_logger("thalweg.worker")

    async def run(
        self, work: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """The result of the call, however long the store takes to come back.

        The call may be made several times, also after it took effect: what is run here must be idempotent.
        Raises what the data are to blame for (DATA_ERRORS) as it is, and StoreFailure for everything else.
        """
        attempts = AsyncRetrying(
            retry=retry_if_exception_type((TransientStoreError, OSError)),
            wait=wait_exponential_jitter(self._first_wait_seconds, _LONGEST_WAIT_SECONDS),
            before_sleep=self._say,
        )
        try:
            return await attempts(self._once, lambda: work(*args, **kwargs))
        finally:
            self._progress.waiting_for.discard(self._name)

    async def call(
        self, work: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """The result of one call, without another try: for opening and looking."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*args, **kwargs))

    async def _once(self, call: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, call)
        except (*DATA_ERRORS, TransientStoreError, OSError, MemoryError):
            raise
        except Exception as error:  # whatever a store's bindings may raise: the worker must not go on beside it
            raise StoreFailure(f"The {self._name} store failed: {type(error).__name__}: {error}") from error

    def _say(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self._progress.waiting_for.add(self._name)
        self._metrics.retries.labels(self._name).inc()
        self._log.warning(
            "store does not take it, trying again",
            store=self._name,
            attempt=state.attempt_number,
            error=f"{type(error).__name__}: {error}",
        )

    async def close(self, close_writer: Callable[[], None]) -> None:
        """Close the writer in its thread, after the call under way."""
        await self.call(close_writer)

    def end(self) -> None:
        """Start no other call; the thread ends with the one under way."""
        self._executor.shutdown(wait=False, cancel_futures=True)
