"""An encoder behind HTTP: any endpoint that speaks OpenAI's `/embeddings`."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.embedding.encoder import encodable
from indexer.errors import EncoderBusy, EncoderRefused, EncoderUnavailable, IncompatibleGeneration, TextNotEncoded
from indexer.generation_folders import Manifest
from indexer.runtime.model_endpoint import EndpointErrors, ModelEndpoint
from schemas.settings import EmbeddingProvider, EmbeddingSettings

_DIMENSION_PROBE = "How long are the vectors?"
MAX_BYTES_A_TEXT = 1024 * 1024  # of an answer; a vector of 3,072 numbers takes about 70 kB
REQUEST_SECONDS = 30.0
REQUEST_TEXTS = 64  # where an endpoint takes fewer, the worker bisects what it refuses


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

    def __init__(
        self,
        settings: EmbeddingSettings,
        dimension: int | None,
        *,
        request_seconds: float = REQUEST_SECONDS,
        request_texts: int = REQUEST_TEXTS,
    ) -> None:
        """`dimension` is what every vector has to have; None asks the endpoint, and raises EncoderFailure."""
        if settings.base_url is None:
            raise IncompatibleGeneration(
                "The stored vectors come from an endpoint: set THALWEG_EMBEDDING__BASE_URL to where it is."
            )
        self.model = settings.model
        self.batch_texts: int | None = request_texts
        self._endpoint = ModelEndpoint(
            "The embeddings endpoint",
            settings.base_url,
            "/embeddings",
            model=self.model,
            api_key=settings.api_key,
            seconds=request_seconds,
            settings="THALWEG_EMBEDDING",
            not_taken="the text ({}); most often it is too long for the model",
            errors=EndpointErrors(EncoderUnavailable, EncoderBusy, EncoderRefused, TextNotEncoded),
            follow_redirects=True,
        )
        self._where = self._endpoint.where
        self.close = self._endpoint.close
        self._request_texts = request_texts
        self._body: dict[str, Any] = {"model": self.model, "encoding_format": "float"}
        if settings.dimension is not None:
            self._body["dimensions"] = settings.dimension
        self.dimension = dimension or len(self._request([_DIMENSION_PROBE])[0])
        self.digest = f"openai/{self.model}/{self.dimension}"

    @classmethod
    def open(
        cls, settings: EmbeddingSettings, stored: Manifest | None, request_seconds: float | None = None
    ) -> "EndpointEncoder":
        """Without a request, where the settings or the stored vectors of the same model give the dimension."""
        dimension = settings.dimension
        if stored and (stored.embedding_provider, stored.embedding_model) == (cls.provider, settings.model):
            dimension = dimension or stored.dimension
        return cls(settings, dimension, request_seconds=request_seconds or REQUEST_SECONDS)

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

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        """The values of each text, in the texts' order."""
        body = self._body | {"input": [encodable(text) or " " for text in texts]}  # many refuse an empty text
        content = self._endpoint.post(body, MAX_BYTES_A_TEXT * len(texts))
        rows = self._endpoint.decoded(content, _Answer, "vectors of numbers").data
        if sorted(row.index for row in rows) != list(range(len(texts))):
            raise TextNotEncoded(
                f"{self._where} gave {len(rows)} vectors for {len(texts)} texts, or numbered them wrongly."
            )
        if not all(row.embedding for row in rows):
            raise TextNotEncoded(f"{self._where} gave a vector of no numbers.")
        return [row.embedding for row in sorted(rows, key=lambda row: row.index)]

    def _normalised(self, values: Sequence[float]) -> NDArray[np.float32]:
        if len(values) != self.dimension:
            raise EncoderRefused(
                f"{self._where} gives vectors of {len(values)} numbers for {self.model!r}; "
                f"{self.dimension} are asked for or stored. Set THALWEG_EMBEDDING__MODEL, __DIMENSION and __BASE_URL "
                "back to what the stored vectors were made with, or have the stores made again (see docs/models.md)."
            )
        vector = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(vector))
        if not math.isfinite(norm) or norm == 0:
            raise TextNotEncoded(f"{self._where} gave a vector without a direction: zeros, or endless.")
        return (vector / norm).astype(np.float32)
