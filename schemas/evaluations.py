"""The models of `/v1/evaluations`: labelled questions in a request, and what becomes of them."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, StringConstraints, model_validator

from schemas.filters import Group
from schemas.search import MAX_QUERY_CHARACTERS, Count, StrictNumbers

MAX_QUESTIONS = 1_000
MAX_JUDGED = 1_000
MAX_EVALUATED_HITS = 100
MAX_GRADE = 100


def _few(relevant: object) -> object:
    """The judgements, counted before each is looked at."""
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
    kind: str | None = Field(None, max_length=64, description="Questions of a kind are also reported by themselves.")

    @model_validator(mode="after")
    def _answerable(self) -> Self:
        if not any(self.relevant.values()):
            raise ValueError(f"the question {self.id[:80]!r} has no relevant document; grade one above 0")
        return self


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
    report: dict[str, Any] | None = None


class EvaluationList(BaseModel):
    """Newest first, without reports."""

    evaluations: list[EvaluationState]
