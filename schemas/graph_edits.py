"""What people decide about the graph: hand-made nodes and edges, which are documents (`schemas.graph_documents`), and
merges and decisions, which are records of `curation.v1`.

The key of a record is `<collection>/<kind>/<id>`, and a null value undoes it. The newest record of a key
counts, so applying the records in any order, or some of them twice, gives the same state.

- `merge`: entities that are one; the id names the merge.
- `decision`: that a pair of entities is one (`accept`) or is not (`reject`), or that an entity is separate from all it
  was put together with before (`split`); the id is computed from the entities.
- `entity`: an entity's name and type as people want them; the id is the entity's.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from schemas.errors import MalformedEvent
from schemas.ids import COMPUTED_ID, DocumentKey, digest

EditKind = Literal["node", "edge", "merge", "decision", "entity"]
NODE: EditKind = "node"
EDGE: EditKind = "edge"
MERGE: EditKind = "merge"
DECISION: EditKind = "decision"
ENTITY: EditKind = "entity"

MAX_NODE_TEXT = 200_000
MAX_MERGED = 100
EDIT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")

Model = TypeVar("Model", bound=BaseModel)

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _require_readable(name: str) -> str:
    if not any(map(str.isalnum, name)) or _CONTROL.search(name):
        raise ValueError("a name has a letter or a digit, and no control character")
    return name


EntityId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Name = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_require_readable)]
TypeName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_ -]{0,63}$", examples=["organisation"])]
Predicate = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_ -]{0,63}$", examples=["depends_on"])]
End = Annotated[str, Field(min_length=1, max_length=2_200)]
Property = (
    Annotated[str, Field(max_length=10_000)]
    | bool
    | Annotated[int, Field(ge=-(2**63), lt=2**63)]
    | Annotated[float, Field(allow_inf_nan=False)]
)
By = Annotated[str | None, Field(max_length=128, description="Who decided it, as the caller names them; not checked.")]


class Edit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    by: By = None


class Properties(BaseModel):
    """Mixed into what may carry further facts."""

    properties: dict[Annotated[str, Field(min_length=1, max_length=64)], Property] = Field(
        default_factory=dict, max_length=50, description="Further facts, by name."
    )


class NodeEdit(Edit, Properties):
    """A hand-made node, whole."""

    label: Name
    type: TypeName = "thing"
    text: str = Field(
        "",
        max_length=MAX_NODE_TEXT,
        description="Indexed as the document `node:<id>` of the collection, so that searches find it.",
    )
    aliases: list[Name] = Field(default_factory=list, max_length=50)


class EdgeEdit(Edit, Properties):
    """A hand-made edge, whole. An end is the id of a node, chunk or entity, or the key or id of a document."""

    source: End
    target: End
    predicate: Predicate
    weight: float = Field(1.0, gt=0, le=1)
    note: str = Field("", max_length=10_000, description="Why it holds, for people.")


class MergeEdit(Edit):
    """Entities that are one; `name` is how the one is called, by its commonest surface where it is null."""

    entities: list[EntityId] = Field(min_length=2, max_length=MAX_MERGED)
    name: Name | None = None

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.entities)) < len(self.entities):
            raise ValueError("an entity is merged with others, not with itself: name each once")
        return self


class DecisionEdit(Edit):
    """`accept` and `reject` are about two entities, `split` about one. With `about`, which names what documents state
    of the entities, it is about statements: that they contradict each other (or that one says more), or do not."""

    decision: Literal["accept", "reject", "split"]
    entities: list[EntityId] = Field(min_length=1, max_length=MAX_MERGED)
    about: str | None = Field(None, min_length=1, max_length=100)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        named = len(set(self.entities))
        if named < 2 if self.about and self.decision != "split" else named != (1 if self.decision == "split" else 2):
            raise ValueError("a split names one entity, the other decisions two different ones")
        return self


class EntityEdit(Edit):
    """What is null is as the documents have it."""

    name: Name | None = None
    type: TypeName | None = None


AnyEdit = NodeEdit | EdgeEdit | MergeEdit | DecisionEdit | EntityEdit
EDITS: dict[EditKind, type[AnyEdit]] = {
    NODE: NodeEdit,
    EDGE: EdgeEdit,
    MERGE: MergeEdit,
    DECISION: DecisionEdit,
    ENTITY: EntityEdit,
}


class GraphEdit(NamedTuple):
    """The content of a record; `edit` is None where it undoes that of its key."""

    collection: str
    kind: EditKind
    id: str
    edit: AnyEdit | None


def edit_key(collection: str, kind: EditKind, identifier: str) -> bytes:
    """The record key of an edit. Raises MalformedEvent for what is not a collection."""
    DocumentKey.checked(collection, identifier)
    return DocumentKey(collection, f"{kind}/{identifier}").encoded()


def decision_id(entities: Iterable[str], about: str | None = None) -> str:
    """The id of a decision about a pair, in either order, about one entity, or about what is stated of some: the same
    however it is decided."""
    return digest("decision", *([about] if about else []), *sorted(entities))


def merge_id(entities: list[str]) -> str:
    """The id of a merge that is given none: the same for the same entities in any order."""
    return digest("merge", *sorted(entities))


def is_id_of(kind: EditKind, identifier: str) -> bool:
    """Whether an edit of this kind may have this id. People name nodes, edges and merges; a name of 32 hex digits is
    left to what is computed."""
    computed = COMPUTED_ID.fullmatch(identifier) is not None
    if kind in {DECISION, ENTITY}:
        return computed
    return EDIT_ID.fullmatch(identifier) is not None and (kind == MERGE or not computed)


def read_model(form: type[Model], value: bytes, name: str) -> Model:
    """A model from JSON. Raises MalformedEvent, `not_json` or `wrong_type`, which states what of the `name` does not
    fit."""
    try:
        return form.model_validate_json(value.removeprefix(BOM_UTF8))
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        if problems[0]["type"] == "json_invalid":
            raise MalformedEvent("not_json", "The record is not JSON.") from error
        problems_text = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or 'the value'}: {problem['msg']}"
            for problem in problems[:3]
        )
        raise MalformedEvent("wrong_type", f"The {name} does not fit: {problems_text}.") from error


class PredicateEnds(BaseModel):
    """Types of nodes that a predicate may join, null for any; and whether its edges may lead back to where they
    began."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    source: list[TypeName] | None = Field(None, min_length=1, max_length=100)
    target: list[TypeName] | None = Field(None, min_length=1, max_length=100)
    acyclic: bool = Field(False, description="An edge that closes a cycle is refused.")


