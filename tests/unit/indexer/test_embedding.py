"""Vectors are a pure function of their text."""

import numpy as np
import pytest

from indexer.embedding import Encoder, HashingEncoder, load_encoder, text_hash
from indexer.errors import IncompatibleGeneration
from schemas.settings import EmbeddingSettings

TEXTS = ["A short text.", "Another text, rather longer than the first one.", "", "Ein Text auf Deutsch.", "x " * 2000]


def test_hashing_needs_no_model_and_knows_shared_words() -> None:
    vectors = HashingEncoder().encode(["red green blue", "red green blue", "red yellow pink", ""])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert vectors[0] @ vectors[1] == pytest.approx(1)
    assert vectors[0] @ vectors[2] < 0.9


def test_a_text_has_one_hash() -> None:
    assert text_hash("a") == text_hash("a") != text_hash("b")
    assert len(text_hash("\ud800")) == 32


def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(IncompatibleGeneration, match="no-such-model"):
        load_encoder(EmbeddingSettings(model="no-such-model"))


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load_encoder(EmbeddingSettings())


@pytest.mark.filterwarnings("ignore")
def test_a_vector_does_not_depend_on_its_neighbours(encoder: Encoder) -> None:
    together = encoder.encode(TEXTS + ["filler text of some length"] * 20)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_array_equal(together[: len(TEXTS)], alone)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    assert together.dtype == np.float32
    assert together.shape == (25, encoder.dimension)


@pytest.mark.filterwarnings("ignore")
def test_close_meanings_are_closer_than_far_ones(encoder: Encoder) -> None:
    cat, kitten, tax = encoder.encode(["A cat sleeps.", "A kitten is napping.", "Value added tax returns are due."])
    assert cat @ kitten > cat @ tax + 0.2
