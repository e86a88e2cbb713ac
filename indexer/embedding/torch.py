"""A sentence-transformers model in torch: any architecture, at the price of its libraries."""

import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.embedding.encoder import encodable
from indexer.embedding.model_files import model_digest, model_folder
from indexer.errors import IncompatibleGeneration
from indexer.runtime.resources import usable_processors
from schemas.errors import install_extra
from schemas.settings import EmbeddingProvider

BATCH_TEXTS = 16


class SentenceTransformerEncoder:
    """A sentence-transformers model on the CPU, from packaged weights or a folder; never from a hub.

    Each thread computes its own texts alone: threads that share one text's arithmetic wait for each other at every
    layer, which costs dearly as soon as anything else needs a core. Texts go together only when they have the same
    number of tokens: nothing is padded, so a text's arithmetic does not depend on its neighbours, and no work is spent
    on padding either.
    """

    provider: EmbeddingProvider = "sentence-transformers"
    batch_texts: int | None = None

    def __init__(self, model: str) -> None:
        folder = model_folder(model)
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            import torch  # seconds to import: only those who encode pay
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise IncompatibleGeneration(
                f"The model {model!r} runs in torch, which is not installed: {install_extra('torch')}. A "
                "model that comes as an .onnx file needs no torch: set THALWEG_EMBEDDING__PROVIDER to onnx-file."
            ) from error

        torch.set_num_threads(1)
        self._torch = torch
        self._model: SentenceTransformer = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self._model.default_prompt_name = None  # prompts are given with the texts
        if not all(getattr(module, "include_prompt", True) for module in self._model):
            raise IncompatibleGeneration(
                f"The model {model!r} leaves its prompt out when it pools, which no provider here does: name another."
            )
        self._threads = ThreadPoolExecutor(usable_processors(), thread_name_prefix="encoder")
        self.model = model
        self.digest = model_digest(folder)
        dimension = self._model.get_embedding_dimension()
        if dimension is None:
            raise IncompatibleGeneration(f"The model {model!r} does not say how long its vectors are.")
        self.dimension = dimension

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        batches = self._batches(texts)
        forward = self._forward if len(batches) == 1 else self._in_thread
        computing = [(batch, forward([texts[index] for index in batch])) for batch in batches]
        for batch, computed in computing:
            vectors[batch] = computed.result() if isinstance(computed, Future) else computed
        return vectors

    def _batches(self, texts: Sequence[str]) -> list[list[int]]:
        """Indices of texts that are encoded together: equal numbers of tokens, longest first."""
        if len(texts) < 2:
            return [[index] for index in range(len(texts))]
        cut = [encodable(text) for text in texts]
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        features: Any = self._model.tokenizer(cut, truncation=True, max_length=self._model.get_max_seq_length())
        for index, tokens in enumerate(features["input_ids"]):
            by_length[len(tokens)].append(index)
        return [
            members[start : start + BATCH_TEXTS]
            for _, members in sorted(by_length.items(), reverse=True)
            for start in range(0, len(members), BATCH_TEXTS)
        ]

    def _in_thread(self, texts: list[str]) -> "Future[NDArray[np.float32]]":
        return self._threads.submit(self._forward, texts)

    def _forward(self, texts: list[str]) -> NDArray[np.float32]:
        with self._torch.inference_mode():
            encoded = self._model.encode(
                [encodable(text) for text in texts],
                batch_size=BATCH_TEXTS,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return np.asarray(encoded, dtype=np.float32)
