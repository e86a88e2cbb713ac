"""Texts to vectors. A vector is a pure function of its text: bit-equal whatever else is encoded beside it.

Equal content therefore leaves equal vectors and equal similarity edges after any replay, in any order, with any
batching. The encoders that run here keep that: the graph encoder takes texts one by one, the torch one only puts texts
of equal token counts together, and neither pads. An endpoint keeps it as far as who runs it does.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IncompatibleGeneration
from schemas.settings import EmbeddingProvider, EmbeddingSettings

if TYPE_CHECKING:
    from indexer.embedding.prompts import PromptedEncoder, Prompts

MAX_CHARACTERS_PER_TEXT = 8_000


class Encoder(Protocol):
    """Turns texts into vectors. Safe to call from several threads; calls may wait for each other.

    The worker gives it passages; what turns questions into vectors is the query service's own port.
    `batch_texts` is how many it best gets at a time, so that a call that fails loses no more; None for any number.
    """

    provider: EmbeddingProvider
    model: str
    digest: str
    dimension: int
    batch_texts: int | None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1, depending on its own text only.

        Raises EncoderFailure for what can be foreseen, such as an endpoint that is away; anything else a model may
        raise, too.
        """
        ...


class Kept(Protocol):
    """What the stored vectors were made with; a manifest says it."""

    @property
    def embedding_provider(self) -> EmbeddingProvider: ...
    @property
    def embedding_model(self) -> str: ...
    @property
    def dimension(self) -> int: ...


def load_encoder(settings: EmbeddingSettings, kept: Kept | None = None) -> "PromptedEncoder":
    """The encoder the settings name. `auto` means the provider that is `kept`, else the fastest this machine runs.

    Takes a second; ten for `sentence-transformers`, whose libraries are large. Raises IncompatibleGeneration when
    there is no such model, or when the provider cannot run it; EncoderFailure when an endpoint has to be asked how
    long its vectors are and does not say.
    """
    from indexer.embedding.prompts import PromptedEncoder

    model = _load(settings, kept)
    if (settings.dimension or 0) > model.dimension:
        raise IncompatibleGeneration(
            f"The model {model.model!r} gives vectors of {model.dimension} numbers, not of {settings.dimension}: "
            "set THALWEG_EMBEDDING__DIMENSION to no more, or name another model."
        )
    return PromptedEncoder(model, _prompts(settings, model.provider), settings.dimension)


def _prompts(settings: EmbeddingSettings, provider: EmbeddingProvider) -> "Prompts":
    """Those of the settings; where these say nothing, the model's own."""
    from indexer.embedding.model_files import model_folder
    from indexer.embedding.prompts import Prompts, prompts_in

    own = Prompts() if provider in ("openai", "hashing") else prompts_in(model_folder(settings.model))
    query, passage = settings.query_prefix, settings.passage_prefix
    return Prompts(own.query if query is None else query, own.passage if passage is None else passage)


def _load(settings: EmbeddingSettings, kept: Kept | None) -> Encoder:
    provider = settings.provider
    if provider == "auto":
        from indexer.embedding.onnx_providers import fastest_provider

        provider = kept.embedding_provider if kept else fastest_provider(settings.model)
    if provider == "hashing":
        from indexer.embedding.hashing import HashingEncoder

        return HashingEncoder()
    if provider == "openai":
        from indexer.embedding.openai_endpoint import EndpointEncoder  # its client library takes a second

        return EndpointEncoder.open(settings, kept)
    if provider == "sentence-transformers":
        from indexer.embedding.torch_encoder import SentenceTransformerEncoder

        return SentenceTransformerEncoder(settings.model, settings.threads)
    from indexer.embedding.onnx_bert import BertEncoder

    return BertEncoder(settings.model, provider, settings.threads)


def encodable(text: str) -> str:
    """The part of a text that tokenisers take: valid Unicode, and no more of it than any model window here holds."""
    return text[:MAX_CHARACTERS_PER_TEXT].encode("utf-8", "replace").decode()


def text_hash(text: str) -> str:
    """The name under which a text's vector is found again: 32 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
