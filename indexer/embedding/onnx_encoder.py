"""Encoders on ONNX Runtime: ready in a second, and the fastest way known to use a CPU's cores."""

import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from indexer.embedding.encoder import ReadTokens, TokenStates, encodable
from indexer.embedding.model_files import TOKENIZER, model_digest, model_folder
from indexer.embedding.onnx_bert import INPUT, OUTPUT, BertShape, UnsupportedModel, bert_graph
from indexer.embedding.onnx_file import OnnxFile, onnx_file_in
from indexer.errors import IncompatibleGeneration
from indexer.runtime.resources import usable_processors
from schemas.settings import EmbeddingProvider

TEXTS_READ_AT_ONCE = 16  # what reads states then finds its own weights in the cache, not the encoder's
_GRAPH_VERSION = 1  # another arithmetic makes other vectors
_DOT_PRODUCTS = frozenset({"avx512_vnni", "avx_vnni", "asimddp"})  # as Linux names the instructions

Result = TypeVar("Result")
Forward = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""From the tokens of one text, (n_tokens,) and n_tokens > 0, to its vector, (dimension,) of L2 norm 1."""
ForwardStates = Callable[[NDArray[np.int64]], Sequence[NDArray[np.float32]]]
"""Likewise to its vector and the states of its tokens after some layers, (n_tokens, width) each."""


@dataclass(eq=False)
class OnnxEncoder:
    """Each text is a run of its own, on one thread; several texts share the cores.

    So a vector depends on nothing but its text, although int8 activations are scaled by what is in the run, nothing
    is padded, and no thread waits for another inside a text.
    """

    forward: Forward
    tokenizer: Any  # truncates to the model's window
    _: KW_ONLY
    provider: EmbeddingProvider
    model: str
    digest: str
    dimension: int
    forward_states: ForwardStates | None = None
    batch_texts: int | None = None

    def __post_init__(self) -> None:
        self._thread_count = usable_processors()
        self._threads = ThreadPoolExecutor(self._thread_count, thread_name_prefix="encoder")

    @property
    def has_token_states(self) -> bool:
        return self.forward_states is not None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1."""
        if len(texts) == 1:
            return self._vector(texts[0])[np.newaxis]
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)

        def encode_rows(rows: Iterator[int]) -> None:
            for row in rows:
                vectors[row] = self._vector(texts[row])

        self._share_out(texts, encode_rows)
        return vectors

    def encode_tokens(self, texts: Sequence[str], read: ReadTokens[Result]) -> tuple[NDArray[np.float32], list[Result]]:
        """See `TokenEncoder.encode_tokens`. Raises ValueError without token states."""
        if self.forward_states is None:
            raise ValueError(f"{self.provider} gives no token states.")
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        results: dict[int, Result] = {}
        forward = self.forward_states

        def read_all(read_next: dict[int, TokenStates]) -> None:
            found = read([texts[row] for row in read_next], list(read_next.values()))
            results.update(zip(read_next, found, strict=True))
            read_next.clear()

        def encode_rows(rows: Iterator[int]) -> None:
            read_next: dict[int, TokenStates] = {}
            for row in rows:
                encoding = self.tokenizer.encode(encodable(texts[row]))
                tokens = np.array(encoding.ids, dtype=np.int64)
                layers: list[NDArray[np.float32]] = []
                if tokens.size:
                    vectors[row], *layers = forward(tokens)
                else:
                    vectors[row] = self._vector(texts[row])
                read_next[row] = TokenStates(layers, encoding.offsets)
                if len(read_next) == TEXTS_READ_AT_ONCE:
                    read_all(read_next)
            read_all(read_next)

        self._share_out(texts, encode_rows)
        return vectors, [results[row] for row in range(len(texts))]

    def _share_out(self, texts: Sequence[str], work: Callable[[Iterator[int]], None]) -> None:
        """Have every thread work through rows that no other one has taken, long texts first, so that all end at about
        the same time. One that fails ends the others."""
        rows = iter(sorted(range(len(texts)), key=lambda row: len(texts[row]), reverse=True))

        def work_through() -> None:
            try:
                work(rows)
            finally:
                for _ in rows:
                    pass

        for share in [self._threads.submit(work_through) for _ in range(self._thread_count)]:
            share.result()

    def _vector(self, text: str) -> NDArray[np.float32]:
        tokens = np.array(self.tokenizer.encode(encodable(text)).ids, dtype=np.int64)
        if tokens.size:
            return self.forward(tokens)
        direction: NDArray[np.float32] = np.eye(1, self.dimension, dtype=np.float32)[0]
        return direction  # no words, and a tokenizer without special tokens


def open_bert(model: str, provider: Literal["onnx", "onnx-int8"]) -> OnnxEncoder:
    """The weights of a BERT sentence encoder, in a graph of our own. Raises IncompatibleGeneration."""
    folder = model_folder(model)
    precision: Literal["float32", "int8"] = "int8" if provider == "onnx-int8" else "float32"
    try:
        shape = BertShape.read(folder)
    except UnsupportedModel as error:
        raise IncompatibleGeneration(
            f"The model {model!r} cannot run as {provider}: {error}. Set THALWEG_EMBEDDING__PROVIDER to "
            "sentence-transformers, or to onnx-file for a model that comes as an .onnx file."
        ) from error
    graph = bert_graph(shape, load_file(folder / "model.safetensors"), precision)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), single_threaded())

    def forward(tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = session.run([OUTPUT], {INPUT: tokens})[0]
        return vector

    outputs = [OUTPUT, *shape.state_outputs]

    def forward_states(tokens: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        arrays: Sequence[NDArray[np.float32]] = session.run(outputs, {INPUT: tokens})
        return arrays

    return OnnxEncoder(
        forward,
        _tokenizer(folder, shape.max_tokens),
        provider=provider,
        model=model,
        digest=f"{model_digest(folder)}-{precision}-{_GRAPH_VERSION}",
        dimension=shape.width,
        forward_states=forward_states,
    )


def open_file(model: str) -> OnnxEncoder:
    """A model that comes as an ONNX file, whatever its architecture. Raises IncompatibleGeneration."""
    file = OnnxFile.open(model, single_threaded())
    tokenizer = _tokenizer(file.folder, file.max_tokens)
    return OnnxEncoder(
        file.forward,
        tokenizer,
        provider="onnx-file",
        model=model,
        digest=f"{model_digest(file.folder, file.weights)}-file-{_GRAPH_VERSION}",
        dimension=file.dimension,
    )


def fastest_provider(model: str) -> EmbeddingProvider:
    """For a BERT sentence encoder int8 where the processor has instructions for it, else float32; for any other model
    its ONNX file where it has one, else torch.

    Without such instructions int8 gains no time and loses precision: sums of byte products saturate.
    Raises IncompatibleGeneration when there is no such model.
    """
    folder = model_folder(model)
    if model.endswith(".onnx"):
        return "onnx-file"
    try:
        BertShape.read(folder)
    except UnsupportedModel:
        return "onnx-file" if onnx_file_in(folder) else "sentence-transformers"
    return "onnx-int8" if has_int8_dot_products() else "onnx"


def has_int8_dot_products() -> bool:
    """Whether the processor has byte dot products: VNNI on x86, `dotprod` on ARM (every Apple one has it)."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return not _DOT_PRODUCTS.isdisjoint(described.split())


def single_threaded() -> onnxruntime.SessionOptions:
    """Options of a session whose runs stay on the thread that calls them."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return options


def _tokenizer(folder: Path, max_tokens: int) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return tokenizer
