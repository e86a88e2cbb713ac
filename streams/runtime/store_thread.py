"""A store's one thread: a writer's calls run in it one after the other, and are retried on transient errors."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from indexer.errors import DamagedStore, TransientStoreError
from streams.errors import StoreFailure
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import Retrier
from streams.worker_metrics import WorkerMetrics

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

DATA_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
_FIRST_WAIT_SECONDS = 0.1


class StoreThread:
    """Runs a writer's blocking calls in one thread of their own, so that heartbeats go on meanwhile."""

    def __init__(
        self, name: str, metrics: WorkerMetrics, progress: Progress, *, first_wait_seconds: float = _FIRST_WAIT_SECONDS
    ) -> None:
        self._name = name
        self._retrier = Retrier(
            name, (TransientStoreError, OSError), metrics, progress, first_wait_seconds=first_wait_seconds
        )
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(
        self, work: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """The result of the call, retried until the store is available. The call must be idempotent: it may be
        repeated after it took effect.

        Raises DATA_ERRORS, which the data are to blame for, and DamagedStore as they are; StoreFailure for all else.
        """
        return await self._retrier.retry_forever(lambda: self._once(lambda: work(*args, **kwargs)))

    async def call(
        self, work: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """The result of one call, without retries: for opening and reading."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*args, **kwargs))

    async def _once(self, call: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, call)
        except (*DATA_ERRORS, TransientStoreError, DamagedStore, OSError, MemoryError):
            raise
        except Exception as error:  # whatever a store's bindings may raise: the worker must not go on beside it
            raise StoreFailure(f"The {self._name} store failed: {type(error).__name__}: {error}") from error

    async def close(self, close_writer: Callable[[], None]) -> None:
        """Close the writer in its thread, after the running call."""
        await self.call(close_writer)

    def end(self) -> None:
        """Start no other call; the thread ends after the running one."""
        self._executor.shutdown(wait=False, cancel_futures=True)
