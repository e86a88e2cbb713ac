"""An encoder behind HTTP: any endpoint that speaks OpenAI's `/embeddings`.

Nothing an endpoint says reaches a message here but its status: it may quote a text, or the key.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from openai import APIConnectionError, APIStatusError, APITimeoutError, Omit, OpenAI, OpenAIError

from indexer.embedding import Kept, encodable
from indexer.errors import (
    EncoderBusy,
    EncoderFailure,
    EncoderRefused,
    EncoderUnavailable,
    IncompatibleGeneration,
    TextNotEncoded,
)
from schemas.clock import retry_after_seconds
from schemas.settings import EmbeddingProvider, EmbeddingSettings

_ASKED_FOR_ITS_DIMENSION = "How long are the vectors?"
_TRANSIENT = frozenset({408, 409, 425})  # and all from 500 on


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Row]


class EndpointEncoder:
    """Sends texts to an endpoint, and trusts nothing that comes back before it has looked at it.

    What its weights are cannot be known: `digest` names the model and the length of its vectors, and nothing of where
    the endpoint is, so that the same model may be asked elsewhere. Who changes the weights behind a model's name
    changes the meaning of new vectors unseen: give other weights another name, and build anew.
    """

    provider: EmbeddingProvider = "openai"

    def __init__(self, settings: EmbeddingSettings, dimension: int | None) -> None:
        """`dimension` is what every vector has to have; None asks the endpoint, and raises EncoderFailure."""
        if settings.base_url is None:
            raise IncompatibleGeneration(
                "The stored vectors come from an endpoint: set THALWEG_EMBEDDING__BASE_URL to where it is."
            )
        self.model = settings.model
        self.batch_texts: int | None = settings.batch_texts
        self._url = settings.base_url
        self._timeout_seconds = settings.timeout_seconds
        self._request_texts = settings.batch_texts
        self._asked: int | Omit = settings.dimension or Omit()
        key = settings.api_key.get_secret_value() if settings.api_key else None
        self._client = OpenAI(
            base_url=self._url, api_key=key or "none", timeout=settings.timeout_seconds, max_retries=0
        )
        self._client.organization = self._client.project = None  # else from the environment, whoever the endpoint is
        self._headers: dict[str, str | Omit] = {} if key else {"Authorization": Omit()}
        self.dimension = dimension or len(self._request([_ASKED_FOR_ITS_DIMENSION])[0])
        self.digest = f"openai/{self.model}/{self.dimension}"

    @classmethod
    def open(cls, settings: EmbeddingSettings, kept: Kept | None) -> "EndpointEncoder":
        """Without asking, where the settings or what is kept of the same model say how long its vectors are."""
        is_same = (
            kept is not None and kept.embedding_provider == cls.provider and kept.embedding_model == settings.model
        )
        return cls(settings, settings.dimension or (kept.dimension if kept and is_same else None))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1.

        Raises EncoderUnavailable for what passes (time-out, no connection, 5xx, a cut answer), EncoderBusy for a rate
        limit; EncoderRefused for 401, 403, 404, 405 and vectors of another length; TextNotEncoded for anything else.
        """
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), self._request_texts):
            for row, values in enumerate(self._request(texts[start : start + self._request_texts]), start):
                vectors[row] = self._normalised(values)
        return vectors

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        """The values of each text, in the texts' order."""
        try:
            answer = self._client.embeddings.with_raw_response.create(
                model=self.model,
                input=[encodable(text) or " " for text in texts],  # an empty text is refused by many
                dimensions=self._asked,
                encoding_format="float",
                extra_headers=self._headers,
            )
        except OpenAIError as error:
            raise self._explained(error) from None  # what is behind it may quote a text or the key
        rows = self._rows(answer.content)
        if sorted(row.index for row in rows) != list(range(len(texts))):
            raise TextNotEncoded(
                f"The embeddings endpoint at {self._url} gave {len(rows)} vectors for {len(texts)} texts, or numbered "
                "them wrongly."
            )
        if not all(row.embedding for row in rows):
            raise TextNotEncoded(f"The embeddings endpoint at {self._url} gave a vector of no numbers.")
        return [row.embedding for row in sorted(rows, key=lambda row: row.index)]

    def _rows(self, content: bytes) -> list[_Row]:
        try:
            return msgspec.json.decode(content, type=_Answer).data
        except msgspec.DecodeError:
            pass
        if content.lstrip().startswith(b"{") and not content.rstrip().endswith(b"}"):
            raise EncoderUnavailable(f"The embeddings endpoint at {self._url} gave an answer cut short.")
        raise TextNotEncoded(f"The embeddings endpoint at {self._url} gave something else than vectors of numbers.")

    def _normalised(self, values: Sequence[float]) -> NDArray[np.float32]:
        if len(values) != self.dimension:
            raise EncoderRefused(
                f"The embeddings endpoint at {self._url} gives vectors of {len(values)} numbers for {self.model!r}; "
                f"{self.dimension} are asked for or stored. Set THALWEG_EMBEDDING__MODEL, __DIMENSION and __BASE_URL "
                "back to what the stored vectors were made with, or have the stores made anew (see the README)."
            )
        vector = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(vector))
        if not math.isfinite(norm) or norm == 0:
            raise TextNotEncoded(
                f"The embeddings endpoint at {self._url} gave a vector without a direction: zeros, or endless."
            )
        return (vector / norm).astype(np.float32)

    def _explained(self, error: OpenAIError) -> EncoderFailure:
        where = f"The embeddings endpoint at {self._url}"
        if isinstance(error, APITimeoutError):
            return EncoderUnavailable(f"{where} did not answer within {self._timeout_seconds:g} s.")
        if isinstance(error, APIConnectionError):
            return EncoderUnavailable(f"{where} cannot be reached, or broke off.")
        if isinstance(error, APIStatusError):
            return self._explained_status(where, error.status_code, retry_after_seconds(error.response.headers))
        return EncoderUnavailable(f"{where} gave an answer that cannot be read.")

    def _explained_status(self, where: str, status: int, retry_after_seconds: float | None) -> EncoderFailure:
        if status == 429:
            return EncoderBusy(f"{where} takes no more just now (429).", retry_after_seconds)
        if status in _TRANSIENT or status >= 500:
            return EncoderUnavailable(f"{where} failed ({status}).", retry_after_seconds)
        if status in (401, 403):
            return EncoderRefused(f"{where} refuses the key ({status}): set THALWEG_EMBEDDING__API_KEY.")
        if status in (404, 405):
            return EncoderRefused(
                f"{where} does not know the model {self.model!r}, or is no such endpoint ({status}): set "
                "THALWEG_EMBEDDING__MODEL or THALWEG_EMBEDDING__BASE_URL."
            )
        return TextNotEncoded(f"{where} does not take the text ({status}); most often it is too long for the model.")
