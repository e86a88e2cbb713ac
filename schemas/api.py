"""The models of the HTTP interface for documents, chunks, collections, the graph and the cache; and its problems."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.curation import ChunkingChoice, LinkingChoice


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


class AcceptedMember(BaseModel):
    """A document of a batch that is in the log; `index` counts from 0 in the order given."""

    index: int
    id: str
    collection: str
    position: str


class RefusedMember(BaseModel):
    """A document of a batch that is not in the log, and why; the others are not affected."""

    index: int
    id: str | None = None
    status: int
    reason: str
    detail: str


class BatchAccepted(WriteAccepted):
    """`documents` counts those accepted; `token` covers all of them."""

    accepted: list[AcceptedMember]
    refused: list[RefusedMember] = Field(default_factory=list)


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


class DocumentStatus(BaseModel):
    """What became of a document: `pending` is in the log, `indexed` is found by its text, `in_graph` by the graph too.

    Asked about a `position`, a record that left nothing is `superseded` or `dead_lettered`, for as long as its receipt
    is remembered: `position`, and of a superseded one `version`, are its own then, the rest is what searches show.
    `final` says that nothing more comes of it: in the graph, deleted from both stores, superseded, or a dead letter.
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
    notes: list[str] = Field(
        default_factory=list,
        description="What of it could not be read as it was meant, such as front matter that is no YAML. Known for a "
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


class CollectionSummary(BaseModel):
    """A collection with live documents, or with a setting ahead of them."""

    name: str
    documents: int = Field(0, description="Live documents; 0 where only a setting is there yet.")
    passages: int = 0
    chunks: int = 0
    chunking: ChunkingChoice | None = Field(None, description="What was chosen; null where nothing was.")
    linking: LinkingChoice | None = Field(None, description="What was chosen; null where nothing was.")


class CollectionList(BaseModel):
    """In the order of their names."""

    collections: list[CollectionSummary]
    notes: list[str] = Field(default_factory=list, description="What is unknown, in sentences.")


NodeKind = Literal["document", "chunk", "entity"]


EdgeKind = Literal["has_chunk", "next_chunk", "similar_to", "related_to", "links_to", "mentions", "about", "states"]


class GraphNode(BaseModel):
    """`id` is the record key of a document, the computed id of a chunk or an entity; `label` is for people."""

    id: str
    kind: NodeKind
    label: str
    collection: str | None = None
    document_id: str | None = None


class GraphEdge(BaseModel):
    """Directed, from node id to node id. A `states` edge stands for a statement: `label` is its predicate and the role
    of the far end, `weight` its confidence."""

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
    """A node of the graph with what stands around it; `truncated` says that there is more than `limit`."""

    node: GraphNode
    neighbours: list[Neighbour]
    truncated: bool = False
    graph_position: int


class Subgraph(BaseModel):
    """A part of the graph for drawing: every edge's ends are among the nodes."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    truncated: bool = False
    graph_position: int


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
    """The collections with documents, as far as they are not too many, in a sentence for who asked for another."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"There are documents in {', '.join(names[:MAX_NAMED])}{more}."
