"""A BERT of two layers and width 8 with random weights: its folder as sentence-transformers would write it, and what
it computes, written plainly."""

import json
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

LAYERS, HEADS, WIDTH, INNER, PLACES, EPSILON = 2, 2, 8, 16, 12, 1e-12
VOCABULARY = ["[UNK]", "[CLS]", "[SEP]", "river", "sea", "hill", "bank"]
CONFIG = {
    "model_type": "bert",
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "max_position_embeddings": PLACES,
    "layer_norm_eps": EPSILON,
    "vocab_size": len(VOCABULARY),
}
MEAN = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
FIRST = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
MODULES = [{"type": f"sentence_transformers.models.{kind}"} for kind in ("Transformer", "Pooling", "Normalize")]

Weights = dict[str, NDArray[np.float32]]


def random_weights(seed: int = 0) -> Weights:
    chance = np.random.default_rng(seed)

    def made(*shape: int) -> NDArray[np.float32]:
        return chance.normal(scale=0.5, size=shape).astype(np.float32)

    def norm(name: str) -> Weights:
        return {f"{name}.weight": 1 + made(WIDTH), f"{name}.bias": made(WIDTH)}

    def dense(name: str, taken: int, given: int) -> Weights:
        return {f"{name}.weight": made(given, taken), f"{name}.bias": made(given)}

    weights = {
        "embeddings.word_embeddings.weight": made(len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": made(PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": made(2, WIDTH),
    } | norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            weights |= dense(f"{name}.attention.self.{part}", WIDTH, WIDTH)
        weights |= dense(f"{name}.attention.output.dense", WIDTH, WIDTH)
        weights |= norm(f"{name}.attention.output.LayerNorm")
        weights |= dense(f"{name}.intermediate.dense", WIDTH, INNER)
        weights |= dense(f"{name}.output.dense", INNER, WIDTH)
        weights |= norm(f"{name}.output.LayerNorm")
    return weights


def write_model(
    folder: Path, *, pooling: dict[str, bool] | None = None, marks: bool = True, window: int | None = None
) -> Path:
    """`marks` sets [CLS] and [SEP] around a text; `window` is its max_seq_length."""
    files: dict[str, Any] = {
        "config.json": CONFIG,
        "modules.json": MODULES,
        "1_Pooling/config.json": pooling or MEAN,
        "sentence_bert_config.json": {"max_seq_length": window},
    }
    (folder / "1_Pooling").mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    save_file(random_weights(), folder / "model.safetensors")
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    if marks:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def plain_forward(weights: Weights, tokens: list[int], pooling: str) -> NDArray[np.float64]:
    """(WIDTH,) of length 1, in double precision (Devlin et al. 2019)."""
    exact = {name: value.astype(np.float64) for name, value in weights.items()}

    def dense(name: str, value: NDArray[np.float64]) -> NDArray[np.float64]:
        return value @ exact[f"{name}.weight"].T + exact[f"{name}.bias"]

    def norm(name: str, value: NDArray[np.float64]) -> NDArray[np.float64]:
        centred = value - value.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
        return centred / spread * exact[f"{name}.weight"] + exact[f"{name}.bias"]

    hidden = (
        exact["embeddings.word_embeddings.weight"][tokens]
        + exact["embeddings.position_embeddings.weight"][: len(tokens)]
        + exact["embeddings.token_type_embeddings.weight"][0]
    )
    hidden = norm("embeddings.LayerNorm", hidden)
    size = WIDTH // HEADS
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        query, key, value = (dense(f"{name}.attention.self.{part}", hidden) for part in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = np.exp(query[:, part] @ key[:, part].T / sqrt(size))
            heads.append(scores / scores.sum(axis=1, keepdims=True) @ value[:, part])
        attended = dense(f"{name}.attention.output.dense", np.concatenate(heads, axis=1))
        hidden = norm(f"{name}.attention.output.LayerNorm", hidden + attended)
        inner = dense(f"{name}.intermediate.dense", hidden)
        inner = inner * 0.5 * (1 + np.vectorize(erf)(inner / sqrt(2)))
        hidden = norm(f"{name}.output.LayerNorm", hidden + dense(f"{name}.output.dense", inner))
    pooled = hidden.mean(axis=0) if pooling == "mean" else hidden[0]
    return pooled / np.linalg.norm(pooled)
