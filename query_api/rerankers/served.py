"""The service's re-ranker: configured from the start, loaded behind the first searches, spared while it is away."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from query_api.circuit_breaker import REST_SECONDS, Rest
from query_api.rerankers.loading import load_reranker
from query_api.rerankers.port import (
    Reranker,
    RerankerFailure,
    RerankerUnavailable,
    TextsNotScored,
    checked,
)
from query_api.settings import RerankerSettings

LOADING = "The re-ranker is being loaded."


class ServedReranker:
    """A re-ranker with threads of its own, so that a slow one takes none from searches.

    After a failure that no text is to blame for it is asked again only once in `rest_seconds`, or when it said, within
    five minutes; else each search would wait for it until its budget is used up. `problem` says why it gives no scores.
    """

    def __init__(
        self,
        settings: RerankerSettings,
        load: Callable[[RerankerSettings], Reranker] = load_reranker,
        *,
        rest_seconds: float = REST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.depth = settings.depth
        self.budget_seconds = settings.budget_seconds
        self._settings = settings
        self._load = load
        self._rest = Rest(rest_seconds, clock)
        self._unloaded: str | None = LOADING
        self._loaded: tuple[Reranker, ThreadPoolExecutor] | None = None

    @property
    def problem(self) -> str | None:
        """Why it gives no scores; None while it does."""
        return self._unloaded or self._rest.problem

    @property
    def name(self) -> str | None:
        """The model's name, once it is loaded."""
        return None if self._loaded is None else self._loaded[0].name

    def load(self) -> None:
        """To be called once, in a thread: it may take long. `problem` then tells how it went."""
        try:
            reranker = self._load(self._settings)
        except RerankerFailure as failure:
            self._unloaded = str(failure)
            return
        self._loaded = reranker, ThreadPoolExecutor(reranker.at_once, thread_name_prefix="re-ranker")
        self._unloaded = None

    async def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """(n_texts,) finite numbers, higher is better. Raises RerankerFailure, while it is loaded or rests at once.

        Who no longer waits leaves a call that has begun to its thread; one that has not is never made.
        """
        if self._loaded is None:
            raise RerankerUnavailable(self.problem or LOADING)
        if rests := self._rest.reason():
            raise RerankerUnavailable(f"{rests[0]} It is not asked again for {math.ceil(rests[1])} s.")
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
            asked = failure.retry_after_seconds if isinstance(failure, RerankerUnavailable) else None
            self._rest.begin(str(failure), asked)
            raise
        self._rest.end()
        return scores
