"""The port to a re-ranker, and how one fails."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexer.errors import AnswersLater

BUDGET_SECONDS = 5.0  # that a search waits for the model; then its order stays, and the answer says so
HOW_TO_CONFIGURE = (
    "No re-ranker is configured: set THALWEG_RERANKER__PROVIDER to `cross-encoder` or `endpoint` (see docs/models.md) "
    "and start the service again, or leave `reranker` out."
)


class RerankerFailure(Exception):
    """The model gave no scores. The message is fit for a person, and holds no part of a text and no secret."""


class RerankerUnavailable(RerankerFailure, AnswersLater):
    """It cannot answer just now: ask again later."""


class RerankerRefused(RerankerFailure):
    """There is no such model, or it does not serve this key: repair the settings."""


class TextsNotScored(RerankerFailure):
    """It answered, but not with a score for each text: a text may be what it cannot take."""


class Reranker(Protocol):
    """A model that reads a question and a text together. Called from at most `at_once` threads."""

    name: str
    at_once: int

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """(n_texts,) how well each text answers the question, higher is better, on the model's own scale. Blocks.
        Raises RerankerFailure for what can be foreseen."""
        ...

    def close(self) -> None:
        """Release its resources; it is not called again."""
        ...


def checked(scores: ArrayLike, texts: int) -> NDArray[np.float64]:
    """(texts,) the scores as numbers that can be compared. Raises TextsNotScored."""
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(texts, np.nan)
    if values.shape != (texts,) or not np.isfinite(values).all():
        raise TextsNotScored(f"The re-ranker gave something other than a number for each of {texts} texts.")
    return values
