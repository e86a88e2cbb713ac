"""The models of the HTTP interface for documents, chunks, collections, the graph, the cache, status and problems."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.answers import Summary
from schemas.choices import EdgeKind
from schemas.curation import ChunkingChoice, ExtractionChoice, LinkingChoice
from schemas.edits_api import HandMadeNode
from schemas.entities import EntityRef, StatementDetail
from schemas.hits import HitSource
from schemas.unknown_fields import UnknownField


class Problem(BaseModel):
    """RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str


class WriteAccepted(BaseModel):
    """The record is in the log. Search with `after` set to the token to see it."""

    token: str = Field(examples=["3:1042"])
    documents: int = 1


class DocumentAccepted(WriteAccepted):
    """One document is in the log."""

    unknown_fields: list[UnknownField] = Field(
        default_factory=list, description="The first ten of its envelope that were left out, and what may be meant."
    )


class AcceptedMember(BaseModel):
    """A document of a batch that is in the log; `index` counts from 0 in the order given."""

    index: int
    id: str
    collection: str
    position: str
    unknown_fields: list[UnknownField] = Field(
        default_factory=list, description="The first ten of its envelope that were left out, and what may be meant."
    )


class RefusedMember(BaseModel):
    """A document of a batch that is not in the log, and why; the others are not affected."""

    index: int
    id: str | None = None
    status: int
    reason: str
    detail: str
    reason_title: str | None = Field(None, description="The reason in a few words for people.")
    advice: str | None = Field(None, description="What to do about it.")


class BatchAccepted(WriteAccepted):
    """`documents` counts those accepted; `token` covers all of them."""

    accepted: list[AcceptedMember]
    refused: list[RefusedMember] = Field(default_factory=list)


class NewerRefused(BaseModel):
    """A newer record of a document that could not be indexed; what is served is from before it."""

    dead_letter: str = Field(description="Its position, for `/v1/dead-letters/{position}`.")
    reason: str
    reason_title: str
    advice: str
    at: str = Field(description="RFC 3339 time at which it was set apart.")


class DocumentSummary(BaseModel):
    id: str
    collection: str
    title: str
    uri: str | None = None
    content_type: str
    version: int | None = None
    chunks: int
    position: str
    updated_at: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    stated_fields: list[str] = Field(
        default_factory=list,
        description="The names in `metadata` that the document states of itself; the others its producer sent.",
    )
    newer_refused: NewerRefused | None = Field(
        None, description="Set where a newer record of it is a dead letter that is open."
    )


class DocumentPage(BaseModel):
    documents: list[DocumentSummary]
    next_cursor: str | None = None


class PassageText(BaseModel):
    """A passage, and where it begins and ends in the text that was read from the document, in Unicode characters."""

    id: str
    section: list[str]
    start: int
    end: int
    text: str


class DocumentDetail(DocumentSummary):
    """A document as it is indexed. `text` is that of its passages, without what they overlap."""

    text: str
    passages: list[PassageText]
    written_summary: Summary | None = Field(None, description="With sources, where `summary_form` asks for it.")


class DocumentStatus(BaseModel):
    """What became of a document: `pending` is in the log, `indexed` is found by its text, `in_graph` by the graph too.

    Asked about a `position`, a record that left nothing is `superseded` or `dead_lettered`, for as long as its receipt
    is remembered: `position`, and of a superseded one `version`, are its own then, the rest is what searches show.
    `final`: nothing more comes of it: in the graph, deleted from both stores, superseded, or a dead letter.
    """

    id: str
    collection: str
    status: Literal["indexed", "deleted", "pending", "superseded", "dead_lettered", "unknown"]
    position: str | None = None
    version: int | None = None
    chunks: int = 0
    searchable: bool = False
    in_graph: bool = False
    final: bool = False
    message: str | None = None
    reason: str | None = Field(None, description="Of one that is `dead_lettered`: as its dead letter's.")
    reason_title: str | None = Field(None, description="The reason in a few words for people.")
    advice: str | None = Field(None, description="What to do about it.")
    notes: list[str] = Field(
        default_factory=list,
        description="What of it could not be read as intended, such as front matter that is not YAML. Known for a "
        "while after it was indexed.",
    )


