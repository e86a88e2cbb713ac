"""What turns texts into vectors, and the prompts a model wants before a text.

A vector is a pure function of its text: bit-equal whatever else is encoded beside it. Equal content therefore leaves
equal vectors and equal similarity edges after any replay, in any order, with any batching. The encoders that run here
keep that: none pads a text to the length of another. An endpoint keeps it as far as its operator does.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from schemas.settings import EmbeddingProvider

MAX_CHARACTERS_PER_TEXT = 8_000

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Encoder(Protocol):
    """Turns texts into vectors. Safe to call from several threads; calls may wait for each other.

    `batch_texts` is how many texts a call should have at most, so that one that fails loses no more; None for any
    number. `digest` differs between encoders whose vectors must not be compared.
    """

    provider: EmbeddingProvider
    model: str
    digest: str
    dimension: int
    batch_texts: int | None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1, depending on its own text only.

        Raises EncoderFailure for what can be foreseen, such as an endpoint that is away, and whatever the model raises.
        """
        ...


class TokenStates(NamedTuple):
    """What an encoder computes of each token of a text.

    `layers` are the states after some of its layers, (n_tokens, width) float32 each. `offsets` are (start, end) of each
    token in characters of the text; those of a token that stands for no character are equal.
    """

    layers: Sequence[NDArray[np.float32]]
    offsets: Sequence[tuple[int, int]]


class ReadTokens(Protocol[Result_co]):
    """What is made of some texts and the states of their tokens: a result for each text."""

    def __call__(self, texts: Sequence[str], states: Sequence[TokenStates]) -> Sequence[Result_co]: ...


@runtime_checkable
class TokenEncoder(Encoder, Protocol):
    """An encoder that can give its token states too."""

    has_token_states: bool

    def encode_tokens(self, texts: Sequence[str], read: ReadTokens[Result]) -> tuple[NDArray[np.float32], list[Result]]:
        """The vectors of `encode`, bit for bit, and what `read` makes of each text and its token states.

        `read` is called in the encoder's threads for a few texts at a time, in any order, for each text once; so only
        their states are in memory. What it raises is raised.
        """
        ...


class HashingEncoder:
    """Feature hashing of words (Weinberger et al. 2009, section 2): no meaning beyond shared words. For tests, and for
    measuring everything but the model."""

    provider: EmbeddingProvider = "hashing"
    model = "hashing"
    digest = "hashing-1"
    dimension = 384
    batch_texts: int | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Encoder.encode`."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for number, text in enumerate(texts):
            row = vectors[number]
            for word in text.casefold().split():
                bits = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
                row[bits % self.dimension] += 1.0 if bits >> 63 else -1.0
            norm = float(np.linalg.norm(row))
            if norm:
                vectors[number] = row / norm
            else:
                row[0] = 1.0
        return vectors


class Prompts(NamedTuple):
    """The prefixes of a query and of a passage."""

    query: str = ""
    passage: str = ""


class PromptedEncoder:
    """An encoder with its prompts, and with vectors cut to `dimension` numbers. Safe to call from several threads.

    Models such as e5, nomic-embed and gte were trained with one prefix for passages and another for queries; Matryoshka
    models (Kusupati et al. 2022) also give good vectors when only their first numbers are kept. `digest` is the model's
    own where there are no prompts and nothing is cut off; else it covers these too.
    """

    def __init__(self, model: Encoder, prompts: Prompts = Prompts(), dimension: int | None = None) -> None:  # noqa: B008
        self.model = model.model
        self.provider = model.provider
        self.batch_texts = model.batch_texts
        self.dimension = dimension or model.dimension
        self.is_plain = prompts == Prompts() and self.dimension == model.dimension
        self.digest = model.digest
        if not self.is_plain:
            self.digest += f"-{text_hash(json.dumps([*prompts, self.dimension]))[:12]}"
        self._model = model
        self._token_model = model if isinstance(model, TokenEncoder) and model.has_token_states else None
        self._prompts = prompts

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of passages, see `Encoder.encode`."""
        return self._encode(self._prompts.passage, texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, likewise."""
        return self._encode(self._prompts.query, texts)

    @property
    def has_token_states(self) -> bool:
        return self._token_model is not None

    def encode_tokens(self, texts: Sequence[str], read: ReadTokens[Result]) -> tuple[NDArray[np.float32], list[Result]]:
        """See `TokenEncoder.encode_tokens`; the prompt's tokens are among the others, before the text's first
        character. Raises ValueError without token states."""
        if self._token_model is None:
            raise ValueError(f"{self.provider} gives no token states.")
        prompt = self._prompts.passage

        def read_unprompted(texts: Sequence[str], states: Sequence[TokenStates]) -> Sequence[Result]:
            moved = [
                TokenStates(layers, [(start - len(prompt), end - len(prompt)) for start, end in offsets])
                for layers, offsets in states
            ]
            return read([text[len(prompt) :] for text in texts], moved)

        prompted = [prompt + text for text in texts]
        vectors, results = self._token_model.encode_tokens(prompted, read_unprompted if prompt else read)
        return self._cut(vectors), results

    def _encode(self, prompt: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._cut(self._model.encode([prompt + text for text in texts] if prompt else texts))

    def _cut(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.dimension == vectors.shape[1]:
            return vectors
        cut = vectors[:, : self.dimension].copy()
        cut[~cut.any(axis=1), 0] = 1.0  # a vector that is zero in these numbers still gets a direction
        cut /= np.linalg.norm(cut, axis=1, keepdims=True)
        return cut


def encodable(text: str) -> str:
    """The part of a text that tokenisers take: valid Unicode, and no more of it than any model window here holds."""
    return text[:MAX_CHARACTERS_PER_TEXT].encode("utf-8", "replace").decode()


def text_hash(text: str) -> str:
    """32 hex digits of a text's SHA-256, by which its vector is found again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class EncodedText(NamedTuple):
    """`vector` is (dimension,) float32, L2-normalised; `spans` are those of `entity_mentions.encode_spans`, None where
    no tagger looked at the text."""

    vector: NDArray[np.float32]
    spans: bytes | None = None
