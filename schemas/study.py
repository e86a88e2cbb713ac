"""Study sets: cards, quizzes, concept maps and learning paths made of what documents state; results of answering."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from schemas.choices import MOST_OF_STUDY, StudyKind
from schemas.edits_api import InCollection
from schemas.entities import EntityDefinition, EntityRef, Evidence, StatementDetail
from schemas.search import StrictNumbers

COUNTS: dict[StudyKind, int] = {"cards": 5, "quiz": 6, "map": 15, "path": 8}
MOST_RESULTS = 1_000  # of one set


class StudyScope(InCollection):
    """What to study: one document, one entity, or all of a collection."""

    document: str | None = Field(None, min_length=1, max_length=2_048, description="A document's id.")
    entity: str | None = Field(None, min_length=1, max_length=300, description="An entity's name or id.")


class StudyRequest(StudyScope, StrictNumbers):
    """A set to make, without a language model."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"collection": "peps", "document": "pep-0776.rst"}]},
    )

    count: int | None = Field(
        None,
        ge=1,
        le=MOST_OF_STUDY,
        description="At most so many cards (5 when left out), questions (6), concepts of a map (15) or of a path (8).",
    )

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        if self.document is not None and self.entity is not None:
            raise ValueError("a set is made of a `document` or of an `entity`, not of both")
        return self


class StudySource(Evidence):
    """A sentence, and its place in the text that was read from its document."""

    section: list[str] = Field(description="The headings above it, outermost first.")
    start: int = Field(description="Where it begins in that text, in Unicode characters.")
    end: int = Field(description="Where it ends, exclusive.")


class StudyQuestion(BaseModel):
    """A card, or a question of a quiz, which has options."""

    question: int = Field(description="Its number, from 1.")
    text: str
    context: str | None = Field(description="The title of the document, unless it gives the answer away.")
    options: list[str] = Field(description="In the order to show; none of a card.")
    answer: str
    concept: EntityRef = Field(description="What it is about.")
    explanation: StudySource


class StepReason(BaseModel):
    """Why a step comes after another."""

    step: int
    predicate: str
    evidence: Evidence | None = Field(description="The sentence that states it; null for an edge that people made.")


class LearningStep(BaseModel):
    """What to learn next."""

    step: int
    concept: EntityRef
    definition: EntityDefinition | None = Field(description="The sentence that says what it is, if any.")
    after: list[StepReason] = Field(description="The steps that have to come before it; none where nothing says so.")


class StudyContent(BaseModel):
    """What a set is made of, by its kind: questions; a map's concepts, relations and Mermaid text; or steps."""

    questions: list[StudyQuestion] = []
    concepts: list[EntityRef] = []
    relations: list[StatementDetail] = []
    mermaid: str | None = None
    steps: list[LearningStep] = []
    notes: list[str] = Field([], description="Such as why there are fewer than were asked for.")

    @property
    def total(self) -> int:
        return len(self.questions) or len(self.concepts) or len(self.steps)


class GivenAnswer(BaseModel):
    """Either what was answered, or whether it was known."""

    model_config = ConfigDict(extra="forbid")

    question: int
    answer: str | None = Field(None, max_length=2_000, description="Of a quiz one of the options, as it is written.")
    known: StrictBool | None = Field(None, description="Of a card: whether its reader knew it.")

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.answer is None) == (self.known is None):
            raise ValueError("give each question either an `answer` or whether it was `known`")
        return self


class StudyAnswers(BaseModel):
    """Answers to questions of a set, each at most once."""

    model_config = ConfigDict(extra="forbid")

    answers: list[GivenAnswer] = Field(min_length=1, max_length=MOST_OF_STUDY)


class AnswerResult(GivenAnswer):
    """An answer, whether it is right, and what would be."""

    right: bool
    expected: str
    explanation: StudySource


class StudyScore(BaseModel):
    """How many answers were right. `score` is their share, from 0 to 1."""

    at: str = Field(description="RFC 3339 time.")
    right: int
    answered: int
    score: float


class StudyResult(StudyScore):
    answers: list[AnswerResult]


class StudySummary(BaseModel):
    id: str
    kind: StudyKind
    scope: StudyScope
    size: int = Field(description="Questions, concepts or steps.")
    created_at: str
    results: list[StudyScore] = Field(description="The newest last.")


class StudySet(StudySummary, StudyContent):
    """A set as it was made: it stays so when its documents change. The same snapshot makes the same again."""

    graph_position: int


class StudyPage(BaseModel):
    """Those last made or answered first."""

    sets: list[StudySummary]
    next_cursor: str | None = None