class FormatInfo(BaseModel):
    """A format that documents may come in; `media_types[0]` is the one to prefer."""

    name: str
    media_types: list[str]
    extensions: list[str]
    takes: Literal["text", "bytes"] = Field(description="Characters, in any declared or detected charset, or bytes.")
    limits: dict[str, int] = Field(
        description="Upper bounds, inclusive: `bytes`, `metadata_bytes`, `title_characters`, `uri_characters`, `links` "
        "and `link_characters` hold for any document, the others for this format."
    )


class ChunkDetail(BaseModel):
    """A chunk with the passage around it."""

    chunk_id: str
    passage_id: str
    document_id: str
    collection: str
    title: str
    ordinal: int
    section: list[str]
    text: str
    start: int = Field(
        description="Where it begins in the text that was read from its document, in Unicode characters."
    )
    end: int = Field(description="Where it ends, exclusive.")
    parent_text: str
    parent_start: int = Field(description="Where the passage begins.")
    source: HitSource | None = Field(None, description="The record that its document was made from.")
    entities: list[EntityRef] = Field(default_factory=list, description="That it mentions.")
    statements: list[StatementDetail] = Field(default_factory=list, description="What it states.")


class CollectionSummary(BaseModel):
    """A collection with live documents, or with a setting ahead of them."""

    name: str
    documents: int = Field(0, description="Live documents; 0 where only a setting is there yet.")
    saved_notes: int = Field(0, description="Of the documents, notes of research that were saved.")
    hand_made: int = Field(0, description="Nodes and edges that people made.")
    passages: int = 0
    chunks: int = 0
    chunking: ChunkingChoice | None = Field(None, description="What was chosen; null where nothing was.")
    linking: LinkingChoice | None = Field(None, description="What was chosen; null where nothing was.")
    extraction: ExtractionChoice | None = Field(None, description="What was chosen; null where nothing was.")


class CollectionList(BaseModel):
    """In the order of their names."""

    collections: list[CollectionSummary]
    notes: list[str] = Field(default_factory=list, description="What is unknown, in sentences.")


NodeKind = Literal["document", "chunk", "entity", "hand_made"]


class GraphNode(BaseModel):
    """`id` is the record key of a document, the computed id of a chunk or an entity, that which people gave a hand-made
    node; `label` is for people."""

    id: str
    kind: NodeKind
    label: str
    collection: str | None = None
    document_id: str | None = None
    type: str | None = Field(None, description="Of an entity or a hand-made node.")


class GraphEdge(BaseModel):
    """Directed, from node id to node id. Between entities a `states` edge is a fact: `label` is its predicate, with the
    role of the far end where that is not the object, `weight` its strength. From a chunk it is a part of what the chunk
    states: `label` has predicate and role, `weight` is the confidence. Of a `hand_made` edge `label` is the predicate.
    """

    model_config = ConfigDict(populate_by_name=True)

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    kind: EdgeKind
    weight: float = 1.0
    label: str | None = None


class Neighbour(BaseModel):
    """A node one edge away, and that edge."""

    node: GraphNode
    edge: GraphEdge


class NodeDetail(BaseModel):
    """A node of the graph with what is around it; `truncated`: there is more than `limit`."""

    node: GraphNode
    hand_made: HandMadeNode | None = Field(None, description="All of a hand-made node.")
    neighbours: list[Neighbour]
    truncated: bool = False
    graph_position: int


class Subgraph(BaseModel):
    """A part of the graph for drawing: every edge's ends are among the nodes."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    truncated: bool = False
    graph_position: int


class NamedNodePage(BaseModel):
    """Hand-made nodes, entities, documents, each in the order of their labels, without regard to case."""

    nodes: list[GraphNode]
    next_cursor: str | None = None


class CacheStatistics(BaseModel):
    """The cache of results. Hits, misses and evictions (made for room, not by age) are counted since the start."""

    entries: int
    max_entries: int
    bytes: int = Field(description="Size of the answers as JSON.")
    max_bytes: int
    max_age_seconds: float
    hits: int
    misses: int
    evictions: int


class CacheCleared(BaseModel):
    removed: int


MAX_NAMED = 20


def describe_collections(names: Sequence[str]) -> str:
    """The collections with documents, in a sentence for who asked for another."""
    return f"There are documents in {name_collections(names)}."


def name_collections(names: Sequence[str]) -> str:
    """Their names with commas between, as far as they are not too many."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"


