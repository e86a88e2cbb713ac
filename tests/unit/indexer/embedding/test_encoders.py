"""Vectors are a pure function of their text, whatever runs the model, and all that run it agree."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer.embedding import onnx_encoder
from indexer.embedding.backends import PROMPTS_FILE, load_encoder, names_model_of
from indexer.embedding.encoder import Encoder, HashingEncoder, TokenStates, text_hash
from indexer.embedding.model_files import model_folder
from indexer.embedding.onnx_encoder import TEXTS_READ_AT_ONCE, open_bert
from indexer.errors import IncompatibleGeneration
from schemas.settings import EmbeddingProvider, EmbeddingSettings

TEXTS = [
    "A short text.",
    "Another text, rather longer than the first one.",
    "",
    "Ein Text auf Deutsch.",
    "x " * 2000,
    "a lone surrogate \ud800",
    "e" * 20_000,
]
PROVIDERS: tuple[EmbeddingProvider, ...] = ("onnx-int8", "onnx", "sentence-transformers")


def test_hashing_needs_no_model_and_knows_shared_words() -> None:
    vectors = HashingEncoder().encode(["red green blue", "red green blue", "red yellow pink", ""])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert vectors[0] @ vectors[1] == pytest.approx(1)
    assert vectors[0] @ vectors[2] < 0.9


def test_a_text_has_one_hash() -> None:
    assert text_hash("a") == text_hash("a") != text_hash("b")
    assert len(text_hash("\ud800")) == 32


@pytest.mark.parametrize("provider", [*PROVIDERS, "auto"])
def test_a_model_that_is_not_there_is_named(provider: EmbeddingProvider) -> None:
    with pytest.raises(IncompatibleGeneration, match="no-such-model"):
        load_encoder(EmbeddingSettings(provider=provider, model="no-such-model"))


class KeptVectors:
    embedding_provider: EmbeddingProvider = "hashing"
    embedding_model = "hashing"
    dimension = 384


def test_the_settings_name_the_model_that_was_stored() -> None:
    assert names_model_of(EmbeddingSettings(provider="hashing"), KeptVectors())  # whatever model it names beside
    assert not names_model_of(EmbeddingSettings(provider="hashing", dimension=64), KeptVectors())
    assert not names_model_of(EmbeddingSettings(provider="onnx"), KeptVectors())


def test_what_the_stored_vectors_were_made_with_goes_before_what_is_fastest() -> None:
    assert load_encoder(EmbeddingSettings(), KeptVectors()).provider == "hashing"
    assert load_encoder(EmbeddingSettings(provider="onnx"), KeptVectors()).provider == "onnx"


@pytest.mark.parametrize("provider", ["hashing", "onnx"])
def test_more_numbers_than_the_model_gives_are_refused(provider: EmbeddingProvider) -> None:
    with pytest.raises(IncompatibleGeneration, match=r"384 numbers, not of 385.*THALWEG_EMBEDDING__DIMENSION"):
        load_encoder(EmbeddingSettings(provider=provider, dimension=385))


def test_a_model_that_is_no_bert_is_left_to_torch(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mpnet"}')
    with pytest.raises(IncompatibleGeneration, match=r"model_type is 'mpnet'.*sentence-transformers"):
        load_encoder(EmbeddingSettings(provider="onnx", model=str(tmp_path)))


@cache
def loaded(provider: EmbeddingProvider) -> Encoder:
    return load_encoder(EmbeddingSettings(provider=provider))


@pytest.fixture(scope="module", params=PROVIDERS)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return loaded(request.param)


@pytest.mark.filterwarnings("ignore")
def test_a_vector_does_not_depend_on_its_neighbours(encoder: Encoder) -> None:
    together = encoder.encode(TEXTS + ["filler text of some length"] * 20)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_array_equal(together[: len(TEXTS)], alone)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    assert together.dtype == np.float32
    assert together.shape == (len(TEXTS) + 20, encoder.dimension)
    assert encoder.encode([]).shape == (0, encoder.dimension)


def test_one_text_that_fails_fails_the_call_and_no_thread_takes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_encoder, "usable_processors", lambda: 2)
    encoder = open_bert("all-MiniLM-L6-v2", "onnx")
    taken: list[str] = []

    def failing(text: str) -> None:
        taken.append(text)
        raise ValueError(text)

    monkeypatch.setattr(encoder, "_vector", failing)
    with pytest.raises(ValueError, match="text"):
        encoder.encode([f"text {number}" for number in range(200)])
    assert 1 <= len(taken) <= 2


@pytest.mark.filterwarnings("ignore")
def test_close_meanings_are_closer_than_far_ones(encoder: Encoder) -> None:
    cat, kitten, tax = encoder.encode(["A cat sleeps.", "A kitten is napping.", "Value added tax returns are due."])
    assert cat @ kitten > cat @ tax + 0.2


@pytest.mark.filterwarnings("ignore")
def test_the_graph_computes_what_torch_computes() -> None:
    """float32 to rounding; int8 to what a byte can hold (mean cosine .993 over passages)."""
    torch, graph, int8 = (loaded(provider).encode(TEXTS) for provider in ("sentence-transformers", "onnx", "onnx-int8"))
    np.testing.assert_allclose((torch * graph).sum(axis=1), 1, atol=1e-5)
    assert (torch * int8).sum(axis=1).mean() > 0.97


@pytest.mark.filterwarnings("ignore")
def test_torch_makes_of_prompts_what_their_own_library_does(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    for file in model_folder("all-MiniLM-L6-v2").iterdir():
        if file.name != PROMPTS_FILE:
            (tmp_path / file.name).symlink_to(file)
    config = {"prompts": {"query": "query: ", "document": "passage: "}, "default_prompt_name": "document"}
    (tmp_path / PROMPTS_FILE).write_text(json.dumps(config))
    theirs: Any = SentenceTransformer(str(tmp_path), device="cpu", local_files_only=True)
    ours = load_encoder(EmbeddingSettings(provider="sentence-transformers", model=str(tmp_path), dimension=64))
    expected = theirs.encode_query(["a weir"], truncate_dim=64, normalize_embeddings=True)
    np.testing.assert_allclose(ours.encode_queries(["a weir"]), expected, atol=1e-6)
    expected = theirs.encode_document(["a weir"], truncate_dim=64, normalize_embeddings=True)
    np.testing.assert_allclose(ours.encode(["a weir"]), expected, atol=1e-6)


def test_token_states_come_with_the_same_vectors() -> None:
    encoder = load_encoder(EmbeddingSettings(provider="onnx-int8"))
    assert encoder.has_token_states
    texts = [*TEXTS, *(f"text {number}" for number in range(3 * TEXTS_READ_AT_ONCE))]
    times_read: list[int] = []

    def read(some: Sequence[str], states: Sequence[TokenStates]) -> list[tuple[str, list[Any], list[str]]]:
        times_read.append(len(some))
        return [
            (text, [layer.shape for layer in layers], [text[start:end] for start, end in offsets])
            for text, (layers, offsets) in zip(some, states, strict=True)
        ]

    vectors, results = encoder.encode_tokens(texts, read)
    np.testing.assert_array_equal(vectors, encoder.encode(texts))
    assert [text for text, _, _ in results] == texts
    assert results[0] == (TEXTS[0], [(6, 384)] * 3, ["", "A", "short", "text", ".", ""])
    assert sum(times_read) == len(texts)
    assert max(times_read) <= TEXTS_READ_AT_ONCE


def test_what_reading_raises_is_raised() -> None:
    def read(texts: Sequence[str], _states: Sequence[TokenStates]) -> list[None]:
        raise ArithmeticError(texts[0])

    with pytest.raises(ArithmeticError, match="a text"):
        load_encoder(EmbeddingSettings(provider="onnx-int8")).encode_tokens(["a text"], read)


def test_an_encoder_without_token_states_says_so() -> None:
    encoder = load_encoder(EmbeddingSettings(provider="hashing"))
    assert not encoder.has_token_states
    with pytest.raises(ValueError, match="no token states"):
        encoder.encode_tokens(["a"], lambda texts, _states: texts)
