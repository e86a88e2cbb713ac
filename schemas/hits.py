"""What a search answers: how the question was read, the snapshot, hits with their paths, and the whole answer."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.answers import Answer
from schemas.choices import Channel, Intent, Mode
from schemas.communities import CommunityName
from schemas.entities import AnswerSubgraph, EntityRef
from schemas.fields import Facet
from schemas.filters import Operator

Likelihood = Literal["likely", "possible", "unlikely"]
LIKELY_FROM = 0.8
UNLIKELY_BELOW = 0.12
"""What people read for a confidence of so much. What the words are worth is in `confidence.toml`."""


def is_unlikely(confidence: float | None) -> bool:
    return confidence is not None and confidence < UNLIKELY_BELOW


def likelihood_of(confidence: float | None) -> Likelihood | None:
    """In a word; None where it is unknown."""
    if confidence is None:
        return None
    return "likely" if confidence >= LIKELY_FROM else "unlikely" if is_unlikely(confidence) else "possible"


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
    others: int = Field(
        0, description="With the last of so many that are shown of one name: how many more in the graph are called so."
    )


class FieldInQuestion(BaseModel):
    """Something that the question asks of documents' own fields, as a filter has it; for the order, it lets nothing
    out."""

    words: str = Field(description="As the question has it.")
    fields: tuple[str, ...] = Field(description="The fields whose values it fits, any of them.")
    operator: Operator
    value: str = Field(examples=["2001"])


class PeriodInQuestion(BaseModel):
    """A time relative to today: of documents' own dates, else of when they arrived."""

    words: str = Field(description="As the question has it.", examples=["last week"])
    since: str | None = Field(description="RFC 3339 time that it begins with; null for any.")
    before: str | None = Field(description="RFC 3339 time that it ends before; null for any.")
    fields: tuple[str, ...] = Field(description="The fields with the documents' own dates.")
    documents: int = Field(description="How many documents are of that time. Where none is, all are searched.")
    filters: bool = Field(
        True,
        description="Whether only these were searched. Where the question may be about the time, such as `open on "
        "Sunday`, they are raised, and none is left out.",
    )


class Understanding(BaseModel):
    """How a question was read, by rules and by the names that the graph knows, and what was decided for it."""

    intent: Intent
    names: tuple[NamedInQuestion, ...] = Field(
        (), description="What it names, the longest first, five for each name; looked up where the graph is asked."
    )
    fields: tuple[FieldInQuestion, ...] = Field(
        (),
        description="What it asks of documents' own fields: ids, titles, values, dates; two for a range of time. "
        "Looked for where the structured channel is asked, in what the searched documents have.",
    )
    period: PeriodInQuestion | None = Field(None, description="A time relative to today, such as `last week`.")
    phrases: tuple[str, ...] = Field((), description="What its quotation marks and exclusions did, in sentences.")
    newest_first: bool = Field(
        False, description="Whether it asks for what is newest, so that newer documents are raised among the first."
    )
    channels: tuple[Channel, ...] = Field((), description="The channels that are asked.")
    hops: int | None = Field(None, description="How many steps through the graph; null for one bounded hop or a walk.")
    parts: tuple[str, ...] = Field((), description="What is compared, or the sentences; none for one piece.")
    decomposed: bool = Field(False, description="Whether each part was searched separately.")


class SnapshotInfo(BaseModel):
    """Which state of the stores the whole answer was read from."""

    generation: str
    graph_position: int = Field(
        description="The offset on the contributions topic that the graph has reached; -1 for none."
    )
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
    inverse: bool = Field(False, description="Whether the fact reads the other way round: `to` has it of `from`.")
    by: StepBy = Field(
        "graph",
        description="`question`: the question names or fits what the step leads to. `graph`: an edge that documents "
        "state. `words`: no edge at all; the passage has words that the question still asks for after the one before, "
        "or names from there.",
    )
    evidence: str | None = Field(
        None,
        description="The sentence that carries the step; by `words`, the one that holds most of these words. "
        "Null for what fits by its meaning alone.",
    )
    chunk_id: str | None = Field(None, description="The chunk that holds the evidence.")
    source_node: str | None = Field(
        None,
        alias="from_node",
        description="The document's key or the entity's id that `from` is in the graph, for `/v1/nodes/{id}`; null for "
        "the question.",
    )
    target_node: str | None = Field(None, alias="to_node", description="Likewise of `to`.")


class TextSpan(BaseModel):
    """A part of a hit's `text`, in Unicode characters from its beginning."""

    start: int
    end: int = Field(description="Exclusive.")


class HitSource(BaseModel):
    """The record the hit was made from."""

    topic: str
    partition: int
    offset: int
    version: int | None = None


class DuplicateHit(BaseModel):
    """A hit that was left out, because an earlier one has the same content."""

    document_id: str
    collection: str
    passage_id: str
    similarity: float = Field(description="1 for the same text, else the cosine of the two chunks that matched.")