class PartitionLag(BaseModel):
    """`reached` is the last offset applied (-1 for none), `end` the one the next record gets (null while unknown)."""

    topic: str
    partition: int
    reached: int
    end: int | None = None
    records: int | None = None
    seconds: float | None = None


class UnreadableBatchStatus(BaseModel):
    """A batch of the log that cannot be read, `first` and `last` offset inclusive; `message` states what to do."""

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
    """`reasons` state what is not ready yet; `notes` what is out of order, though searches run."""

    ready: bool
    reasons: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    dead_letters_note: str | None = Field(
        None, description="That of `notes` which reports dead letters, for a page that shows them itself."
    )
    dead_letters_open_last_day: int | None = Field(
        None, description="How many dead letters of the last day are open; null while that is not known."
    )
    kafka: Literal["reachable", "unreachable"]
    snapshot_age_seconds: float | None = None
    graph_position: int | None = Field(None, description="Of the graph that is served.")


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
    metrics_url: str | None = Field(None, description="Where its metrics are.")


class Healing(BaseModel):
    """The live generation is damaged, and another one that takes its place is made from the log."""

    generation: str = Field(description="The one that is made; `GET /v1/generations/{name}` has more.")
    seconds: float | None = Field(None, description="Since the damage was noted.")
    records: int = Field(0, description="Offsets of the documents topic that it has read.")
    of_records: int = 0
    seconds_left: float | None = Field(None, description="By the mean rate so far; null while that is not known.")
    message: str


class Freshness(BaseModel):
    """How long the newest record that was measured took from its produce time until searches showed it; in quiet times
    that is a canary."""

    seconds: float
    measured_seconds_ago: float


class ServiceStatus(BaseModel):
    """The state of the service, for people and for `thalweg status`."""

    version: str
    uptime_seconds: float
    installation: str | None = Field(
        description="The id that answers name in `Thalweg-Installation`; null where none could be stored."
    )
    data_dir: str = Field(description="Its data directory, on the service's machine.")
    kafka_cluster_id: str | None = Field(description="As the cluster reports it; null until it has.")
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
    lag_known_seconds_ago: float | None = Field(
        None, description="Since Kafka last reported what its log holds; null if never. Lag is unknown since."
    )
    freshness: Freshness | None = Field(None, description="Null until a record was measured.")
    worker: WorkerStatus
    dead_letters_open: int | None = Field(
        None,
        description="Those that nothing has replaced: of each document the newest, unless it was indexed or deleted "
        "since; of the newest 20,000 that are kept. Null while that is not known.",
    )
    dead_letters_open_by_reason: dict[str, int] | None = None
    dead_letters_last_day: int | None = Field(
        description="All that came within a day, whatever became of them; null while Kafka is away."
    )
    dead_letters_by_reason: dict[str, int] | None = Field(
        description="Those of the last day; null while Kafka is away."
    )
    disk_free_bytes: int | None = Field(description="Of the data directory.")
    unreadable_batches: list[UnreadableBatchStatus] = Field(
        description="Batches at which readers stop until a person skips them."
    )
    open_transactions: list[OpenTransaction]
    damage: list[str] = Field(
        default_factory=list,
        description="What on disk is not what was written, each with its file; `readiness` states what repairs it.",
    )
    healing: Healing | None = Field(None, description="What is done about damage that is made again from the log.")
    table_versions: dict[str, int]
    counts: dict[str, int]
    graph_bytes_per_edge: float | None = Field(description="Memory of the graph, names and ids included, by its edges.")
    provenance_buffered: int
    provenance_dropped: int
    streams_open: int
    searches_running: int
    searches_waiting: int = Field(description="For their turn, each two seconds at most.")
    searches_refused: int = Field(description="Since the start, as too many.")
    memory_bytes: int
    embedding_model: str | None
    language_model: str | None = Field(None, description="What `answer_form=model` asks; null where none is set.")
