"""Which provider is the fastest for a model on this machine."""

import platform
import sys
from pathlib import Path

from indexer.embedding.model_files import model_folder
from indexer.embedding.onnx_bert_graph import BertShape, UnsupportedModel
from schemas.settings import EmbeddingProvider

_DOT_PRODUCTS = frozenset({"avx512_vnni", "avx_vnni", "asimddp"})  # as Linux names the instructions


def fastest_provider(model: str) -> EmbeddingProvider:
    """int8 where the processor has instructions for it, else float32; torch for what is not a BERT sentence encoder.

    Without such instructions int8 gains no time and loses precision: sums of byte products saturate.
    Raises IncompatibleGeneration when there is no such model.
    """
    try:
        BertShape.read(model_folder(model))
    except UnsupportedModel:
        return "sentence-transformers"
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
