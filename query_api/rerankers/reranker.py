"""The service's re-ranker: loaded in the background, with threads of its own, behind a circuit breaker."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import structlog
from numpy.typing import NDArray

from indexer.runtime.circuit_breaker import RESET_SECONDS, CircuitBreaker
from query_api.rerankers import (
    BUDGET_SECONDS,
    HOW_TO_CONFIGURE,
    Reranker,
    RerankerFailure,
    RerankerRefused,
    RerankerUnavailable,
    TextsNotScored,
    checked,
)
from query_api.settings import RerankerSettings

log = structlog.get_logger(__name__)

LOADING = "The re-ranker is being loaded."


def load_reranker(settings: RerankerSettings) -> Reranker:
    """The re-ranker that the settings name. May take many seconds. Raises RerankerRefused where there is none."""
    match settings.provider:
        case "cross-encoder":
            from query_api.rerankers.cross_encoder import CrossEncoderReranker  # torch: many seconds to import

            return CrossEncoderReranker(settings)
        case "endpoint":
            from query_api.rerankers.endpoint import EndpointReranker  # only where one is configured

            return EndpointReranker(settings)
        case "none":
            raise RerankerRefused(HOW_TO_CONFIGURE)


class ServedReranker:
    """A re-ranker with threads of its own, so that a slow one takes none from searches, and a circuit breaker, so that
    searches do not wait for a broken one."""

    def __init__(
        self,
        settings: RerankerSettings,
        load: Callable[[RerankerSettings], Reranker] = load_reranker,
        *,
        budget_seconds: float = BUDGET_SECONDS,
        reset_seconds: float = RESET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.depth = settings.depth
        self.budget_seconds = budget_seconds
        self._settings = settings
        self._load = load
        self._breaker = CircuitBreaker(reset_seconds, clock)
        self._unloaded: str | None = LOADING
        self._loaded: tuple[Reranker, ThreadPoolExecutor] | None = None

    @property
    def problem(self) -> str | None:
        """Why it gives no scores; None while it does."""
        return self._unloaded or self._breaker.problem

    @property
    def name(self) -> str | None:
        """The model's name, once it is loaded."""
        return None if self._loaded is None else self._loaded[0].name

    def load(self) -> None:
        """To be called once, in a thread: it may take long. `problem` then says why it failed."""
        started = time.perf_counter()
        try:
            reranker = self._load(self._settings)
        except RerankerFailure as failure:
            self._unloaded = str(failure)
            log.warning("the re-ranker cannot be loaded; searches go on without it", error=str(failure))
            return
        self._loaded = reranker, ThreadPoolExecutor(reranker.at_once, thread_name_prefix="re-ranker")
        self._unloaded = None
        log.info("re-ranker loaded", model=reranker.name, seconds=round(time.perf_counter() - started, 2))

    async def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """(n_texts,) finite numbers, higher is better. Raises RerankerFailure, at once while it is not loaded or the
        breaker is open. When cancelled, a call that has begun continues in its thread."""
        if self._loaded is None:
            raise RerankerUnavailable(self.problem or LOADING)
        if refusal := self._breaker.refusal():
            raise RerankerUnavailable(f"{refusal[0]} It is not asked again for {math.ceil(refusal[1])} s.")
        reranker, threads = self._loaded
        return await asyncio.get_running_loop().run_in_executor(threads, self._scores, reranker, question, texts)

    def close(self) -> None:
        if self._loaded is not None:
            reranker, threads = self._loaded
            threads.shutdown(wait=False, cancel_futures=True)
            reranker.close()

    def _scores(self, reranker: Reranker, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        try:
            scores = checked(reranker.scores(question, texts), len(texts))
        except TextsNotScored:
            raise
        except RerankerFailure as failure:
            retry_after = failure.retry_after_seconds if isinstance(failure, RerankerUnavailable) else None
            self._breaker.record_failure(str(failure), retry_after)
            raise
        self._breaker.record_success()
        return scores
