"""An encoder behind HTTP: any endpoint that speaks OpenAI's `/embeddings`.

Of what an endpoint says only its status reaches a message: the rest may quote a text, or the key.
"""

import math
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.embedding.encoder import StoredVectors, encodable
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

_DIMENSION_PROBE = "How long are the vectors?"
_TRANSIENT = frozenset({408, 409, 425})  # and all from 500 on


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Row]


class EndpointEncoder:
    """Sends texts to an endpoint, and checks all that comes back.

    Its weights cannot be known: `digest` covers the model's name and the dimension, not the address, so that the same
    model may be asked elsewhere. Other weights need another name, and a rebuild.
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
        self._url = f"{settings.base_url}/embeddings"
        self._where = f"The embeddings endpoint at {settings.base_url}"
        self._timeout_seconds = settings.timeout_seconds
        self._request_texts = settings.batch_texts
        self._body: dict[str, Any] = {"model": self.model, "encoding_format": "float"}
        if settings.dimension is not None:
            self._body["dimensions"] = settings.dimension
        key = settings.api_key
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            timeout=settings.timeout_seconds,
            follow_redirects=True,
        )
        self.dimension = dimension or len(self._request([_DIMENSION_PROBE])[0])
        self.digest = f"openai/{self.model}/{self.dimension}"

    @classmethod
    def open(cls, settings: EmbeddingSettings, stored: StoredVectors | None) -> "EndpointEncoder":
        """Without a request, where the settings or the stored vectors of the same model give the dimension."""
        dimension = settings.dimension
        if stored and (stored.embedding_provider, stored.embedding_model) == (cls.provider, settings.model):
            dimension = dimension or stored.dimension
        return cls(settings, dimension)

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
        """Close the connections."""
        self._http.close()

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        """The values of each text, in the texts' order."""
        body = self._body | {"input": [encodable(text) or " " for text in texts]}  # many refuse an empty text
        try:
            response = self._http.post(self._url, json=body)
        except httpx.TimeoutException:
            raise EncoderUnavailable(f"{self._where} did not answer within {self._timeout_seconds:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL):  # what is behind it may quote a text or the key
            raise EncoderUnavailable(f"{self._where} cannot be reached, or broke off.") from None
        if not response.is_success:
            raise self._failure(response.status_code, retry_after_seconds(response.headers))
        rows = self._rows(response.content)
        if sorted(row.index for row in rows) != list(range(len(texts))):
            raise TextNotEncoded(
                f"{self._where} gave {len(rows)} vectors for {len(texts)} texts, or numbered them wrongly."
            )
        if not all(row.embedding for row in rows):
            raise TextNotEncoded(f"{self._where} gave a vector of no numbers.")
        return [row.embedding for row in sorted(rows, key=lambda row: row.index)]

    def _rows(self, content: bytes) -> list[_Row]:
        try:
            return msgspec.json.decode(content, type=_Answer).data
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        if content.lstrip().startswith(b"{") and not content.rstrip().endswith(b"}"):
            raise EncoderUnavailable(f"{self._where} gave an answer cut short.")
        raise TextNotEncoded(f"{self._where} gave something else than vectors of numbers.")

    def _normalised(self, values: Sequence[float]) -> NDArray[np.float32]:
        if len(values) != self.dimension:
            raise EncoderRefused(
                f"{self._where} gives vectors of {len(values)} numbers for {self.model!r}; "
                f"{self.dimension} are asked for or stored. Set THALWEG_EMBEDDING__MODEL, __DIMENSION and __BASE_URL "
                "back to what the stored vectors were made with, or have the stores made anew (see docs/models.md)."
            )
        vector = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(vector))
        if not math.isfinite(norm) or norm == 0:
            raise TextNotEncoded(f"{self._where} gave a vector without a direction: zeros, or endless.")
        return (vector / norm).astype(np.float32)

    def _failure(self, status: int, retry_after_seconds: float | None) -> EncoderFailure:
        if status == 429:
            return EncoderBusy(f"{self._where} takes no more just now (429).", retry_after_seconds)
        if status in _TRANSIENT or status >= 500:
            return EncoderUnavailable(f"{self._where} failed ({status}).", retry_after_seconds)
        if status in (401, 403):
            return EncoderRefused(f"{self._where} refuses the key ({status}): set THALWEG_EMBEDDING__API_KEY.")
        if status in (404, 405):
            return EncoderRefused(
                f"{self._where} does not know the model {self.model!r}, or is no such endpoint ({status}): set "
                "THALWEG_EMBEDDING__MODEL or THALWEG_EMBEDDING__BASE_URL."
            )
        return TextNotEncoded(
            f"{self._where} does not take the text ({status}); most often it is too long for the model."
        )
