"""The encoder behind HTTP: what it sends, what it makes of every answer, and what it never tells."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from indexer.embedding.backends import load_encoder
from indexer.embedding.encoder import Encoder, HashingEncoder
from indexer.embedding.openai import EndpointEncoder
from indexer.errors import (
    EncoderFailure,
    EncoderRefused,
    EncoderUnavailable,
    IncompatibleGeneration,
    TextNotEncoded,
)
from schemas.settings import EmbeddingSettings
from tests.support.fakes.model_endpoints import (
    CUT,
    Answer,
    EmbeddingsEndpoint,
    Rows,
    embeddings_endpoint,
)

SECRET = "sk-very-secret-0123456789"
DIMENSION = HashingEncoder.dimension


@pytest.fixture
def endpoint() -> Iterator[EmbeddingsEndpoint]:
    with embeddings_endpoint(key=SECRET) as running:
        yield running


@pytest.fixture
def opened() -> Iterator[Any]:
    made: list[EndpointEncoder] = []

    def open_encoder(endpoint: EmbeddingsEndpoint, request_seconds: float = 5.0, **changed: Any) -> EndpointEncoder:
        settings, dimension = endpoint.settings(**changed), changed.get("dimension", DIMENSION)
        made.append(EndpointEncoder(settings, dimension, request_seconds=request_seconds, request_texts=8))
        return made[-1]

    yield open_encoder
    for encoder in made:
        encoder.close()


def test_vectors_come_normalised_in_the_order_of_their_texts_however_many_requests(
    endpoint: EmbeddingsEndpoint, opened: Any
) -> None:
    texts = [f"text number {number}" for number in range(19)] + ["", "a lone surrogate \ud800"]
    vectors = opened(endpoint).encode(texts)
    expected = HashingEncoder().encode([text or " " for text in texts])
    np.testing.assert_allclose(vectors[:-1], expected[:-1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert vectors.dtype == np.float32
    assert [len(request) for request in endpoint.requests] == [8, 8, 5]
    assert opened(endpoint).encode([]).shape == (0, DIMENSION)


def test_the_dimension_is_asked_for_or_found_out(endpoint: EmbeddingsEndpoint) -> None:
    found: Encoder = load_encoder(endpoint.settings())
    shortened = load_encoder(endpoint.settings(dimension=16))
    assert (found.dimension, found.digest) == (DIMENSION, f"openai/words/{DIMENSION}")
    assert shortened.encode(["short"]).shape == (1, 16)
    assert [body.get("dimensions") for body in endpoint.bodies] == [None, 16]


class KeptVectors:
    embedding_provider = "openai"
    embedding_model = "words"
    dimension = DIMENSION


def test_what_is_stored_says_the_dimension_while_the_endpoint_is_away() -> None:
    settings = EmbeddingSettings(model="words", base_url="http://127.0.0.1:9/v1")
    assert load_encoder(settings, KeptVectors()).dimension == DIMENSION
    with pytest.raises(EncoderUnavailable, match="cannot be reached"):
        load_encoder(settings.model_copy(update={"model": "other"}), KeptVectors())
    with pytest.raises(IncompatibleGeneration, match="THALWEG_EMBEDDING__BASE_URL"):
        load_encoder(EmbeddingSettings(), KeptVectors())


def _without_the_last(rows: Rows) -> Rows:
    return rows[:-1]


def _numbered_wrongly(rows: Rows) -> Rows:
    return [row | {"index": row["index"] + 1} for row in rows]


def _shorter(rows: Rows) -> Rows:
    return [row | {"embedding": row["embedding"][:-1]} for row in rows]


def _of_zeros(rows: Rows) -> Rows:
    return [row | {"embedding": [0.0] * DIMENSION} for row in rows]


def _with_nan(rows: Rows) -> Rows:
    return [row | {"embedding": [float("nan"), *row["embedding"][1:]]} for row in rows]


def _without_vectors(rows: Rows) -> Rows:
    return [row | {"embedding": None} for row in rows]


def _empty(rows: Rows) -> Rows:
    return [row | {"embedding": []} for row in rows]


def _huge(rows: Rows) -> Rows:
    return [row | {"embedding": [1e300] * DIMENSION} for row in rows]


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (CUT, EncoderUnavailable, "cut short"),
        (Answer(change=_with_nan), TextNotEncoded, "other than vectors"),
        (Answer(change=_without_vectors), TextNotEncoded, "other than vectors"),
        (Answer(change=_of_zeros), TextNotEncoded, "without a direction"),
        (Answer(change=_huge), TextNotEncoded, "without a direction"),
        (Answer(change=_without_the_last), TextNotEncoded, "1 vectors for 2 texts"),
        (Answer(change=_numbered_wrongly), TextNotEncoded, "numbered"),
        (Answer(change=_shorter), EncoderRefused, f"{DIMENSION - 1} numbers.*have the stores made again"),
        (Answer(change=_empty), TextNotEncoded, "no numbers"),
    ],
)
def test_vectors_that_do_not_fit_are_refused_with_why(
    endpoint: EmbeddingsEndpoint, opened: Any, answer: Answer, kind: type[EncoderFailure], says: str
) -> None:
    endpoint.script = [answer]
    encoder = opened(endpoint)
    with pytest.raises(kind, match=says) as caught:
        encoder.encode(["a page", "another page"])
    assert type(caught.value) is kind
    assert encoder.encode(["the next one is fine"]).shape == (1, DIMENSION)
