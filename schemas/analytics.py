"""The models of `/v1/retrievals`, `/v1/analytics` and `/v1/evaluations`."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, StringConstraints, model_validator

from schemas.choices import Mode
from schemas.filters import Group
from schemas.search import MAX_QUERY_CHARACTERS, Count, StrictNumbers

Rating = Literal["helpful", "unhelpful"]


MAX_COMMENT_CHARACTERS = 2_000


class FeedbackRequest(StrictNumbers):
    """A rating of one hit of a retrieval, named by its chunk or by its rank."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"rank": 1, "rating": "helpful"}]}
    )

    chunk_id: str | None = Field(None, min_length=1, max_length=128)
    rank: int | None = Field(None, ge=1)
    rating: Rating | float = Field(description="`helpful` is 1, `unhelpful` -1; or a number from -1 to 1.")
    comment: str | None = Field(None, max_length=MAX_COMMENT_CHARACTERS)
    caller: str = Field(
        "", max_length=128, description="Who gives it, as the application names them; one opinion each on a hit."
    )

    @property
    def value(self) -> float:
        """From -1 to 1."""
        named = {"helpful": 1.0, "unhelpful": -1.0}
        return named[self.rating] if isinstance(self.rating, str) else self.rating

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.chunk_id is None) == (self.rank is None):
            raise ValueError("name the hit by `chunk_id` or by `rank`, and by one of them only")
        if not -1 <= self.value <= 1:
            raise ValueError("`rating` is `helpful`, `unhelpful`, or a number from -1 to 1")
        return self


class FeedbackAccepted(BaseModel):
    """The feedback is in the log at `position` of the provenance topic; the table shows it a moment later."""

    position: str = Field(examples=["2:31"])
    retrieval_id: str
    chunk_id: str
    rating: float


class FeedbackShown(BaseModel):
    retrieval_id: str
    chunk_id: str
    rating: float
    comment: str | None = None
    caller: str = ""
    at: str


class RetrievalSummary(BaseModel):
    retrieval_id: str
    at: str = Field(description="RFC 3339 time at which the search began.")
    query: str
    collection: str | None
    mode: str
    hits: int
    seconds: float
    outcome: str = Field(description="`done`, `failed`, or `cancelled` where the client left.")
    cached: bool
    counted: bool = Field(description="Whether analytics count it; not with the header `Thalweg-Usage: none`.")


class RetrievalPage(BaseModel):
    """Newest first."""

    retrievals: list[RetrievalSummary]
    next_cursor: str | None = None


class RetrievedHitShown(BaseModel):
    """A hit as it was retrieved: its rank and score, and those each channel gave it."""

    rank: int
    chunk_id: str
    passage_id: str
    document_id: str
    collection: str
    title: str | None = Field(None, description="The document's title now; null where it is not there any more.")
    score: float
    scores: dict[str, float]
    ranks: dict[str, int]
    confidence: float | None = Field(
        None,
        description="How likely it was relevant; null where it was unknown, and in records of earlier versions.",
    )
    path: list[dict[str, Any]]
    source: dict[str, Any]


class RetrievalDetail(BaseModel):
    """Everything that is recorded of a retrieval, and the feedback on its hits since."""

    retrieval_id: str
    at: str
    at_ms: int
    query: str
    collection: str | None
    mode: str
    parameters: dict[str, Any]
    snapshot: dict[str, Any]
    hits: list[RetrievedHitShown]
    answer: dict[str, Any] | None = Field(
        None, description="Of a search with `answer`: whether it was refused, and where each cited sentence is."
    )
    stages: dict[str, float] = Field(description="Seconds by stage.")
    failed_channels: dict[str, str]
    seconds: float
    outcome: str
    cached: bool
    traceparent: str | None
    counted: bool
    feedback: list[FeedbackShown]


class FeedbackCounts(BaseModel):
    """`helpful` counts ratings above 0, `unhelpful` those below."""

    helpful: int = 0
    unhelpful: int = 0
    mean_rating: float | None = None


class ChunkUse(BaseModel):
    """How often a chunk was a hit, and at which ranks."""

    chunk_id: str
    count: int = Field(description="Retrievals that it was a hit of.")
    mean_rank: float | None
    last_seen: str | None
    feedback: FeedbackCounts = Field(default_factory=FeedbackCounts)


class PopularChunk(ChunkUse):
    document_id: str
    collection: str
    title: str
    text: str


class PopularChunks(BaseModel):
    """Chunks that are hits most often, of documents that are still there."""

    since: str | None
    chunks: list[PopularChunk]
    approximate: bool = Field(
        False, description="Too many different chunks were seen to count each; counts may be a little low."
    )


