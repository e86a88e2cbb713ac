"""A re-ranker behind HTTP: `POST {base_url}/rerank`, in either of the two forms that are in use.

`documents` is what Jina, Cohere, vLLM, Infinity and LiteLLM take, `texts` what text-embeddings-inference takes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.embedding.encoder import encodable
from indexer.runtime.model_endpoint import EndpointErrors, ModelEndpoint
from query_api.rerankers import BUDGET_SECONDS, RerankerRefused, RerankerUnavailable, TextsNotScored, checked
from query_api.settings import RerankerSettings

MAX_ANSWER_BYTES = 16 * 1024 * 1024  # some send the texts back
NOT_TAKEN = "the question or a text ({}); it may be too long for the model, or THALWEG_RERANKER__FORM the wrong form"
EXPECTED = "scores; see whether THALWEG_RERANKER__FORM is the form it takes"


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Answer(msgspec.Struct):
    results: list[_Result]


class _Scored(msgspec.Struct):
    index: int
    score: float


class EndpointReranker:
    """Sends a question with its texts, and validates what comes back."""

    at_once = 8

    def __init__(self, settings: RerankerSettings, budget_seconds: float = BUDGET_SECONDS) -> None:
        """Asks nothing yet. Raises RerankerRefused where no address is set."""
        if settings.base_url is None:
            raise RerankerRefused("The re-ranker's address is not known: set THALWEG_RERANKER__BASE_URL.")
        self.name = settings.model or settings.base_url
        self._model = settings.model
        self._form = settings.form
        self._endpoint = ModelEndpoint(
            "The re-ranker",
            settings.base_url,
            "/rerank",
            model=self.name,
            api_key=settings.api_key,
            seconds=budget_seconds,
            settings="THALWEG_RERANKER",
            not_taken=NOT_TAKEN,
            errors=EndpointErrors(RerankerUnavailable, RerankerUnavailable, RerankerRefused, TextsNotScored),
        )
        self.close = self._endpoint.close

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """(n_texts,) as the endpoint scores them.

        Raises RerankerUnavailable for what passes (time-out, no connection, 429, 5xx, a cut answer), RerankerRefused
        for 401, 403, 404, 405 and redirections, TextsNotScored for anything else.
        """
        if not texts:
            return np.zeros(0)
        body = self._body(encodable(question), [encodable(text) or " " for text in texts])
        rows = self._rows(self._endpoint.post(body, MAX_ANSWER_BYTES))
        if sorted(index for index, _ in rows) != list(range(len(texts))):
            raise TextsNotScored(
                f"{self._endpoint.where} gave {len(rows)} scores for {len(texts)} texts, or numbered them wrongly."
            )
        return checked([score for _, score in sorted(rows)], len(texts))

    def _body(self, question: str, texts: Sequence[str]) -> Mapping[str, Any]:
        if self._form == "texts":
            return {"query": question, "texts": texts, "truncate": True}
        named = {} if self._model is None else {"model": self._model}
        return {**named, "query": question, "documents": texts, "top_n": len(texts)}

    def _rows(self, content: bytes) -> list[tuple[int, float]]:
        if self._form == "texts":
            return [(row.index, row.score) for row in self._endpoint.decoded(content, list[_Scored], EXPECTED)]
        results = self._endpoint.decoded(content, _Answer, EXPECTED).results
        return [(row.index, row.relevance_score) for row in results]
