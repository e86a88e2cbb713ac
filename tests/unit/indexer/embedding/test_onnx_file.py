"""Models that come as ONNX files: whatever the exporter, the vector is what the model's own library makes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from indexer.embedding.backends import load_encoder
from indexer.embedding.onnx_bert import BertShape, bert_graph
from indexer.errors import IncompatibleGeneration
from schemas.settings import EmbeddingSettings
from tests.unit.indexer.embedding.tiny_bert import MODULES, VOCABULARY, WIDTH, random_weights, write_model

WORDS = np.random.default_rng(1).normal(size=(len(VOCABULARY), WIDTH)).astype(np.float32)
TEXT, TOKENS = "river sea", [1, 3, 4, 2]
STANDARD = ("input_ids", "attention_mask", "token_type_ids")


def write_onnx(
    path: Path,
    *,
    inputs: tuple[str, ...] = STANDARD,
    output: str = "last_hidden_state",
    kind: int = TensorProto.INT64,
    tokens: Any = "sequence",
    external: bool = False,
    scale: float = 1.0,
) -> Path:
    """Word vectors as token vectors, or their sum as `sentence_embedding`; the other inputs add nothing."""
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["found"])]
    if output == "sentence_embedding":
        nodes.append(helper.make_node("ReduceSum", ["found", "one"], [output], keepdims=0))
        shape: list[Any] = ["batch", WIDTH]
    else:
        nodes.append(helper.make_node("Identity", ["found"], [output]))
        shape = ["batch", "sequence", WIDTH]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info(name, kind, ["batch", tokens]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(WORDS * scale, "words"), numpy_helper.from_array(np.array([1]), "one")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path.parent.mkdir(exist_ok=True)
    onnx.save_model(
        model, str(path), save_as_external_data=external, location=f"{path.name}_data" if external else None,
        size_threshold=0,
    )  # fmt: skip
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model that is no BERT, with a tokenizer."""
    folder = write_model(tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / "config.json").write_text('{"model_type": "mpnet", "max_position_embeddings": 12}')
    return folder


def encoded(model: Path, text: str = TEXT) -> NDArray[np.float32]:
    return load_encoder(EmbeddingSettings(provider="onnx-file", model=str(model))).encode([text])[0]


def normalised(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pooling_mode_mean_tokens": True}, WORDS[TOKENS].mean(axis=0)),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, WORDS[1]),
        ({"pooling_mode_max_tokens": True}, WORDS[TOKENS].max(axis=0)),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, WORDS[TOKENS].sum(axis=0) / 2),
        ({"pooling_mode": "lasttoken"}, WORDS[2]),
        ({"pooling_mode": ["cls"]}, WORDS[1]),
        (None, WORDS[TOKENS].mean(axis=0)),
    ],
)
def test_vectors_of_tokens_are_pooled_as_the_folder_says(
    folder: Path, config: dict[str, Any] | None, expected: NDArray[np.float32]
) -> None:
    write_onnx(folder / "onnx" / "model.onnx")
    path = folder / "1_Pooling" / "config.json"
    path.unlink() if config is None else path.write_text(json.dumps(config))
    np.testing.assert_allclose(encoded(folder), normalised(expected), atol=1e-6)


@pytest.mark.parametrize("inputs", [("input_ids",), STANDARD, (*STANDARD, "position_ids")])
@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_a_sentence_vector_is_taken_as_it_is_and_normalised(folder: Path, inputs: tuple[str, ...], kind: int) -> None:
    path = write_onnx(folder / "model.onnx", inputs=inputs, output="sentence_embedding", kind=kind)
    (folder / "modules.json").write_text(json.dumps([*MODULES, {"type": "sentence_transformers.models.Dense"}]))
    np.testing.assert_allclose(encoded(path), normalised(WORDS[TOKENS].sum(axis=0)), atol=1e-6)


def test_a_vector_does_not_depend_on_its_neighbours_and_long_texts_are_cut(folder: Path) -> None:
    write_onnx(folder / "model.onnx")
    encoder = load_encoder(EmbeddingSettings(provider="onnx-file", model=str(folder)))
    texts = [TEXT, "hill", "", "river " * 500, "sea " * 11]
    together = encoder.encode(texts)
    np.testing.assert_array_equal(together, np.concatenate([encoder.encode([text]) for text in texts]))
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(together[3], normalised(WORDS[[1, *[3] * 10, 2]].mean(axis=0)), atol=1e-6)


