"""The frames of a search stream: `meta`, `stage`…, `hit`…; where asked for, `answer.citation` and `answer.delta`…, and
`subgraph`; then `done`, `error` or `reset`. Made by the search pipeline (`query_api/retrieval/pipeline.py`) and encoded
in `query_api/sse/`.

A document that is followed has `status`…, then `done` or `error`. Research has `step`…, `answer.citation` and
`answer.delta`…, then `done` or `error`.
"""

from typing import Literal

from pydantic import BaseModel, Field

from schemas.answers import Answer, AnswerCitation, AnswerDelta
from schemas.choices import Mode
from schemas.entities import AnswerSubgraph
from schemas.fields import Facet
from schemas.hits import Hit, SnapshotInfo, Understanding
from schemas.research import Research, ResearchStep

EVENT_STREAM = "text/event-stream"

FrameName = Literal[
    "meta", "stage", "hit", "answer.citation", "answer.delta", "subgraph", "done", "error", "reset", "status",
    "step",
]  # fmt: skip


class Meta(BaseModel):
    """The first frame: what is searched, and in which state of the stores."""

    retrieval_id: str
    query: str
    mode: Mode
    collection: str | None
    understanding: Understanding | None = None
    snapshot: SnapshotInfo
    budget_seconds: float
    cached: bool = False


class Stage(BaseModel):
    """A channel or step ended. With `error` set, its candidates are not in the answer."""

    name: str
    seconds: float
    candidates: int
    error: str | None = None


class Done(BaseModel):
    retrieval_id: str
    hits: int
    timings: dict[str, float]
    failed_channels: dict[str, str] = Field(default_factory=dict)
    next_offset: int | None
    next_cursor: str | None = None
    best_confidence: float | None = Field(
        None, description="With `min_confidence`: that of the likeliest place, shown or not; null where none is known."
    )
    answer: Answer | None = Field(None, description="With `answer`: the whole of it, also where it is refused.")
    facets: list[Facet] = Field(default_factory=list, description="With `facets`.")
    suggestion: str | None = None
    notes: list[str] = Field(default_factory=list)


class StreamError(BaseModel):
    """The last frame of a search that failed after it had begun."""

    title: str
    detail: str


class Reset(BaseModel):
    """The frames after `Last-Event-ID` are gone, or it is of another search: forget what came before; a new retrieval
    follows."""

    reason: str


SearchFrame = Meta | Stage | Hit | AnswerCitation | AnswerDelta | AnswerSubgraph | Done

PARTS: dict[FrameName, type[SearchFrame]] = {
    "meta": Meta, "stage": Stage, "hit": Hit, "answer.citation": AnswerCitation, "answer.delta": AnswerDelta,
    "subgraph": AnswerSubgraph, "done": Done,
}  # fmt: skip
"""The frames that an answer is made of."""
NAMES: dict[type[BaseModel], FrameName] = {part: name for name, part in PARTS.items()}
NAMES |= {ResearchStep: "step", Research: "done", StreamError: "error"}


def identity(name: FrameName, body: BaseModel) -> str:
    """What makes two frames of one retrieval the same, whichever run they come from."""
    if isinstance(body, Hit):
        return f"hit {body.rank}"
    if isinstance(body, Stage):
        return f"stage {body.name}"
    if isinstance(body, AnswerCitation):
        return f"{name} {body.number}"
    if isinstance(body, AnswerDelta):
        return f"{name} {body.index}"
    return name
