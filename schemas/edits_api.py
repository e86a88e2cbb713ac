"""The models of the HTTP interface for people's edits of the graph: nodes, edges, reviews, merges, renamings."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.choices import ReviewKind, ReviewState
from schemas.entities import StatementDetail
from schemas.graph_edits import By, EdgeEdit, GraphChoice, Name, NodeEdit, TypeName

COLLECTION_PATTERN = r"^[^/\x00-\x1f\x7f]+$"


class InCollection(BaseModel):
    """A body that may name its collection."""

    collection: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        pattern=COLLECTION_PATTERN,
        description="When left out: the one that holds what is named; of what is made, the only one there is.",
    )


class NodeCreation(NodeEdit, InCollection):
    """A node to make; without an `id` it gets one."""

    id: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        description="Letters, digits and `._:@-`, beginning with a letter or digit; not 32 hex digits.",
        examples=["team-petrel"],
    )


class EdgeCreation(EdgeEdit, InCollection):
    """An edge to make; without an `id` it gets one. An end may also be a document's id or an entity's name in the
    collection."""

    id: str | None = Field(None, min_length=1, max_length=128, description="As of a node.", examples=["petrel-owns"])


class HandMadeNode(NodeEdit):
    """A node that people made. `position` is that of its record in the log."""

    id: str
    collection: str
    position: str


class HandMadeEdge(EdgeEdit):
    """An edge that people made."""

    id: str
    collection: str
    position: str
    missing: list[Literal["source", "target"]] = Field(
        default_factory=list, description="Ends that are not there (yet, or any more); the edge is not drawn meanwhile."
    )


class NodePage(BaseModel):
    """In the order of their ids."""

    nodes: list[HandMadeNode]
    next_cursor: str | None = None
    total: int = Field(description="On all pages.")


class EdgePage(BaseModel):
    """In the order of their ids."""

    edges: list[HandMadeEdge]
    next_cursor: str | None = None
    total: int = Field(description="On all pages.")


class EditAccepted(BaseModel):
    """The edit is in the log."""

    id: str
    collection: str
    position: str = Field(
        description="Of its record: of a node or an edge on the documents topic, else on the curation topic.",
        examples=["0:3"],
    )
    note: str | None = Field(None, description="What to know about it, as that questions do not find a name.")
    token: str | None = Field(
        None, description="Of a node or an edge: read or search with `after` set to it.", examples=["3:1042@5f3a9c1e"]
    )


class SchemaViolation(BaseModel):
    """Statements of documents that an edit would not be allowed to make: for their predicate, the type of an end, or
    since they lead back to where they began."""

    what: Literal["predicate", "source", "target", "cycle"]
    predicate: str
    type: str | None = Field(None, description="Of the end.")
    statements: int
    examples: list[StatementDetail]


class CollectionGraph(BaseModel):
    """What hand-made nodes and edges of a collection may be from now on."""

    collection: str
    chosen: GraphChoice = Field(description="What was chosen for this collection; null for anything.")
    position: str | None = Field(None, description="Position of the choice on the curation topic; null for none.")
    violations: list[SchemaViolation] = Field(
        default_factory=list, description="What documents state against it, the most first. It stays in the graph."
    )


class ReviewedEntity(BaseModel):
    id: str
    name: str
    type: str
    mentions: int


class Review(BaseModel):
    """Entities that may be one, or statements of different documents that contradict each other or of which one says
    more; and what people decided. `score` is in (0, 1]: how similar the names are, how sure the statements."""

    id: str
    collection: str
    kind: ReviewKind = "duplicate"
    state: ReviewState
    entities: list[ReviewedEntity]
    about: str | None = Field(
        None, description="What the statements say: a predicate, `not` and one, or one and `cycle`.", examples=["owner"]
    )
    statements: list[StatementDetail] = Field(
        default_factory=list, description="That contradict each other, or name what may be one; the newest last."
    )
    score: float | None = None
    reason: str | None = None
    name: str | None = Field(None, description="Of a merge: the name of the merged entity.")
    by: By = None
    position: str | None = Field(None, description="Of the decision, on the curation topic.")
    overruled: bool = Field(False, description="Whether newer decisions leave it without effect, in part at least.")


class ReviewPage(BaseModel):
    """Open ones first, the best score first, enhancements last; then decided ones, the newest first."""

    reviews: list[Review]
    next_cursor: str | None = None
    total: int = Field(description="On all pages.")


class ReviewDecision(InCollection):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    decision: Literal["accept", "reject", "undo"] = Field(
        description="`accept`: the two are one, or the statements do not go together; `reject`: they are two, or both "
        "hold; `undo` takes back a decision, merge or split."
    )
    by: By = None


class MergeOrder(InCollection):
    """Entities that are one, by id or by name in the collection."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    entities: list[str] = Field(min_length=2, max_length=100)
    name: Name | None = Field(None, description="How the one is called; its commonest surface where it is left out.")
    by: By = None


class EntityChange(InCollection):
    """All that people want of an entity: what is left out is as the documents have it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name | None = None
    type: TypeName | None = None
    split: bool = Field(
        False, description="Whether it is kept apart from all it was merged with before, by its name or by people."
    )
    by: By = None
