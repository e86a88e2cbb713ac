"""A model that comes as an ONNX file: its inputs, its window, and how its outputs become one vector.

What an exporter writes (optimum, sentence-transformers, torch.onnx) is read as it is: `input_ids`, `attention_mask`,
`token_type_ids` and `position_ids` are given where the graph asks for them; its output is a sentence's vector, or a
vector for each token, which are then pooled as the folder's `1_Pooling/config.json` says, or by their mean.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import DTypeLike, NDArray

from indexer.embedding.model_files import PACKAGED_MODEL, TOKENIZER, model_folder, pooling_mode
from indexer.errors import IncompatibleGeneration

NAMES = ("model.onnx", "onnx/model.onnx")  # where exporters put it
DEFAULT_TOKENS = 512
_LARGEST_WINDOW = 1_000_000  # transformers writes 1e30 for a model without one
_SENTENCE_OUTPUT = "sentence_embedding"
_PROBE_TOKENS = 2

Tokens = NDArray[np.int64]
Pooling = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""From (n_tokens, dimension) to (dimension,)."""

_INPUTS: Mapping[str, Callable[[Tokens], Tokens]] = {
    "input_ids": lambda tokens: tokens,
    "attention_mask": np.ones_like,
    "token_type_ids": np.zeros_like,
    "position_ids": lambda tokens: np.arange(tokens.size, dtype=np.int64),
}
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_POOLINGS: Mapping[str, Pooling] = {
    "mean": lambda vectors: vectors.mean(axis=0),
    "cls": lambda vectors: vectors[0],
    "max": lambda vectors: vectors.max(axis=0),
    "mean_sqrt_len_tokens": lambda vectors: vectors.sum(axis=0) / np.sqrt(len(vectors)),
    "lasttoken": lambda vectors: vectors[-1],
}
_MODULES_DONE_HERE = {"Transformer", "Pooling", "Normalize"}


def onnx_file_in(folder: Path) -> Path | None:
    """The ONNX file of a model's folder, or None."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


@dataclass(frozen=True)
class OnnxFile:
    """A session that is known to take tokens of any number and to give vectors. `weights` are the files it is of."""

    folder: Path
    weights: Sequence[Path]
    max_tokens: int
    dimension: int
    forward: Callable[[Tokens], NDArray[np.float32]]

    @classmethod
    def open(cls, model: str, options: onnxruntime.SessionOptions) -> "OnnxFile":
        """Raises IncompatibleGeneration for what cannot be run, or not be understood."""
        folder = model_folder(model)
        path = Path(model) if model.endswith(".onnx") else onnx_file_in(folder)
        if path is None:
            hint = " The packaged one runs as onnx or onnx-int8." if model == PACKAGED_MODEL else ""
            raise IncompatibleGeneration(
                f"The model {model!r} cannot run as onnx-file: there is no {' or '.join(NAMES)} in {folder}.{hint}"
            )
        try:
            if not (folder / TOKENIZER).is_file():
                raise _Unusable(f"there is no {TOKENIZER} in {folder}")
            weights = [path, *_external_data(path)]
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            forward = _forward(session, folder)
            vector = forward(np.ones(_PROBE_TOKENS, dtype=np.int64))
            max_tokens = _window(folder)
        except _Unusable as error:
            raise IncompatibleGeneration(f"The model {model!r} cannot run as onnx-file: {error}.") from error
        except Exception as error:  # ONNX Runtime raises kinds of its own for each way in which a file can be broken
            reason = str(error).strip().partition("\n")[0][:300]
            raise IncompatibleGeneration(
                f"The model {model!r} cannot run as onnx-file: {path.name}: {reason}"
            ) from error
        return cls(folder, weights, max_tokens, len(vector), forward)


class _Unusable(Exception):
    """Why the file cannot be used, as the end of a sentence."""


def _named_type(given: onnxruntime.NodeArg) -> tuple[str, DTypeLike]:
    """The name and the type of an input. Raises _Unusable for one that is not of tokens, or has a fixed length."""
    kind = _TYPES.get(given.type)
    if given.name not in _INPUTS or kind is None:
        raise _Unusable(f"it needs an input {given.name!r} of {given.type}, which is not one of {', '.join(_INPUTS)}")
    fixed = [length for length in given.shape if isinstance(length, int)]
    if len(given.shape) != 2 or isinstance(given.shape[1], int) or fixed not in ([], [1]):
        raise _Unusable(f"its input {given.name!r} has the fixed shape {given.shape}; export it with dynamic axes")
    return given.name, kind


def _forward(session: onnxruntime.InferenceSession, folder: Path) -> Callable[[Tokens], NDArray[np.float32]]:
    inputs = [_named_type(given) for given in session.get_inputs()]
    ranks = {output.name: len(output.shape or ()) for output in session.get_outputs()}
    by_rank = {rank: name for name, rank in reversed(ranks.items())}
    output = _SENTENCE_OUTPUT if _SENTENCE_OUTPUT in ranks else by_rank.get(3) or by_rank.get(2)
    if output is None:
        raise _Unusable(f"its outputs {', '.join(ranks)} are neither a sentence's vector nor vectors of tokens")
    pooling = _pooling(folder) if ranks[output] == 3 else None

    def forward(tokens: Tokens) -> NDArray[np.float32]:
        feeds = {name: _INPUTS[name](tokens).astype(kind)[np.newaxis] for name, kind in inputs}
        vectors: NDArray[np.float32] = session.run([output], feeds)[0][0]
        vector = (vectors if pooling is None else pooling(vectors)).astype(np.float32)
        norm = float(np.linalg.norm(vector))
        if not np.isfinite(norm) or norm == 0:
            raise ValueError("The model gave a vector without a direction: zeros, or numbers that are not finite.")
        return vector / np.float32(norm)

    return forward


def _pooling(folder: Path) -> Pooling:
    kinds = {str(module.get("type")).rpartition(".")[2] for module in _json(folder / "modules.json", [])}
    if missing := kinds - _MODULES_DONE_HERE:
        raise _Unusable(
            f"it gives vectors of tokens, and its modules.json asks for {', '.join(sorted(missing))} behind them; "
            f"export the whole model, with an output {_SENTENCE_OUTPUT}"
        )
    try:
        return _POOLINGS[pooling_mode(_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "mean"}))]
    except ValueError as error:
        raise _Unusable(str(error)) from error
    except KeyError as error:
        raise _Unusable(f"its pooling is {error}; known are {', '.join(_POOLINGS)}") from error


def _window(folder: Path) -> int:
    """Tokens of the longest text: the least of what the folder's files name."""
    named = [
        _json(folder / "sentence_bert_config.json", {}).get("max_seq_length"),
        _json(folder / "tokenizer_config.json", {}).get("model_max_length"),
        _json(folder / "config.json", {}).get("max_position_embeddings"),
    ]
    return min((int(tokens) for tokens in named if tokens and 0 < tokens < _LARGEST_WINDOW), default=DEFAULT_TOKENS)


def _external_data(path: Path) -> list[Path]:
    """The files beside it that hold its weights, where they are not in it."""
    weights = onnx.load(str(path), load_external_data=False).graph.initializer
    entries = (entry for tensor in weights for entry in tensor.external_data)
    return [path.parent / name for name in sorted({entry.value for entry in entries if entry.key == "location"})]


def _json(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except ValueError as error:
        raise _Unusable(f"{path.name} is not JSON: {error}") from error
