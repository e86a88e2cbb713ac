"""BERT sentence encoders on ONNX Runtime: ready in a second, and the fastest way known to use a CPU's cores."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from indexer.embedding import encodable
from indexer.embedding.model_files import model_digest, model_folder
from indexer.embedding.onnx_bert_graph import INPUT, OUTPUT, BertShape, UnsupportedModel, bert_graph
from indexer.errors import IncompatibleGeneration
from indexer.runtime.processors import usable_processors
from schemas.settings import EmbeddingProvider

_GRAPH_VERSION = 1  # another arithmetic makes other vectors


class BertEncoder:
    """Each text is a run of its own, on one thread; several texts share the cores.

    So a vector depends on nothing but its text, although int8 activations are scaled by what is in the run, nothing
    is padded, and no thread waits for another inside a text.
    """

    batch_texts: int | None = None

    def __init__(self, model: str, provider: Literal["onnx", "onnx-int8"], threads: int = 0) -> None:
        folder = model_folder(model)
        precision: Literal["float32", "int8"] = "int8" if provider == "onnx-int8" else "float32"
        try:
            shape = BertShape.read(folder)
        except UnsupportedModel as error:
            raise IncompatibleGeneration(
                f"The model {model!r} cannot run as {provider}: {error}. "
                "Set THALWEG_EMBEDDING__PROVIDER to sentence-transformers."
            ) from error
        graph = bert_graph(shape, load_file(folder / "model.safetensors"), precision)
        self._session = onnxruntime.InferenceSession(graph.SerializeToString(), _one_thread())
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(shape.max_tokens)
        self._tokenizer.no_padding()
        self._thread_count = threads or usable_processors()
        self._threads = ThreadPoolExecutor(self._thread_count, thread_name_prefix="encoder")
        self.provider: EmbeddingProvider = provider
        self.model = model
        self.digest = f"{model_digest(folder)}-{precision}-{_GRAPH_VERSION}"
        self.dimension = shape.width

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1."""
        if len(texts) == 1:
            return self._vector(texts[0])[np.newaxis]
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        # each thread takes the next text itself; long ones first, so that all end at about the same time
        rows = iter(sorted(range(len(texts)), key=lambda row: len(texts[row]), reverse=True))
        for share in [self._threads.submit(self._fill, vectors, texts, rows) for _ in range(self._thread_count)]:
            share.result()
        return vectors

    def _fill(self, vectors: NDArray[np.float32], texts: Sequence[str], rows: Iterator[int]) -> None:
        """Make the vectors of rows that no other thread has taken, until none is left. One that fails ends it."""
        try:
            for row in rows:
                vectors[row] = self._vector(texts[row])
        finally:
            for _ in rows:
                pass

    def _vector(self, text: str) -> NDArray[np.float32]:
        tokens = np.array(self._tokenizer.encode(encodable(text)).ids, dtype=np.int64)
        vector: NDArray[np.float32]
        if tokens.size:
            vector = self._session.run([OUTPUT], {INPUT: tokens})[0]
        else:  # a tokenizer that sets no marks around a text, and a text without words
            vector = np.eye(1, self.dimension, dtype=np.float32)[0]
        return vector


def _one_thread() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return options
