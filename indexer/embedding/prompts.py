"""An encoder as documents and questions meet it: the model behind it, its prompts, and how long its vectors are.

Models such as e5, nomic-embed and gte were trained with a prompt before each text, one for passages, another for
questions. Matryoshka models (Kusupati et al. 2022) also give good vectors when only their first numbers are kept.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.embedding import Encoder, text_hash
from indexer.errors import IncompatibleGeneration

CONFIG = "config_sentence_transformers.json"
_PASSAGE_PROMPTS = ("document", "passage", "corpus")  # as its own library looks for them


class Prompts(NamedTuple):
    """What stands before each question, and before each passage."""

    query: str = ""
    passage: str = ""


def prompts_in(folder: Path) -> Prompts:
    """Those that a sentence-transformers folder names, for either side or as the default of both. Raises
    IncompatibleGeneration when they cannot be read."""
    path = folder / CONFIG
    if not path.is_file():
        return Prompts()
    try:
        config: Any = json.loads(path.read_text(encoding="utf-8"))
        named: dict[str, str] = dict(config.get("prompts") or {})
        usual = named.get(config.get("default_prompt_name"), "")
        of_passages = [named[name] for name in _PASSAGE_PROMPTS if name in named] or [usual]
        prompts = Prompts(named.get("query", usual), next(filter(None, of_passages), ""))
        if not all(isinstance(prompt, str) for prompt in prompts):
            raise TypeError("a prompt is no text")
    except (ValueError, TypeError, AttributeError) as error:
        raise IncompatibleGeneration(f"The prompts in {path} cannot be read: {error}.") from error
    return prompts


class PromptedEncoder:
    """A model with its prompts, its vectors cut to `dimension` numbers. Safe to call from several threads.

    `digest` is the model's own where nothing stands before its texts and nothing is cut off; else it tells these apart
    too, so that no vector is compared with one that was made otherwise.
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
        self._prompts = prompts

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of passages, see `Encoder.encode`."""
        return self._encode(self._prompts.passage, texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of questions, likewise."""
        return self._encode(self._prompts.query, texts)

    def _encode(self, prompt: str, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self._model.encode([prompt + text for text in texts] if prompt else texts)
        if self.dimension == vectors.shape[1]:
            return vectors
        cut = vectors[:, : self.dimension].copy()
        cut[~cut.any(axis=1), 0] = 1.0  # what has nothing in these numbers still has a direction
        cut /= np.linalg.norm(cut, axis=1, keepdims=True)
        return cut
