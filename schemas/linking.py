"""How a collection's chunks are linked by their meaning, and the order to link again what is stored."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

DOCUMENTS = "Live documents of the collection; 0 where it has none yet, null while the stores are being opened."


class LinkingChoice(BaseModel):
    """Weights and thresholds of the edges between the chunks of a document. What is left out, or null, is the default.

    A cosine c is that of two chunks' vectors.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    next_chunk: float | None = Field(None, gt=0, le=1, description="Weight of the edge to the next chunk, at c = 0.")
    next_chunk_raise: float | None = Field(
        None, ge=0, le=1, description="The share that weight grows by at c = 1, up to 1."
    )
    similar_above: float | None = Field(
        None, ge=0, le=1, description="Neighbours are `similar_to` each other where c is above this."
    )
    similar: float | None = Field(None, gt=0, le=1, description="Weight of `similar_to`: this times c.")
    related_above: float | None = Field(
        None, ge=0, le=1, description="Chunks further apart are `related_to` each other where c is above this."
    )
    related: float | None = Field(None, gt=0, le=1, description="Weight of `related_to`: this times c.")
    max_related: int | None = Field(
        None, ge=0, le=64, description="A chunk is related to at most so many, the best of each other."
    )
    similar_across: float | None = Field(
        None, gt=0, le=1, description="Weight of a passage of another document that is like one: this times c."
    )
    max_across: int | None = Field(
        None,
        ge=0,
        le=64,
        description="Searches by `graph_method=expansion` go on to so many passages of other documents, those with the "
        "highest c above `similar_above`; 0, the default, for none. They are looked up as a search goes: no `relink`.",
    )


class CollectionLinking(BaseModel):
    """How a collection's documents are linked from now on."""

    collection: str
    next_chunk: float
    next_chunk_raise: float
    similar_above: float
    similar: float
    related_above: float
    related: float
    max_related: int
    similar_across: float
    max_across: int
    chosen: LinkingChoice = Field(description="What was chosen for this collection; null where it was not.")
    position: str | None = Field(None, description="Where the choice stands on the curation topic; null for none.")
    documents: int | None = Field(None, description=DOCUMENTS)


class Relinking(BaseModel):
    """How far the linking of a collection's stored documents is. Documents that arrive meanwhile are linked anyway."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    state: Literal["ordered", "running", "done"] = "ordered"
    documents: int = Field(0, ge=0, description="Documents looked at so far.")
    of: int = Field(0, ge=0, description="Documents there are.")
    changed: int = Field(0, ge=0, description="Documents whose edges became others.")
    skipped: int = Field(
        0,
        ge=0,
        description="Documents left as they are: replaced meanwhile, or too large for the graph with new edges.",
    )


class RelinkAccepted(BaseModel):
    """The order is in the log; the worker carries it out once."""

    id: str
    position: str = Field(description="`<partition>:<offset>` on the curation topic.", examples=["0:3"])