def test_it_is_chosen_where_it_is_the_only_one_without_torch(folder: Path, tmp_path: Path) -> None:
    path = write_onnx(folder / "onnx" / "model_quantized.onnx")
    assert load_encoder(EmbeddingSettings(model=str(path))).provider == "onnx-file"
    write_onnx(folder / "onnx" / "model.onnx")
    assert load_encoder(EmbeddingSettings(model=str(folder))).provider == "onnx-file"


def test_the_shipped_graph_as_a_file_gives_the_shipped_vectors(tmp_path: Path) -> None:
    """BERT, as an exporter that knows batches would write it, computes what the encoder of weights computes."""
    (tmp_path / "bert").mkdir()
    bert = write_model(tmp_path / "bert")
    model = bert_graph(BertShape.read(bert), random_weights(), "float32")
    model.graph.input[0].name = "input_ids"
    model.graph.input[0].type.tensor_type.shape.CopyFrom(
        helper.make_tensor_value_info("x", TensorProto.INT64, [1, "n"]).type.tensor_type.shape
    )
    nodes = [
        helper.make_node("Squeeze", ["input_ids", "axis"], ["tokens"]),
        *model.graph.node,
        helper.make_node("Unsqueeze", ["vector", "axis"], ["sentence_embedding"]),
    ]
    model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "axis"))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [1, WIDTH]))
    onnx.save_model(model, str(bert / "model.onnx"))
    texts = [TEXT, "hill bank river", "sea"]
    ours = load_encoder(EmbeddingSettings(provider="onnx", model=str(bert))).encode(texts)
    file = load_encoder(EmbeddingSettings(provider="onnx-file", model=str(bert))).encode(texts)
    np.testing.assert_allclose(file, ours, atol=1e-6)


def test_other_weights_are_another_model_also_where_they_lie_beside_the_graph(folder: Path) -> None:
    digests = set()
    for scale, external in ((1.0, False), (2.0, False), (1.0, True), (2.0, True)):
        write_onnx(folder / "model.onnx", scale=scale, external=external)
        digests.add(load_encoder(EmbeddingSettings(provider="onnx-file", model=str(folder))).digest)
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"inputs": ("input_ids", "pixels")}, "an input 'pixels'"),
        ({"kind": TensorProto.UINT8}, r"tensor\(uint8\)"),
        ({"tokens": 128}, "fixed shape.*dynamic axes"),
    ],
)
def test_a_graph_that_cannot_be_fed_is_refused_with_why(folder: Path, given: dict[str, Any], says: str) -> None:
    write_onnx(folder / "model.onnx", **given)
    with pytest.raises(IncompatibleGeneration, match=f"cannot run as onnx-file: .*{says}"):
        encoded(folder)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("tokenizer.json", None, "no tokenizer.json"),
        ("model.onnx", None, "there is no model.onnx or onnx/model.onnx"),
        ("model.onnx", "no graph", "model.onnx"),
        ("modules.json", [*MODULES, {"type": "sentence_transformers.models.Dense"}], "Dense behind them"),
        ("modules.json", "{", "modules.json is not JSON"),
        ("1_Pooling/config.json", {"pooling_mode": "weightedmean"}, "weightedmean.*known are mean, cls"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, "cls.*mean"),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False}, "leaves the prompt out"),
    ],
)
def test_a_folder_that_is_not_understood_is_refused_with_why(folder: Path, name: str, content: Any, says: str) -> None:
    write_onnx(folder / "model.onnx")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(IncompatibleGeneration, match=says):
        encoded(folder)


def test_a_model_without_a_direction_is_refused_when_it_is_loaded(folder: Path) -> None:
    write_onnx(folder / "model.onnx", scale=0.0)
    with pytest.raises(IncompatibleGeneration, match="without a direction"):
        encoded(folder)


@pytest.mark.parametrize(
    "code", ["from indexer.embedding.onnx_encoder import single_threaded; single_threaded()", "import thalweg"]
)
def test_the_runtime_neither_sends_telemetry_nor_gives_the_machine_an_id(code: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        check=True,
    )
    assert list(tmp_path.rglob("*")) == []
