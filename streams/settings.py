"""The worker's settings; `schemas/settings.py` explains where they come from."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from indexer.chunking.splitter import ChunkingParameters
from schemas.settings import (
    EmbeddingSettings,
    KafkaSettings,
    LanguageModelSettings,
    LimitSettings,
    ProcessSettings,
    StorageSettings,
)
from schemas.topic_mappings import TopicMapping

_CHUNKING = ChunkingParameters()


class ChunkingSettings(BaseModel):
    """How documents are chunked. A generation fixes these: other values count from the next `thalweg rebuild` on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    passage_characters: int = Field(
        _CHUNKING.passage_characters,
        ge=200,
        le=100_000,
        description="Size of a passage: what a reader, or a language model, gets to read.",
    )
    chunk_characters: int = Field(
        _CHUNKING.chunk_characters,
        ge=50,
        le=10_000,
        description="Size of a chunk: what is embedded. Stay within the model's window.",
    )

    def parameters(self) -> ChunkingParameters:
        """With the default overlaps; a collection may choose its own. Raises ValueError for impossible sizes."""
        return ChunkingParameters(
            passage_characters=self.passage_characters,
            chunk_characters=self.chunk_characters,
            chunk_overlap=min(_CHUNKING.chunk_overlap, self.chunk_characters // 2),
        )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self.parameters()
        return self


class WorkerBlock(BaseModel):
    """What only the worker needs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics_host: str = Field(
        "127.0.0.1",
        description="Address for /metrics, /livez and /readyz, which ask for no key: another one than loopback for a "
        "Prometheus on another machine. On loopback only requests by a name of it are answered.",
    )
    metrics_port: int = Field(
        0,
        ge=0,
        le=65_535,
        description="Its port; 0 takes a free one. `thalweg status` and the log of the worker show the address.",
    )
    kept_snapshots: int = Field(
        3,
        ge=3,
        le=10_000,
        description="How many of the newest graph snapshots are kept, each as large as the graph: `as_of` reads of "
        "entities and statements go back as far. Readers and repairs need 3.",
    )
    publish_graph: bool = Field(
        True, description="Publish the graph's snapshots as a Kùzu file, for `thalweg cypher`; at most 5 % of the time."
    )
    parsers: int = Field(
        0, ge=0, le=64, description="Child processes that parse; 0 means one for each core they may use, two at most."
    )


class IngestSettings(BaseModel):
    """Where documents come from besides the documents topic."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mappings: dict[str, TopicMapping] = Field(
        {},
        description="Topics of others whose records become documents, such as Debezium's of a table, with the paths of "
        "id, content and metadata in a record: see [ingestion](ingestion.md#tables-and-other-topics).",
    )


class WorkerSettings(ProcessSettings):
    """Everything the worker reads once, at its start, and hands down."""

    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    chunking: ChunkingSettings = Field(default_factory=ChunkingSettings)
    language_model: LanguageModelSettings = Field(default_factory=LanguageModelSettings)
    worker: WorkerBlock = Field(default_factory=WorkerBlock)
    ingest: IngestSettings = Field(default_factory=IngestSettings)
