"""Research: a question answered in rounds of searches, as a note with sources; and the check of a claim."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from schemas.answers import Citation
from schemas.api import WriteAccepted
from schemas.entities import EntityRef
from schemas.search import MAX_QUERY_CHARACTERS, Filter, StrictNumbers, split_list

QuestionKind = Literal["definition", "fact", "comparison", "list", "path", "temporal", "claim"]
Action = Literal["classify", "route", "check", "search", "rank", "answer", "save"]
Stopped = Literal["complete", "nothing_new", "rounds", "searches", "seconds", "overloaded"]
Verdict = Literal["verified", "contradicted", "ambiguous", "not_found"]
NOTES_COLLECTION = "research"
NOTE_URI = "urn:thalweg:research"
"""The `uri` of every saved note, by which research and checks leave notes out."""

LONGEST_CLAIM = 2_000  # characters


class ResearchRequest(StrictNumbers):
    """What to find out, where, and how much may be done for it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"q": "Where was the author of PEP 8 born?", "rounds": 2}]},
    )

    q: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARACTERS)] = Field(
        description="The question, or a claim, in plain words."
    )
    collection: str | None = Field(
        None, min_length=1, max_length=128, description="Search this collection only; else all, without saved notes."
    )
    filter: Annotated[tuple[Filter, ...], BeforeValidator(split_list), Field(max_length=16)] = Field(
        (), description="As of a search: only documents that all of these let through."
    )
    rounds: int = Field(3, ge=1, le=4, description="Rounds of searches, at most.")
    sentences: int = Field(8, ge=1, le=20, description="Sentences of the note, at most.")
    seconds: float = Field(20, ge=1, le=60, description="After which no further search is begun.")
    save: bool = Field(False, description="Publish the note as a document; needs a key that may write.")
    save_to: str = Field(
        NOTES_COLLECTION, min_length=1, max_length=128, description="The collection that it is saved in."
    )


class ResearchStep(BaseModel):
    """Frame `step`: one thing that was done."""

    number: int = Field(description="Counts the steps, from 1.")
    action: Action
    round: int = Field(0, description="Of searches; 0 before the first.")
    seconds: float
    query: str | None = Field(None, description="What was searched for.")
    retrieval_id: str | None = None
    hits: int = 0
    sentences: int = Field(0, description="That are new, of a search; of the note.")
    entities: list[str] = Field(default_factory=list, description="New names in these sentences.")
    detail: str = Field("", description="What was decided, or why it failed.")


class NoteGroup(BaseModel):
    """What one search gave to the note."""

    heading: str = Field(description="The sub-question, or what was searched for in a later round.")
    about: Literal["question", "entity"] = Field(description="`entity`: the search follows a name that was found.")
    citations: list[int] = Field(description="The numbers of its sentences.")
    retrieval_id: str


class ClaimEvidence(BaseModel):
    """A sentence that speaks for a claim, or against it."""

    stance: Literal["supports", "contradicts"]
    by: Literal["graph", "words"] = Field(
        description="`graph`: a statement of the graph; `words`: the sentence has the claim's words in their order."
    )
    claimed: str = Field("", description="What the claim has where the sentence has `stated`; else empty.")
    stated: str = ""
    predicate: str | None = Field(None, description="Of the statement.")
    subject: EntityRef | None = None
    object: EntityRef | None = None
    denied: bool = Field(False, description="Whether the sentence denies it.")
    text: str = Field(description="The sentence; of a header or a table, its chunk.")
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
    collection: str | None = Field(
        None, min_length=1, max_length=128, description="Check it by this collection only; else by all but saved notes."
    )


class ClaimCheck(BaseModel):
    claim: str
    verdict: Verdict = Field(
        description="`verified`, `contradicted`; `ambiguous` where passages disagree; `not_found` where none decides."
    )
    evidence: list[ClaimEvidence] = Field(description="What decided, at most ten.")
    read_as: list[str] = Field(description="The statements that the claim was read as, `not` before one it denies.")
    retrieval_id: str = Field(description="Of the search whose passages were compared.")


class SavedNote(WriteAccepted):
    id: str
    collection: str


class Research(BaseModel):
    """The note, and how it came about."""

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
    rounds: int = Field(description="That were begun.")
    stopped: Stopped = Field(
        description="`complete`: the question's words are all held by what was found; `nothing_new`: a round brought "
        "neither a new sentence nor a new name to search for; else the bound that was reached."
    )
    steps: list[ResearchStep]
    saved: SavedNote | None = None
