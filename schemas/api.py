"""The models of the HTTP interface."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from schemas.filters import MAX_FILTER_CHARACTERS, MAX_FILTERS, Condition, Operator, parse_condition
from schemas.hit_pages import MAX_HITS, Group
from schemas.results import (
    CONTEXT_CHUNKS,
    DUPLICATE_THRESHOLD,
    MAX_CONTEXT_CHUNKS,
    MAX_PER_VALUE,
    Context,
    DuplicateHit,
    Duplicates,
    Factors,
)

Mode = Literal["hybrid", "vector", "keyword", "structured", "graph", "rerank"]
Fusion = Literal["adaptive", "rrf", "weighted"]
Channel = Literal["vector", "keyword", "structured", "graph"]
Intent = Literal["explain", "compare", "find", "summarise", "path", "quiz", "relation", "general"]
GraphMethod = Literal["hop", "expansion", "pagerank"]
Edge = Literal["named", "title_mention", "mentioned_by", "mentioning", "shared_entity", "link", "statement", "residual"]

RERANKED_MODES: frozenset[Mode] = frozenset({"hybrid", "vector", "keyword", "graph"})
MAX_QUERY_CHARACTERS = 10_000
MAX_NAMES = 16
MAX_HOPS = 2
MAX_OFFSET = 10_000


def _checked_filter(text: str) -> str:
    parse_condition(text)
    return text


Filter = Annotated[str, StringConstraints(max_length=MAX_FILTER_CHARACTERS), AfterValidator(_checked_filter)]


def _split(value: object) -> object:
    """`a,b` as well as a list; repeated parameters may hold commas too."""
    given = [value] if isinstance(value, str) else value
    if isinstance(given, list | tuple) and all(isinstance(each, str) for each in given):
        return tuple(name.strip() for each in given for name in each.split(","))
    return value


Weight = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]


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
    filter: Annotated[tuple[Filter, ...], Field(max_length=MAX_FILTERS)] = Field(
        (),
        description="Only documents that all of these let through: `field=value`, `field=a|b`, `!=`, `<`, `<=`, `>`, "
        "`>=`. Fields are those of the metadata (`author.name` for nested ones) and `document`, `title`, "
        "`content_type`, `uri`, `updated`, `version`. Dates are as long as they say: `updated>=2026`.",
        examples=[["status=Final|Active", "created>=2001-01"]],
    )
    edges: tuple[Edge, ...] = Field(
        (), description="The kinds of edges the graph channel may follow; all when left out."
    )
    graph_method: GraphMethod = Field(
        "hop",
        description="How the graph channel goes on from its parents: one bounded hop (`hop`), two steps both ways "
        "(`expansion`), a personalised PageRank (`pagerank`).",
    )
    mode: Mode = Field(
        "hybrid",
        description="All channels fused, or one alone; `rerank` orders what the vector channel finds by the graph.",
    )
    channels: Annotated[tuple[Channel, ...], BeforeValidator(_split)] = Field(
        (), description="What `hybrid` asks, with commas between; all four when left out.", examples=["vector,keyword"]
    )
    fusion: Fusion = Field(
        "adaptive",
        description="How `hybrid` fuses: by scores, as they are (`adaptive`); by ranks (`rrf`); by weighted min-max of "
        "the scores (`weighted`).",
    )
    vector_weight: Weight | None = Field(None, description="What the vector channel counts in `weighted`; .7.")
    keyword_weight: Weight | None = Field(None, description="What the keyword channel counts in `weighted`; .3.")
    graph_weight: Weight | None = Field(None, description="What the graph channel counts beside the others; 1.")
    reranker: bool | None = Field(
        None,
        description="Whether a model that reads the question with each of the first hits puts these into another "
        "order, in the modes hybrid, vector, keyword and graph. Left out: where the service has one.",
    )
    intent: Intent | None = Field(None, description="What kind of question it is; told by rules when left out.")
    names: (
        Annotated[tuple[Annotated[str, StringConstraints(max_length=200)], ...], Field(max_length=MAX_NAMES)] | None
    ) = Field(
        None,
        description="What the question names, each a title or an entity, in place of what is read from it; an empty "
        "one for nothing.",
        examples=[["Ada Lovelace"]],
    )
    hops: int | None = Field(
        None,
        ge=1,
        le=MAX_HOPS,
        description="How many steps `graph_method=expansion` goes; 1 where something is to be explained, else 2.",
    )
    decompose: bool = Field(
        False,
        description="Search each part of a question that compares two things or has several sentences by itself, and "
        "merge what is found by rank. A question of one piece is searched as ever.",
    )
    group: Group = Field(
        "passage", description="One hit for each parent passage, chunk, or document (its best passage)."
    )
    max_per_document: int | None = Field(None, ge=1, le=MAX_HITS, description="Hits of one document; any number.")
    diversity: Annotated[str, StringConstraints(min_length=1, max_length=MAX_FILTER_CHARACTERS)] | None = Field(
        None,
        description="A field, named as in `filter`: of hits whose documents have a value of it in common, only the "
        "first `max_per_value` stay. Documents without the field are not limited.",
        examples=["author"],
    )
    max_per_value: int | None = Field(
        None, ge=1, le=MAX_HITS, description=f"Hits of one value of the field in `diversity`; {MAX_PER_VALUE}."
    )
    duplicates: Duplicates = Field(
        "keep",
        description="What becomes of hits that say what one before them says: `exact` leaves out those with the same "
        "text, `semantic` also those whose best chunks are alike. The one that stays tells them in `duplicates`.",
    )
    duplicate_threshold: float | None = Field(
        None,
        ge=0.5,
        le=1,
        description=f"The cosine that makes chunks alike, for `semantic`; {DUPLICATE_THRESHOLD}.",
    )
    min_confidence: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Leave out hits that are less likely relevant. No more than the first 64 are then shown.",
    )
    context: Context = Field(
        "parent",
        description="What is shown around the matching chunk: its passage (`parent_text`), or in `context_text` a "
        "`window` of the chunks before and after, or the `section` it is in.",
    )
    context_chunks: int | None = Field(
        None, ge=1, le=MAX_CONTEXT_CHUNKS, description=f"Chunks on either side, for `window`; {CONTEXT_CHUNKS}."
    )
    explain: bool = Field(False, description="Tell each hit's `factors`.")
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

    @model_validator(mode="after")
    def _something_counts(self) -> Self:
        weights = (self.vector_weight, self.keyword_weight, self.graph_weight)
        if self.fusion == "weighted" and all(weight == 0 for weight in weights):
            raise ValueError("All weights are 0; give at least one channel a weight above 0.")
        return self

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        if self.duplicate_threshold is not None and self.duplicates != "semantic":
            raise ValueError("`duplicate_threshold` is for duplicates=semantic: ask for that too, or leave it out.")
        if self.context_chunks is not None and self.context != "window":
            raise ValueError("`context_chunks` is for context=window: ask for that too, or leave it out.")
        if self.group == "document" and (self.max_per_document or 1) > 1:
            raise ValueError("group=document gives one hit a document; `max_per_document` is for passages and chunks.")
        if self.names is not None and self.mode in ("vector", "keyword", "structured"):
            raise ValueError(
                f"`names` are for modes that ask the graph, and mode={self.mode} does not: leave them out."
            )
        if self.hops is not None and self.graph_method != "expansion":
            raise ValueError("`hops` is for graph_method=expansion: ask for that too, or leave it out.")
        if self.decompose and self.group == "chunk":
            raise ValueError("`decompose` merges passages or documents; leave it out, or group=chunk.")
        if self.max_per_value is not None and self.diversity is None:
            raise ValueError("`max_per_value` is for the field named in `diversity`: give that too, or leave it out.")
        if self.reranker and self.mode not in RERANKED_MODES:
            raise ValueError("A re-ranker is for hybrid, vector, keyword and graph; leave `reranker` out elsewhere.")
        if self.min_confidence is not None and self.mode == "structured":
            raise ValueError("mode=structured has no confidence, so no `min_confidence`; leave one of them out.")
        return self

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(map(parse_condition, self.filter))


class NamedInQuestion(BaseModel):
    """A title or an entity that the question names."""

    words: str = Field(description="As the question has it, or `names`.")
    name: str = Field(description="The name in the graph.")
    collection: str
    node: str = Field(description="The entity's id, for `/v1/nodes/{id}`.")
    document_id: str | None = Field(
        None, description="The document whose title it is; null for an entity that has none."
    )
    title: str | None = None
    strength: float | None = Field(None, description="How surely it means that document, up to 1.")


class FieldInQuestion(BaseModel):
    """Something that the question asks of documents' own fields, as a filter has it; for the order, it lets nothing
    out."""

    words: str = Field(description="As the question has it.")
    fields: tuple[str, ...] = Field(description="The fields whose values it fits, any of them.")
    operator: Operator
    value: str = Field(examples=["2001"])


class Understanding(BaseModel):
    """How a question was read, by rules and by the names that the graph knows, and what was decided for it."""

    intent: Intent
    names: tuple[NamedInQuestion, ...] = Field(
        (), description="What it names, the longest first; looked up where the graph is asked."
    )
    fields: tuple[FieldInQuestion, ...] = Field(
        (),
        description="What it asks of documents' own fields: ids, titles, values, dates; two for a range of time. "
        "Looked for where the structured channel is asked, in what the searched documents have.",
    )
    channels: tuple[Channel, ...] = Field((), description="The channels that are asked.")
    hops: int | None = Field(None, description="How many steps through the graph; null for one bounded hop or a walk.")
    parts: tuple[str, ...] = Field((), description="What is compared, or the sentences; none for one piece.")
    decomposed: bool = Field(False, description="Whether each part was searched by itself.")


class SnapshotInfo(BaseModel):
    """Which state of the stores the whole answer was read from."""

    generation: str
    graph_position: int = Field(description="The offset on the graph topic that the graph has reached; -1 for none.")
    table_versions: dict[str, int]
    positions: str = Field(description="The token of the documents topic that the text stores have reached.")
    as_of: str = Field(description="RFC 3339 time at which the snapshot was opened.")


StepBy = Literal["question", "graph", "words"]


class PathEdge(BaseModel):
    """One step from the question to a hit that the graph channel found. `from` and `to` are names a person can read.

    Not every step is an edge of the graph: see `by`.
    """

    model_config = ConfigDict(populate_by_name=True)

    source: str = Field(alias="from")
    edge: str
    target: str = Field(alias="to")
    by: StepBy = Field(
        "graph",
        description="`question`: the question names or fits what the step leads to. `graph`: an edge that documents "
        "state. `words`: no edge at all; the passage has words that the question still asks for after the one before, "
        "or names from there. It may be of the same document.",
    )
    evidence: str | None = Field(
        None, description="The sentence that carries the step; by `words`, the one that holds most of these words."
    )
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
    start: int = Field(
        description="Where the chunk begins in the text that was read from its document, in Unicode characters; in "
        "`parent_text` it begins at `start - parent_start`.",
    )
    end: int = Field(description="Where it ends, exclusive.")
    parent_start: int = Field(description="Where the passage begins.")
    section: list[str] = Field(description="The headings above it, outermost first.")
    page: int | None = Field(None, description="The page it begins on, from 1, in a format with pages.")
    uri: str | None = None
    score: float
    scores: dict[str, float] = Field(description="Each channel's own score.")
    ranks: dict[str, int] = Field(default_factory=dict, description="Each channel's own rank, from 1.")
    confidence: float | None = Field(
        None, description="How likely it is relevant, from 0 to 1; null where that cannot be told."
    )
    factors: Factors | None = Field(None, description="What speaks for it; with `explain`.")
    channels: list[str]
    parts: dict[str, int] = Field(
        default_factory=dict, description="The parts of the question that found it, and where; with `decompose`."
    )
    matches: list[str] = Field(
        default_factory=list,
        description="What its document has of what the question asks of fields, as `field=words of the question`.",
        examples=[["created=December 1958"]],
    )
    path: list[PathEdge] = Field(default_factory=list)
    duplicates: list[DuplicateHit] = Field(
        default_factory=list, description="Hits left out for it, as far down as this page goes."
    )
    context_text: str | None = Field(None, description="What was asked for in `context`; null for `parent`.")
    context_chunk_ids: list[str] = Field(default_factory=list, description="The chunks of `context_text`, in order.")
    source: HitSource
    metadata: dict[str, Any] = Field(default_factory=dict)


class SearchAnswer(BaseModel):
    retrieval_id: str
    query: str
    mode: Mode
    understanding: Understanding | None = None
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
    stated_fields: list[str] = Field(
        default_factory=list,
        description="The names in `metadata` that the document states of itself; the others its producer sent.",
    )


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
    notes: list[str] = Field(
        default_factory=list,
        description="What of it could not be read as it was meant, such as front matter that is no YAML. Known for a "
        "while after it was indexed.",
    )


class Problem(BaseModel):
    """RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
