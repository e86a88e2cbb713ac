"""A re-ranker behind HTTP: `POST {base_url}/rerank`, in either of the two forms that are in use.

`documents` is what Jina, Cohere, vLLM, Infinity and LiteLLM take, `texts` what text-embeddings-inference takes. Nothing
an endpoint says reaches a message here but its status: it may quote a text, or the key.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.embedding.encoder import encodable
from indexer.runtime.bounded_http import AnswerTooLong, post_json
from query_api.rerankers import RerankerFailure, RerankerRefused, RerankerUnavailable, TextsNotScored, checked
from query_api.settings import RerankerSettings

MAX_ANSWER_BYTES = 16 * 1024 * 1024  # some send the texts back
_TRANSIENT = frozenset({408, 409, 425})  # and all from 500 on


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

    def __init__(self, settings: RerankerSettings) -> None:
        """Asks nothing yet. Raises RerankerRefused where no address is set."""
        if settings.base_url is None:
            raise RerankerRefused("Where the re-ranker is is not known: set THALWEG_RERANKER__BASE_URL.")
        self.name = settings.model or settings.base_url
        self._model = settings.model
        self._url = settings.base_url
        self._form = settings.form
        self._seconds = settings.budget_seconds
        key = settings.api_key
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        self._http = httpx.Client(headers=headers, timeout=settings.budget_seconds)

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """(n_texts,) as the endpoint scores them.

        Raises RerankerUnavailable for what passes (time-out, no connection, 429, 5xx, a cut answer), RerankerRefused
        for 401, 403, 404, 405 and redirections, TextsNotScored for anything else.
        """
        if not texts:
            return np.zeros(0)
        content = self._answer(self._body(encodable(question), [encodable(text) or " " for text in texts]))
        rows = self._rows(content)
        if sorted(index for index, _ in rows) != list(range(len(texts))):
            raise TextsNotScored(
                f"The re-ranker at {self._url} gave {len(rows)} scores for {len(texts)} texts, or numbered them "
                "wrongly."
            )
        return checked([score for _, score in sorted(rows)], len(texts))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _body(self, question: str, texts: Sequence[str]) -> Mapping[str, Any]:
        if self._form == "texts":
            return {"query": question, "texts": texts, "truncate": True}
        named = {} if self._model is None else {"model": self._model}
        return {**named, "query": question, "documents": texts, "top_n": len(texts)}

    def _answer(self, body: Mapping[str, Any]) -> bytes:
        """The body of a 200."""
        try:
            answer = post_json(
                self._http, f"{self._url}/rerank", body, seconds=self._seconds, max_bytes=MAX_ANSWER_BYTES
            )
        except AnswerTooLong:
            raise TextsNotScored(f"The re-ranker at {self._url} gave an answer without end.") from None
        except httpx.TimeoutException:
            within = f"within {self._seconds:g} s"
            raise RerankerUnavailable(f"The re-ranker at {self._url} did not answer {within}.") from None
        except (httpx.HTTPError, httpx.InvalidURL):  # what is behind it may quote a text or the key
            raise RerankerUnavailable(f"The re-ranker at {self._url} cannot be reached, or broke off.") from None
        if answer.status != httpx.codes.OK:
            raise self._failure(answer.status, answer.retry_after)
        return answer.content

    def _rows(self, content: bytes) -> list[tuple[int, float]]:
        try:
            if self._form == "texts":
                return [(row.index, row.score) for row in msgspec.json.decode(content, type=list[_Scored])]
            return [(row.index, row.relevance_score) for row in msgspec.json.decode(content, type=_Answer).results]
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        opening, closing = (b"[", b"]") if self._form == "texts" else (b"{", b"}")
        if content.lstrip().startswith(opening) and not content.rstrip().endswith(closing):
            raise RerankerUnavailable(f"The re-ranker at {self._url} gave an answer cut short.")
        raise TextsNotScored(
            f"The re-ranker at {self._url} gave something else than scores; see whether THALWEG_RERANKER__FORM is the "
            "form it takes."
        )

    def _failure(self, status: int, after: float | None) -> RerankerFailure:
        where = f"The re-ranker at {self._url}"
        if status == httpx.codes.TOO_MANY_REQUESTS:
            return RerankerUnavailable(f"{where} takes no more just now (429).", after)
        if status in _TRANSIENT or status >= 500:
            return RerankerUnavailable(f"{where} failed ({status}).", after)
        if status in (401, 403):
            return RerankerRefused(f"{where} refuses the key ({status}): set THALWEG_RERANKER__API_KEY.")
        if status in (404, 405) or status < 400:
            return RerankerRefused(
                f"{where} does not know the model {self.name!r}, or is no such endpoint ({status}): set "
                "THALWEG_RERANKER__MODEL or THALWEG_RERANKER__BASE_URL."
            )
        return TextsNotScored(
            f"{where} does not take the question or a text ({status}); it may be too long for the model, or "
            "THALWEG_RERANKER__FORM the wrong form."
        )
