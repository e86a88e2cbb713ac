"""Ground truth: made questions with what is expected for them, which people confirm, correct or reject."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from schemas.analytics import MAX_QUESTIONS, Identifier
from schemas.choices import MOST_OF_STUDY
from schemas.edits_api import InCollection
from schemas.search import MAX_QUERY_CHARACTERS, StrictNumbers

GROUND_TRUTH_PATH = "/v1/ground-truth"
Judgement = Literal["open", "confirmed", "rejected"]


class ExpectedAnswer(BaseModel):
    """A question and what is expected for it."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    documents: list[Identifier] = Field(min_length=1, max_length=100, description="The ids of those that answer it.")
    answer: str = Field("", max_length=2_000, description="What a right answer says; empty where any passage does.")


class ExpectedPassage(BaseModel):
    """A sentence that the question was made of; its place in the text that was read from its document, if known."""

    document_id: Identifier
    sentence: str = Field(max_length=10_000)
    start: int | None = None
    end: int | None = None


class MadeQuestion(ExpectedAnswer):
    kind: str = Field("stated", max_length=64, description="By which evaluations report questions separately.")
    passages: list[ExpectedPassage] = Field([], max_length=100)


class GroundTruthRequest(InCollection, StrictNumbers):
    """Questions to judge: made of facts that documents state, or made elsewhere. One that is there stays as it is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"collection": "peps", "count": 20}]})

    count: int = Field(20, ge=1, le=MOST_OF_STUDY, description="At most so many new ones are made.")
    questions: list[MadeQuestion] | None = Field(
        None, min_length=1, max_length=MAX_QUESTIONS, description="Take these; nothing is made."
    )


class QuestionJudgement(BaseModel):
    """`open` takes back what was said before."""

    model_config = ConfigDict(extra="forbid")

    judgement: Judgement
    corrected: ExpectedAnswer | None = Field(None, description="In place of what was made, of one that is confirmed.")

    @model_validator(mode="after")
    def _of_confirmed(self) -> Self:
        if self.corrected is not None and self.judgement != "confirmed":
            raise ValueError("what is `corrected` is `confirmed`: send that as the judgement, or leave `corrected` out")
        return self


class GroundTruthQuestion(MadeQuestion):
    """As it counts: with its correction, if there is one."""

    id: str
    collection: str
    judgement: Judgement
    made: ExpectedAnswer | None = Field(None, description="As it was made, where a person has corrected it.")


class GroundTruthPage(BaseModel):
    """Those last made or judged first. `counts` are of all that the collection has, whatever is listed."""

    questions: list[GroundTruthQuestion]
    counts: dict[Judgement, int]
    next_cursor: str | None = None


class GroundTruthAdded(BaseModel):
    collection: str
    added: int = Field(description="Those that were not there yet.")
