"""A BERT sentence encoder written as an ONNX graph, from its configuration and weights, without torch.

The network is that of Devlin et al. 2019 (sections 3 and A.2), pooled as Reimers and Gurevych 2019 (section 3), for
one text at a time: there is no batch dimension, no padding and hence no attention mask. Beside what an exporter would
write, query, key and value are one product, the attention's scale is folded into its weights, and the type embedding
into the positions.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from safetensors import safe_open

from indexer.embedding.model_files import pooling_mode
from indexer.embedding.onnx_graph import GraphBuilder, Precision, Shape, Weights

INPUT, OUTPUT = "tokens", "vector"
_STATE_THIRDS = 3  # token states are read after each third of the layers
_WORDS = "embeddings.word_embeddings.weight"


class UnsupportedModel(Exception):
    """The model is not a BERT sentence encoder with mean or first-token pooling."""


@dataclass(frozen=True)
class BertShape:
    """What of a model's configuration the graph depends on."""

    layers: int
    heads: int
    width: int
    norm_epsilon: float
    max_tokens: int
    pooling: Literal["mean", "first"]

    @classmethod
    def read(cls, folder: Path) -> "BertShape":
        """From a sentence-transformers folder. Raises UnsupportedModel."""
        config = _json(folder / "config.json")
        expected = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
        for name, value in expected.items():
            if (found := config.get(name, value)) != value:
                raise UnsupportedModel(f"{name} is {found!r}, not {value!r}")
        for name in ("model.safetensors", "tokenizer.json"):
            if not (folder / name).is_file():
                raise UnsupportedModel(f"there is no {name}")
        _check_weights(folder / "model.safetensors")
        modules = _json(folder / "modules.json", default=[])
        kinds = [str(module.get("type")).rpartition(".")[2] for module in modules]
        if kinds not in (["Transformer", "Pooling", "Normalize"], ["Transformer", "Pooling"]):
            raise UnsupportedModel(f"its modules are {kinds}, not Transformer, Pooling and Normalize")
        heads, width = _number(config, "num_attention_heads"), _number(config, "hidden_size")
        if width % heads:
            raise UnsupportedModel(f"{heads} heads do not divide a width of {width}")
        positions = _number(config, "max_position_embeddings")
        window = _json(folder / "sentence_bert_config.json", default={}).get("max_seq_length")
        return cls(
            layers=_number(config, "num_hidden_layers"),
            heads=heads,
            width=width,
            norm_epsilon=_number(config, "layer_norm_eps"),
            max_tokens=min(window or positions, positions),
            pooling=_pooling(_json(folder / "1_Pooling" / "config.json")),
        )

    @property
    def state_outputs(self) -> tuple[str, ...]:
        """The graph's outputs with the states of all tokens, (n_tokens, width) float32 each: those after a third of the
        layers, after two thirds, and after the last."""
        layers = sorted({max(1, self.layers * part // _STATE_THIRDS) for part in range(1, _STATE_THIRDS + 1)})
        return tuple(f"states.{layer}" for layer in layers)


def bert_graph(shape: BertShape, weights: Weights, precision: Precision) -> onnx.ModelProto:
    """A model from `tokens`, (n_tokens,) int64, to `vector`, (width,) float32 of L2 norm 1, and to the token states of
    `shape.state_outputs`, which cost nothing unless they are asked for.

    With int8, the dense layers multiply bytes: weights are quantised symmetrically by output column, activations
    when the graph runs, by the range of the whole text. Embeddings, attention and norms stay float32.
    """
    graph = GraphBuilder(weights, precision)
    hidden = _embed(graph, shape)
    for layer in range(shape.layers):
        hidden = _layer(graph, shape, hidden, f"encoder.layer.{layer}", f"states.{layer + 1}")
    if shape.pooling == "mean":
        pooled = graph.node("ReduceMean", hidden, graph.integers(0), keepdims=0)
    else:
        pooled = graph.node("Gather", hidden, graph.constant(np.array(0)))
    graph.node("LpNormalization", pooled, output=OUTPUT, axis=0, p=2)
    outputs: dict[str, Shape] = {OUTPUT: (shape.width,)}
    outputs |= dict.fromkeys(shape.state_outputs, ("n_tokens", shape.width))
    return graph.model("sentence encoder", {INPUT: (np.int64, ("n_tokens",))}, outputs)


def _embed(graph: GraphBuilder, shape: BertShape) -> str:
    positions = graph.weights["embeddings.position_embeddings.weight"][: shape.max_tokens]
    typed = positions + graph.weights["embeddings.token_type_embeddings.weight"][0]
    words = graph.node("Gather", graph.weight(_WORDS), INPUT)
    length = graph.node("Shape", INPUT)
    embedded_positions = graph.node("Slice", graph.constant(typed), graph.integers(0), length, graph.integers(0))
    return graph.norm(graph.node("Add", words, embedded_positions), "embeddings.LayerNorm", shape.norm_epsilon)


def _layer(graph: GraphBuilder, shape: BertShape, hidden: str, name: str, output: str) -> str:
    attended = _attention(graph, shape, hidden, f"{name}.attention")
    hidden = graph.norm(graph.node("Add", hidden, attended), f"{name}.attention.output.LayerNorm", shape.norm_epsilon)
    inner = graph.node("Gelu", graph.named_dense(hidden, f"{name}.intermediate.dense"))
    outer = graph.named_dense(inner, f"{name}.output.dense")
    return graph.norm(graph.node("Add", hidden, outer), f"{name}.output.LayerNorm", shape.norm_epsilon, output)


def _attention(graph: GraphBuilder, shape: BertShape, hidden: str, name: str) -> str:
    """Scaled dot-product attention by head (Vaswani et al. 2017, section 3.2)."""
    size = shape.width // shape.heads
    scales = {"query": size**-0.5, "key": 1.0, "value": 1.0}
    matrix = np.concatenate(
        [graph.weights[f"{name}.self.{part}.weight"].T * scale for part, scale in scales.items()], axis=1
    )
    bias = np.concatenate([graph.weights[f"{name}.self.{part}.bias"] * scale for part, scale in scales.items()])
    joined = graph.node("Reshape", graph.dense(hidden, matrix, bias), graph.integers(-1, 3, shape.heads, size))
    by_head = graph.node("Transpose", joined, perm=[1, 2, 0, 3])  # (3, heads, tokens, size)
    query, key, value = graph.split(by_head, 3)
    scores = graph.node("MatMul", query, graph.node("Transpose", key, perm=[0, 1, 3, 2]))
    mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
    flat = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), graph.integers(-1, shape.width))
    return graph.named_dense(flat, f"{name}.output.dense")


def _pooling(config: dict[str, Any]) -> Literal["mean", "first"]:
    try:
        mode = pooling_mode(config)
    except ValueError as error:
        raise UnsupportedModel(str(error)) from error
    if mode not in ("mean", "cls"):
        raise UnsupportedModel(f"its pooling is {mode}, not the mean or the first token")
    return "mean" if mode == "mean" else "first"


def _number(config: dict[str, Any], name: str) -> Any:
    value = config.get(name)
    if not isinstance(value, int | float) or value <= 0:
        raise UnsupportedModel(f"{name} is {value!r}, not a number above 0")
    return value


def _check_weights(path: Path) -> None:
    with safe_open(path, "numpy") as weights:
        if _WORDS not in weights.keys():  # noqa: SIM118 -- no dict
            raise UnsupportedModel(f"its weights hold no {_WORDS}")
        if (kind := weights.get_slice(_WORDS).get_dtype()) != "F32":
            raise UnsupportedModel(f"its weights are {kind}, not F32")


def _json(path: Path, default: Any = None) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        if default is None:
            raise UnsupportedModel(f"there is no {path.name} in {path.parent.name}") from None
        return default
    except ValueError as error:
        raise UnsupportedModel(f"{path.name} is not JSON: {error}") from error
