"""The models of the HTTP interface."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Mode = Literal["hybrid", "vector", "keyword", "graph"]
Group = Literal["passage", "chunk", "document"]

MAX_QUERY_CHARACTERS = 10_000
MAX_HITS = 1_000
MAX_OFFSET = 10_000


class SearchRequest(BaseModel):
    """What to search for, where, and how fresh the answer must be."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"q": "Who wrote the proposal that replaced PEP 102?", "k": 5}]},
    )

    q: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARACTERS)] = Field(
        description="The question, in plain words."
    )
    k: int = Field(10, ge=1, le=MAX_HITS, description="Hits a page.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Hits to pass over: the `next_offset` of the page before.")
    collection: str | None = Field(None, max_length=128, description="Search this collection only; all when left out.")
    mode: Mode = Field("hybrid", description="All channels fused, or one alone.")
    group: Group = Field(
        "passage", description="One hit for each parent passage, chunk, or document (its best passage)."
    )
    after: str | None = Field(
        None,
        max_length=4096,
        description="A token from a write: the answer shows at least that write, or a 503 says it is not there yet.",
        examples=["3:1042"],
    )
    wait_seconds: float = Field(10.0, ge=0, le=60, description="How long to wait for `after`.")
    cursor: str | None = Field(
        None,
        max_length=512,
        description="The `next_cursor` of the page before, with the same question: the next page, from the same "
        "snapshot, in place of `offset`.",
    )
    cache: bool = Field(True, description="May be answered from the cache of results, which knows the snapshot.")


class SnapshotInfo(BaseModel):
    """Which state of the stores the whole answer was read from."""

    generation: str
    graph_position: int = Field(description="The offset on the graph topic that the graph has reached; -1 for none.")
    table_versions: dict[str, int]
    positions: str = Field(description="The token of the documents topic that the text stores have reached.")
    as_of: str = Field(description="RFC 3339 time at which the snapshot was opened.")


class PathEdge(BaseModel):
    """One step from the question to a hit that the graph found. `from` and `to` are names a person can read."""

    model_config = ConfigDict(populate_by_name=True)

    source: str = Field(alias="from")
    edge: str
    target: str = Field(alias="to")
    evidence: str | None = Field(None, description="The sentence that carries the edge.")
    chunk_id: str | None = Field(None, description="The chunk that holds the evidence.")


class HitSource(BaseModel):
    """The record the hit was made from."""

    topic: str
    partition: int
    offset: int
    version: int | None = None


class Hit(BaseModel):
    rank: int
    chunk_id: str
    passage_id: str
    document_id: str
    collection: str
    title: str
    text: str = Field(description="The chunk that matched.")
    parent_text: str = Field(description="The passage around it.")
    section: list[str] = Field(description="The headings above it, outermost first.")
    page: int | None = Field(None, description="The page it begins on, from 1, in a format with pages.")
    uri: str | None = None
    score: float
    scores: dict[str, float] = Field(description="Each channel's own score.")
    ranks: dict[str, int] = Field(default_factory=dict, description="Each channel's own rank, from 1.")
    confidence: float | None = None
    channels: list[str]
    path: list[PathEdge] = Field(default_factory=list)
    source: HitSource
    metadata: dict[str, Any] = Field(default_factory=dict)


class SearchAnswer(BaseModel):
    retrieval_id: str
    query: str
    mode: Mode
    snapshot: SnapshotInfo
    hits: list[Hit]
    timings: dict[str, float] = Field(description="Seconds by stage.")
    failed_channels: dict[str, str] = Field(
        default_factory=dict, description="Channels that were late or broken, with the reason; the others answered."
    )
    next_offset: int | None = Field(description="The offset of the next page; null on the last one.")
    next_cursor: str | None = Field(
        None, description="The cursor of the next page on this very snapshot; null on the last one."
    )
    cached: bool = Field(
        False, description="Whether it came from the cache of results; stages then tell of the search that found it."
    )
    notes: list[str] = Field(default_factory=list, description="What to know of this answer, in sentences.")


class WriteAccepted(BaseModel):
    """The record is in the log. Search with `after` set to the token to see it."""

    token: str = Field(examples=["3:1042"])
    documents: int = 1


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


class DocumentPage(BaseModel):
    documents: list[DocumentSummary]
    next_cursor: str | None = None


class DocumentStatus(BaseModel):
    """What became of a document: `pending` is in the log, `indexed` is found by its text, `in_graph` by the graph too.

    `final` says that nothing more comes of it: in the graph, deleted from both stores, or a dead letter.
    """

    id: str
    collection: str
    status: Literal["indexed", "deleted", "pending", "dead_lettered", "unknown"]
    position: str | None = None
    version: int | None = None
    chunks: int = 0
    searchable: bool = False
    in_graph: bool = False
    final: bool = False
    message: str | None = None


class Problem(BaseModel):
    """RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
