"""Blocks of settings that both processes share; each process has one class of its own made from them.

A field's environment variable is `THALWEG_` + the path in capitals with `__` between: `THALWEG_KAFKA__PARTITIONS`.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MIB = 1024 * 1024


class KafkaSettings(BaseModel):
    """Which cluster, and how its topics are named and sized."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap_servers: str | None = Field(
        None, description="host:port[,host:port…] of a Kafka cluster. Unset: `thalweg up` runs an embedded one."
    )
    topic_prefix: str = Field(
        "thalweg.",
        pattern=r"^[A-Za-z0-9._-]{0,100}$",
        description="What every topic's name begins with. Change it to keep two installations apart on one cluster.",
    )
    partitions: int = Field(
        4,
        ge=1,
        le=1024,
        description="Partitions of the documents topic: the most workers that can share it. Fixed once it is in use.",
    )
    max_record_bytes: int = Field(
        16 * MIB,
        ge=MIB,
        description="Largest record the topics take: the document limit, plus a third for base64, plus metadata.",
    )
    max_graph_record_bytes: int = Field(64 * MIB, ge=MIB, description="Largest graph contribution of one document.")


class LimitSettings(BaseModel):
    """What is refused before it is parsed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_document_bytes: int = Field(
        10 * MIB, ge=1, description="Largest content of one document. Raise `kafka.max_record_bytes` with it."
    )
    max_metadata_bytes: int = Field(64 * 1024, ge=2, description="Largest metadata of one document, as JSON.")


EmbeddingProvider = Literal["onnx-int8", "onnx", "sentence-transformers", "hashing"]


class EmbeddingSettings(BaseModel):
    """Which encoder turns texts into vectors; worker and query service must agree, and a generation fixes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["auto"] | EmbeddingProvider = Field(
        "auto",
        description=(
            "What runs the model. `auto`: what the data directory was made with, else `onnx-int8` where the processor "
            "has byte dot products and `onnx` (float32) where not. `sentence-transformers` runs architectures other "
            "than BERT, in torch. `hashing` stands in for a model where tests need none."
        ),
    )
    model: str = Field(
        "all-MiniLM-L6-v2", description="The packaged model `all-MiniLM-L6-v2`, or a folder that holds another one."
    )
    threads: int = Field(0, ge=0, description="CPU threads the encoder uses; 0 means one for each core.")


class StorageSettings(BaseModel):
    """Where the stores are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Path = Field(
        Path("thalweg-data"), description="Everything Thalweg keeps on disk. Deleting it loses nothing the log has."
    )
