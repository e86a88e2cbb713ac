"""A re-ranker without a model."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from query_api.rerankers import BUDGET_SECONDS
from query_api.rerankers.reranker import ServedReranker
from query_api.settings import RerankerSettings
from tests.support.fakes.model_endpoints import common_words


class StubReranker:
    """Scores by `scored`, which is common words unless told; fails while it has a `failure`, waits for `hold`."""

    name = "stub"

    def __init__(self, scored: Callable[[str, str], Any] = common_words, at_once: int = 1) -> None:
        self.scored = scored
        self.at_once = at_once
        self.failure: Exception | None = None
        self.hold: threading.Event | None = None
        self.asked: list[tuple[str, list[str]]] = []
        self.closed = False

    def scores(self, question: str, texts: Sequence[str]) -> Any:
        self.asked.append((question, list(texts)))
        if self.hold is not None:
            self.hold.wait(10)
        if self.failure is not None:
            raise self.failure
        return [self.scored(question, text) for text in texts]

    def close(self) -> None:
        self.closed = True


def served(
    reranker: StubReranker, *, loaded: bool = True, budget_seconds: float = BUDGET_SECONDS, **settings: Any
) -> ServedReranker:
    """A service's re-ranker, loaded at once."""
    given = {"provider": "cross-encoder", "model": "stub"} | settings
    made = ServedReranker(RerankerSettings.model_validate(given), lambda _: reranker, budget_seconds=budget_seconds)
    if loaded:
        made.load()
    return made
