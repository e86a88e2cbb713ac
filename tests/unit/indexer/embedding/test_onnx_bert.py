"""The graph computes what the papers say, and takes no model it cannot compute."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from safetensors.numpy import save_file

from indexer.embedding import onnx_encoder
from indexer.embedding.backends import load_encoder
from indexer.embedding.onnx_bert import BertShape, UnsupportedModel
from indexer.embedding.onnx_encoder import fastest_provider, open_bert
from indexer.errors import IncompatibleGeneration
from schemas.settings import EmbeddingSettings
from tests.unit.indexer.embedding.tiny_bert import (
    CONFIG,
    FIRST,
    MEAN,
    MODULES,
    PLACES,
    VOCABULARY,
    WIDTH,
    plain_forward,
    random_weights,
    write_model,
)

TEXTS = ["river", "sea hill bank river", "", "no such words", "hill " * 50]


def tokens_of(text: str, most: int) -> list[int]:
    words = [VOCABULARY.index(word) if word in VOCABULARY else 0 for word in text.split()]
    return [1, *words[: most - 2], 2]


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize(("provider", "least"), [("onnx", 1 - 1e-6), ("onnx-int8", 0.98)])
def test_the_graph_computes_what_is_written_plainly(
    tmp_path: Path, provider: Literal["onnx", "onnx-int8"], least: float, pooling: str
) -> None:
    folder = write_model(tmp_path, pooling={"mean": MEAN, "first": FIRST}[pooling], window=9)
    vectors = open_bert(str(folder), provider).encode(TEXTS)
    plain = np.array([plain_forward(random_weights(), tokens_of(text, 9), pooling) for text in TEXTS])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert ((vectors * plain).sum(axis=1) >= least).all()
    if provider == "onnx":
        np.testing.assert_allclose(vectors, plain, atol=2e-6)


@pytest.mark.parametrize("provider", ["onnx", "onnx-int8"])
def test_a_text_of_no_tokens_has_a_vector_of_length_1(tmp_path: Path, provider: Literal["onnx", "onnx-int8"]) -> None:
    vectors = open_bert(str(write_model(tmp_path, marks=False)), provider).encode(["", "river", " "])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[2])


@pytest.mark.parametrize(("window", "expected"), [(None, PLACES), (PLACES + 500, PLACES), (PLACES - 1, PLACES - 1)])
def test_a_text_is_no_longer_than_there_are_places(tmp_path: Path, window: int | None, expected: int) -> None:
    folder = write_model(tmp_path, window=window)
    assert BertShape.read(folder).max_tokens == expected
    assert open_bert(str(folder), "onnx").encode(["sea " * 1_000]).shape == (1, WIDTH)
    (folder / "sentence_bert_config.json").unlink()
    assert BertShape.read(folder).max_tokens == PLACES


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in CONFIG.items() if key != name}


ODD: list[tuple[str, Any, str]] = [
    ("config.json", CONFIG | {"model_type": "roberta"}, "model_type is 'roberta'"),
    ("config.json", CONFIG | {"hidden_act": "relu"}, "hidden_act is 'relu'"),
    ("config.json", CONFIG | {"position_embedding_type": "relative_key"}, "position_embedding_type"),
    ("config.json", CONFIG | {"num_attention_heads": 3}, "3 heads do not divide a width of 8"),
    ("config.json", CONFIG | {"num_attention_heads": 0}, "num_attention_heads is 0"),
    ("config.json", without("num_hidden_layers"), "num_hidden_layers is None"),
    ("config.json", without("layer_norm_eps"), "layer_norm_eps is None"),
    ("config.json", without("max_position_embeddings"), "max_position_embeddings is None"),
    ("modules.json", None, "its modules are \\[\\]"),
    ("modules.json", [*MODULES, {"type": "sentence_transformers.models.Dense"}], "Dense"),
    ("modules.json", [{}], "its modules are \\['None'\\]"),
    ("modules.json", "[{", "modules.json is not JSON"),
    ("1_Pooling/config.json", None, "there is no config.json in 1_Pooling"),
    ("1_Pooling/config.json", MEAN | {"pooling_mode_max_tokens": True}, "'max', 'mean'"),
    ("1_Pooling/config.json", {}, "its pooling is \\[\\]"),
    ("model.safetensors", None, "there is no model.safetensors"),
    ("tokenizer.json", None, "there is no tokenizer.json"),
]


@pytest.mark.parametrize(("file", "content", "reason"), ODD, ids=[f"{file} {reason}" for file, _, reason in ODD])
def test_what_cannot_be_computed_is_named_and_left_to_torch(
    tmp_path: Path, file: str, content: Any, reason: str
) -> None:
    folder = write_model(tmp_path)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content if isinstance(content, str) else json.dumps(content))
    assert_left_to_torch(folder, reason)


def test_weights_of_other_names_or_other_numbers_are_left_to_torch(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    weights = random_weights()
    save_file({f"bert.{name}": value for name, value in weights.items()}, folder / "model.safetensors")
    assert_left_to_torch(folder, "hold no embeddings.word_embeddings.weight")
    save_file({name: value.astype(np.float16) for name, value in weights.items()}, folder / "model.safetensors")
    assert_left_to_torch(folder, "its weights are F16")


def assert_left_to_torch(folder: Path, reason: str) -> None:
    with pytest.raises(UnsupportedModel, match=reason):
        BertShape.read(folder)
    assert fastest_provider(str(folder)) == "sentence-transformers"
    with pytest.raises(IncompatibleGeneration, match=reason):
        load_encoder(EmbeddingSettings(provider="onnx", model=str(folder)))


@pytest.mark.parametrize(("has_instructions", "provider"), [(True, "onnx-int8"), (False, "onnx")])
def test_a_bert_in_a_folder_runs_as_is_fastest_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_instructions: bool, provider: str
) -> None:
    monkeypatch.setattr(onnx_encoder, "has_int8_dot_products", lambda: has_instructions)
    encoder = load_encoder(EmbeddingSettings(model=str(write_model(tmp_path))))
    assert (encoder.provider, encoder.dimension) == (provider, WIDTH)