class Misfit(NamedTuple):
    """What of an edge is not allowed; `type` is that of an end."""

    what: Literal["predicate", "source", "target", "cycle"]
    type: str | None
    allowed: tuple[str, ...] = ()


class GraphChoice(BaseModel):
    """What hand-made nodes and edges of a collection may be; null for anything. What was made before stays."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    node_types: list[TypeName] | None = Field(None, min_length=1, max_length=100)
    predicates: dict[Predicate, PredicateEnds] | None = Field(None, min_length=1, max_length=200)

    @property
    def acyclic(self) -> list[str]:
        """The predicates without cycles."""
        return [name for name, ends in (self.predicates or {}).items() if ends.acyclic]

    def misfit(self, predicate: str, source: str | None, target: str | None) -> Misfit | None:
        """Of an edge between nodes of these types; None for a type that is not known."""
        if self.predicates is None or (ends := self.predicates.get(predicate)) is None:
            return None if self.predicates is None else Misfit("predicate", None, tuple(sorted(self.predicates)))
        if source is not None and ends.source is not None and source not in ends.source:
            return Misfit("source", source, tuple(ends.source))
        if target is not None and ends.target is not None and target not in ends.target:
            return Misfit("target", target, tuple(ends.target))
        return None


class GraphSettingsEvent(NamedTuple):
    """`choice` is None where the collection goes back to allowing anything."""

    collection: str
    choice: GraphChoice | None