class ChunkStatistics(ChunkUse):
    """Use of one chunk since it was first retrieved; `live`: whether it is still in the index."""

    live: bool
    latest_feedback: list[FeedbackShown]


class QueryCount(BaseModel):
    query: str = Field(description="As it was last put; capitals and blanks apart, the same question counts as one.")
    count: int
    without_hits: int
    unlikely: int = Field(0, description="How often all its hits were `unlikely`.")
    last_seen: str


class Latency(BaseModel):
    """Seconds of searches that were not cached, within 1 %."""

    searches: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


class QueryAnalytics(BaseModel):
    since: str | None
    searches: int
    without_hits: int
    unlikely: int = Field(0, description="Searches all of whose hits were `unlikely`: next to nothing supports them.")
    failed: int
    cancelled: int
    cached: int
    frequent: list[QueryCount]
    frequent_without_hits: list[QueryCount]
    frequent_unlikely: list[QueryCount] = Field(description="Those all of whose hits were `unlikely`.")
    latency: dict[Mode, Latency]
    approximate: bool = False


MAX_QUESTIONS = 1_000
MAX_JUDGED = 1_000
MAX_EVALUATED_HITS = 100
MAX_GRADE = 100


def _few(relevant: object) -> object:
    """The judgements, counted before each is read."""
    if isinstance(relevant, dict) and len(relevant) > MAX_JUDGED:
        raise ValueError(f"a question has at most {MAX_JUDGED:,} judgements, not {len(relevant):,}")
    return relevant


Identifier = Annotated[str, StringConstraints(min_length=1, max_length=2_048)]


class EvaluatedQuestion(BaseModel):
    """A question with what it is about: `relevant` is {document id: grade}, 0 for judged and not relevant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Identifier
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    relevant: Annotated[
        dict[Identifier, Annotated[Count, Field(ge=0, le=MAX_GRADE)]],
        Field(min_length=1, max_length=MAX_JUDGED),
        BeforeValidator(_few),
    ]
    kind: str | None = Field(None, max_length=64, description="Questions of a kind are also reported separately.")

    @model_validator(mode="after")
    def _answerable(self) -> Self:
        if not any(self.relevant.values()):
            raise ValueError(f"the question {self.id[:80]!r} has no relevant document; grade one above 0")
        return self


class UnknownDocument(BaseModel):
    """A judged document that the collection lacks."""

    id: str
    questions: list[str] = Field(description="The ids of questions that name it.")
    suggestions: list[str] = Field(description="Ids of the collection that are nearest to it, the nearest first.")


class EvaluationRequest(StrictNumbers):
    """Questions about documents that are in a collection already, and how they are to be asked."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "collection": "peps",
                    "questions": [{"id": "q1", "text": "gradual typing", "relevant": {"pep-0483.rst": 1}}],
                    "approaches": ["hybrid", "keyword"],
                }
            ]
        },
    )

    name: str = Field("labelled", min_length=1, max_length=128, description="What the report calls the questions.")
    collection: str = Field(min_length=1, max_length=128)
    questions: Annotated[list[EvaluatedQuestion], FailFast()] = Field(min_length=1, max_length=MAX_QUESTIONS)
    approaches: list[str] = Field(
        ["hybrid", "vector", "keyword", "graph"],
        min_length=1,
        max_length=16,
        description="By name, as in `thalweg evaluate --approach`; the others are compared with the first.",
    )
    k: int = Field(10, ge=1, le=MAX_EVALUATED_HITS, description="Hits asked for and judged.")
    group: Group = "document"
    unknown_documents: Literal["refuse", "leave_out"] = Field(
        "refuse",
        description="Where judged documents are not in the collection: answer 422 with all of them and their nearest "
        "ids, or measure without them, and without questions that then have no relevant document.",
    )

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        seen: set[str] = set()
        for question in self.questions:
            if question.id in seen:
                raise ValueError(f"the id {question.id[:80]!r} is that of two questions; give each one of its own")
            seen.add(question.id)
        return self


class EvaluationState(BaseModel):
    """How far an evaluation is: `asked` of `searches` searches are answered. `report` is there when it is done, of the
    form of `report.json`."""

    id: str
    name: str
    collection: str
    status: Literal["running", "done", "failed"]
    searches: int
    asked: int
    created_at: str
    message: str | None = Field(None, description="Why it failed.")
    left_out_documents: list[str] = Field(
        default_factory=list, description="Judged ones that the collection lacks, with `unknown_documents=leave_out`."
    )
    left_out_questions: list[str] = Field(
        default_factory=list, description="The ids of questions none of whose relevant documents is there."
    )
    report: dict[str, Any] | None = None


class EvaluationList(BaseModel):
    """Newest first, without reports."""

    evaluations: list[EvaluationState]
