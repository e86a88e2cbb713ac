"""The worker's settings; where they come from stands in `schemas/settings.py`."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from indexer.chunking.splitter import ChunkingParameters
from schemas.settings import (
    MIB,
    EmbeddingSettings,
    KafkaSettings,
    LanguageModelSettings,
    LimitSettings,
    ProcessSettings,
    StorageSettings,
)

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
    passage_overlap: float = Field(
        _CHUNKING.passage_overlap, ge=0, le=0.5, description="Share of a passage that is repeated from the one before."
    )
    chunk_characters: int = Field(
        _CHUNKING.chunk_characters,
        ge=50,
        le=10_000,
        description="Size of a chunk: what is embedded. Stay within the model's window.",
    )
    chunk_overlap: int = Field(
        _CHUNKING.chunk_overlap, ge=0, le=5_000, description="Characters a chunk repeats from the one before."
    )

    def parameters(self) -> ChunkingParameters:
        return ChunkingParameters(**self.model_dump())

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self.parameters()
        return self


CHUNKING_FIELDS = tuple(ChunkingSettings.model_fields)


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
    batch_records: int = Field(
        1000, ge=1, le=10_000, description="Most records taken at once. More makes bulk loads a little faster."
    )
    batch_wait_seconds: float = Field(
        0.02, gt=0, le=5, description="How long a batch waits for more records. It is part of every document's latency."
    )
    later_batch_wait_seconds: float = Field(
        1.0,
        gt=0,
        le=5,
        description="The same for the graph store and for provenance. Nobody waits for these: searches see graph "
        "changes before they are stored. So larger batches, and the processor for the documents.",
    )
    commit_documents: int = Field(
        500, ge=1, le=10_000, description="Most records in one commit to the stores: what a crash has to do again."
    )
    commit_bytes: int = Field(
        MIB // 2, ge=1024, description="Most bytes of records in one commit: how often progress shows, and memory."
    )
    gather_seconds: float = Field(
        1.0,
        ge=0,
        le=60,
        description="While updates keep coming faster than they are committed, they are gathered in one commit in so "
        "many seconds, or in up to 2 where commits are slow; the first 30 commits after a quiet spell go at once. 0 "
        "gathers nothing: each commit costs the worker and every reader some processor time, and makes some twenty "
        "files.",
    )
    encode_texts: int = Field(
        512, ge=1, le=10_000, description="Texts encoded at a time. More sorts better by length, fewer stops sooner."
    )
    graph_batch_records: int = Field(
        500, ge=1, le=10_000, description="Most contributions that the graph takes at a time."
    )
    commit_interval_seconds: float = Field(
        1.0, gt=0, le=60, description="How often offsets are committed to Kafka. A restart repeats so much, harmlessly."
    )
    broker_wait_seconds: float = Field(
        60.0, ge=0, description="How long a start waits for the first broker to answer before it gives up."
    )
    watchdog_seconds: float = Field(
        300.0, gt=0, description="A partition with lag and no progress for so long ends the process, to be restarted."
    )
    snapshot_idle_seconds: float = Field(
        1.0, gt=0, description="A graph snapshot is made when nothing has changed for so long."
    )
    snapshot_min_seconds: float = Field(
        30.0,
        gt=0,
        description="Least time between snapshots while changes keep coming, or documents are being indexed. Nobody "
        "waits for them: searches see changes before; a start after a crash has so much more of the log to read again.",
    )
    snapshot_max_seconds: float = Field(
        300.0, gt=0, description="Most time between snapshots while changes keep coming."
    )
    snapshot_share: float = Field(
        0.05,
        gt=0,
        le=1,
        description="Largest share of the time that making snapshots may take while changes keep coming.",
    )
    kept_snapshots: int = Field(
        3,
        ge=3,
        le=10_000,
        description="How many of the newest graph snapshots are kept, each as large as the graph: `as_of` reads of "
        "entities and statements go back as far. Readers and repairs need 3.",
    )
    communities: bool = Field(
        True, description="Find communities of entities in the graph's snapshots, for `/v1/communities`."
    )
    community_min_seconds: float = Field(
        60.0, gt=0, description="Least time between two findings of communities while documents are being indexed."
    )
    community_share: float = Field(
        0.02, gt=0, le=1, description="Largest share of the time that finding communities may take meanwhile."
    )
    publish_graph: bool = Field(
        True, description="Publish the graph's snapshots as a Kùzu file, for `thalweg cypher`; at most 5 % of the time."
    )
    maintenance_seconds: float = Field(
        2.0, gt=0, description="How often the vector tables are looked at; work is done only where it pays."
    )
    parsers: int = Field(
        0, ge=0, le=64, description="Child processes that parse; 0 means one for each core they may use, two at most."
    )
    parser_cpu_seconds: int = Field(
        20, ge=1, description="CPU time one document may take to parse before it is a dead letter."
    )
    parser_wall_seconds: float = Field(60.0, gt=0, description="Time one document may take to parse.")
    parser_memory_bytes: int = Field(
        1024 * MIB, ge=64 * MIB, description="Memory one document may take to parse, above the idle child process."
    )
    parser_output_bytes: int = Field(256 * MIB, ge=MIB, description="Largest result of parsing one document.")


class WorkerSettings(ProcessSettings):
    """Everything the worker reads once, at its start, and hands down."""

    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    chunking: ChunkingSettings = Field(default_factory=ChunkingSettings)
    language_model: LanguageModelSettings = Field(default_factory=LanguageModelSettings)
    worker: WorkerBlock = Field(default_factory=WorkerBlock)
