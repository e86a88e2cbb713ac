"""The models of `/readyz` and `/v1/status`: readiness, lag, the worker, damage and counts."""

from typing import Literal

from pydantic import BaseModel, Field


class PartitionLag(BaseModel):
    """`reached` is the last offset applied (-1 for none), `end` the one the next record gets (null while unknown)."""

    topic: str
    partition: int
    reached: int
    end: int | None = None
    records: int | None = None
    seconds: float | None = None


class UnreadableBatchStatus(BaseModel):
    """A batch of the log that cannot be read, `first` and `last` offset inclusive; `message` says what to do."""

    topic: str
    partition: int
    first: int
    last: int
    fault: Literal["checksum", "codec", "content"]
    message: str


class OpenTransaction(BaseModel):
    """A transaction that holds back at most `records` from `offset` on, for at least `seconds` now."""

    topic: str
    partition: int
    offset: int
    records: int
    seconds: float


class Readiness(BaseModel):
    """`reasons` say what is not there yet; `notes` what is out of order, though searches run."""

    ready: bool
    reasons: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    kafka: Literal["reachable", "unreachable"]
    snapshot_age_seconds: float | None = None


class WorkerStatus(BaseModel):
    """The worker on the service's data directory, by what it last wrote there. `silent`: nothing for ten seconds."""

    state: Literal["never_seen", "starting", "running", "silent", "stopped", "failed"]
    heard_seconds_ago: float | None = None
    missing: list[str] = Field(default_factory=list, description="What it needs before it works.")
    waiting_for: dict[str, str] = Field(
        default_factory=dict, description="What fails for now and is tried again, with the failure."
    )
    crashes_in_ten_minutes: int = 0
    last_failure: str | None = None


class ServiceStatus(BaseModel):
    """The state of the service, for people and for `thalweg status`."""

    version: str
    uptime_seconds: float
    readiness: Readiness
    kafka_servers: str | None
    generation: str | None
    positions: str | None = Field(description="The token that text searches show.")
    graph_position: int | None
    graph_base_position: int | None = Field(description="Position of the graph snapshot; what is later is an overlay.")
    lag: list[PartitionLag]
    lag_records: int | None = Field(description="Over all partitions of the documents topic; null while unknown.")
    lag_seconds: float | None = Field(
        description="How long the oldest record not yet searchable has waited: by its own time, and where the service "
        "saw it come, not more or less than that allows."
    )
    worker: WorkerStatus
    dead_letters_last_day: int | None = Field(description="Null while Kafka is away.")
    disk_free_bytes: int | None = Field(description="Of the data directory.")
    unreadable_batches: list[UnreadableBatchStatus] = Field(
        description="What stands in the way of a reader until a person passes it by."
    )
    open_transactions: list[OpenTransaction]
    damage: list[str] = Field(
        default_factory=list,
        description="What on disk is not what was written, each with its file; `readiness` says what mends it.",
    )
    table_versions: dict[str, int]
    counts: dict[str, int]
    graph_bytes_per_edge: float | None = Field(description="Memory of the graph, names and ids included, by its edges.")
    provenance_buffered: int
    provenance_dropped: int
    streams_open: int
    searches_running: int
    searches_waiting: int = Field(description="For their turn; see THALWEG_SERVICE__MAX_SEARCH_WAIT_SECONDS.")
    searches_refused: int = Field(description="Since the start, as too many.")
    memory_bytes: int
    embedding_model: str | None