class Factors(BaseModel):
    """What speaks for a hit, each from 0 to 1, and their weighted sum. They explain; the order comes from the scores
    and the confidence from a model of its own."""

    semantic: float = Field(description="Cosine of the question with its nearest chunk.")
    exact: float = Field(description="Share of the question's content words, or of the fields asked for, that it has.")
    recency: float = Field(description="Halves with each year since its document's own date, else its record.")
    centrality: float = Field(description="n / (n + 10), where n passages of other documents name or link to its own.")
    relationship: float = Field(description="How strongly the graph's edges lead from the question to it.")
    entity: float = Field(description="Share of the names in the question that it mentions or is about.")
    source: float = Field(description="Share of its origin that is known: a URI, a version, metadata.")
    weighted: float = Field(description=".25, .20, .15, .15, .10, .10 and .05 of these, in this order.")


class HitCommunity(CommunityName):
    """The community of entities that a hit of `mode=global` stands for."""

    relevance: float = Field(description="To the question, above 2 up to 10.")
    sentence: str = Field(description="What its summary cites of the hit's chunk, else its first sentence.")


class HitStatement(BaseModel):
    """What the chunk of a hit states, with the names as it writes them."""

    subject: str
    predicate: str
    object: str
    sentence: str | None = Field(description="The sentence that states it; null for what a header or a table states.")


class HitPassage(BaseModel):
    """A further passage of a hit's document, the next of it in the order; its fields are as those of the hit."""

    chunk_id: str
    passage_id: str
    text: str = Field(description="The chunk that matched, in whole sentences.")
    highlights: list[TextSpan] = Field(default_factory=list)
    answer: TextSpan | None = None
    start: int = Field(description="Where `text` begins in the text that was read from its document.")
    end: int = Field(description="Where it ends, exclusive.")
    section: list[str]
    page: int | None = None
    score: float = Field(description="By which it was ordered; never above the hit's own.")


class Hit(BaseModel):
    rank: int
    chunk_id: str
    passage_id: str
    document_id: str
    collection: str
    title: str
    text: str = Field(description="The chunk that matched, in whole sentences.")
    parent_text: str = Field(description="The passage around it.")
    highlights: list[TextSpan] = Field(
        default_factory=list,
        description="The words of `text` that the question has too, stemmed and without stop words.",
    )
    answer: TextSpan | None = Field(
        None,
        description="The sentence of `text` that covers most of the question's words by idf; null where "
        "it holds none of them.",
    )
    start: int = Field(
        description="Where `text` begins in the text that was read from its document, in Unicode characters; in "
        "`parent_text` it begins at `start - parent_start`.",
    )
    end: int = Field(description="Where it ends, exclusive.")
    parent_start: int = Field(description="Where the passage begins.")
    section: list[str] = Field(description="The headings above it, outermost first.")
    page: int | None = Field(
        None, description="The page of the answer, else the one `text` begins on, from 1, in a format with pages."
    )
    uri: str | None = None
    score: float
    scores: dict[str, float] = Field(description="Each channel's own score.")
    ranks: dict[str, int] = Field(default_factory=dict, description="Each channel's own rank, from 1.")
    confidence: float | None = Field(
        None, description="How likely it is relevant, from 0 to 1; null where it is unknown."
    )
    likelihood: Likelihood | None = Field(
        None, description="The confidence in a word: `likely` from 80 %, `unlikely` below 12 %, `possible` between."
    )
    unlikely: bool = Field(
        False,
        description="Whether it is less than 12 % likely relevant: of answers with such hits alone, nine in ten hold "
        "nothing relevant. It stays; `min_confidence` leaves out such hits.",
    )
    factors: Factors | None = Field(None, description="What speaks for it; with `explain`.")
    entities: list[EntityRef] = Field(
        default_factory=list,
        description="What its chunk mentions, those of the path first, ten at most; with `explain`.",
    )
    statements: list[HitStatement] = Field(
        default_factory=list, description="What its chunk states, likewise; with `explain`."
    )
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
    community: HitCommunity | None = Field(
        None, description="Which community of entities it stands for; with `mode=global`."
    )
    passages: list[HitPassage] = Field(
        default_factory=list,
        description="With `group=document`: the next passages of its document among the first places of the order, two "
        "at most, with at least half its score, and without those whose text is shown already.",
    )
    copies: int = Field(
        0,
        description="With `group=document` and `duplicates=exact` or `semantic`: how many other documents of those "
        "searched have the same text as this one, but for blanks and case. They are folded into it. 0 also where texts "
        "are too many for memory.",
    )
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
    subgraph: AnswerSubgraph | None = Field(None, description="What they are about; with `subgraph`.")
    timings: dict[str, float] = Field(description="Seconds by stage.")
    failed_channels: dict[str, str] = Field(
        default_factory=dict, description="Channels that were late or broken, with the reason; the others answered."
    )
    next_offset: int | None = Field(description="The offset of the next page; null on the last one.")
    next_cursor: str | None = Field(
        None, description="The cursor of the next page on this very snapshot; null on the last one."
    )
    best_confidence: float | None = Field(
        None, description="With `min_confidence`: that of the likeliest place, shown or not; null where none is known."
    )
    answer: Answer | None = Field(None, description="With `answer`: what answers the question, or that nothing does.")
    facets: list[Facet] = Field(default_factory=list, description="With `facets`: one for each of these fields.")
    suggestion: str | None = Field(None, description="The query, with a word of the collection for one it lacks.")
    cached: bool = Field(
        False,
        description="Whether it came from the cache of results; stages are then those of the search that found it.",
    )
    notes: list[str] = Field(default_factory=list, description="What to know of this answer, in sentences.")
