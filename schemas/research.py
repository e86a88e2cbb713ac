"""Research: a question answered in rounds of searches, as a note with sources; and the check of a claim."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints

from schemas.answers import Citation
from schemas.choices import PlanForm
from schemas.search import MAX_QUERY_CHARACTERS, StrictNumbers

QuestionKind = Literal["definition", "fact", "comparison", "list", "path", "temporal", "claim"]
Stopped = Literal["complete", "nothing_new", "rounds", "searches", "seconds", "failed"]
Verdict = Literal["verified", "contradicted", "ambiguous", "not_found"]
LONGEST_CLAIM = 2_000  # characters
NOTE_URI = "urn:thalweg:research"
"""The `uri` of every saved note, by which it is no evidence for the next."""

Collection = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class ResearchRequest(StrictNumbers):
    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"q": "Where was the author of PEP 8 born?"}]}
    )

    q: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARACTERS)] = Field(
        description="The question, or a claim, in plain words."
    )
    collection: Collection | None = Field(None, description="Search this one only; else all, without saved notes.")
    rounds: int = Field(3, ge=1, le=4, description="Rounds of searches, at most.")
    sentences: int = Field(8, ge=1, le=20, description="Sentences of the note, at most.")
    plan_form: PlanForm = Field(
        "rules",
        description="What takes the question apart: `rules`, or `model`, a language model, to which it is sent. Where "
        "that fails the rules do.",
    )
    save: StrictBool = Field(False, description="Publish the note as a document; needs a key that may write.")
    save_to: Collection = Field("research", description="The collection that it is saved in.")


class ResearchStep(BaseModel):
    """Frame `step`: one thing that was done."""

    number: int = Field(description="Counts the steps, from 1.")
    action: Literal["classify", "route", "check", "search", "rank", "answer", "save"]
    round: int = Field(0, description="Of searches; 0 outside.")
    seconds: float
    query: str | None = Field(None, description="What was searched for.")
    retrieval_id: str | None = None
    sentences: int = Field(0, description="New ones, of a search; those of the note.")
    names: list[str] = Field(default_factory=list, description="New ones in these sentences.")
    detail: str = Field("", description="What was decided, or why there is nothing.")
    form: PlanForm | None = Field(None, description="What decided the kind of question.")


class NoteGroup(BaseModel):
    heading: str = Field(description="The sub-question, or the name that a later round followed.")
    citations: list[int] = Field(description="The numbers of its sentences.")
    retrieval_id: str


class ClaimEvidence(BaseModel):
    stance: Literal["supports", "contradicts"]
    statement: str | None = Field(
        None, description="Of the graph, by which it decides; null where the sentence's words do."
    )
    claimed: str | None = Field(None, description="What the claim has where this says `stated`; null for a denial.")
    stated: str | None = None
    text: str = Field(description="The sentence; its passage where a header or a table states it.")
    title: str
    document_id: str
    collection: str
    chunk_id: str
    start: int = Field(description="Where it begins in the text that was read from its document, in characters.")
    end: int = Field(description="Where it ends, exclusive.")


class ClaimRequest(StrictNumbers):
    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"claim": "PEP 8 was written by Ada Lovelace."}]}
    )

    claim: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_CLAIM)] = Field(
        description="One sentence that says that something is so, or is not."
    )
    collection: Collection | None = Field(None, description="Check it by this one only; else by all but saved notes.")


class ClaimCheck(BaseModel):
    verdict: Verdict = Field(description="`ambiguous` where sentences disagree; `not_found` where none decides.")
    evidence: list[ClaimEvidence] = Field(description="What decides, at most ten.")
    read_as: list[str] = Field(description="The statements that the claim is read as.")
    retrieval_id: str = Field(description="Of the search whose passages were compared.")


class SavedNote(BaseModel):
    id: str
    collection: str
    token: str = Field(description="Search with `after` set to it to see the note.")


class Research(BaseModel):
    """Frame `done`: the note, and how it came about."""

    research_id: str
    question: str
    kind: QuestionKind
    text: str = Field(
        description="For each group its heading and its sentences, word for word, each with the number of its source "
        "in brackets; then what remained open."
    )
    groups: list[NoteGroup]
    citations: list[Citation]
    open: list[str] = Field(description="What remained open, in sentences.")
    check: ClaimCheck | None = Field(None, description="Of a claim.")
    stopped: Stopped = Field(
        description="`complete`: what was found holds all words of the question; `nothing_new`: a round brought "
        "no new name to follow; else the bound that was reached."
    )
    steps: list[ResearchStep]
    document: dict[str, Any] = Field({}, description="The note as `POST /v1/documents` takes it, to save it later.")
    saved: SavedNote | None = None
