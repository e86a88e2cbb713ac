"""Entities and the paths between them, as `/v1/entities` and `/v1/paths` show them."""

from pydantic import BaseModel, Field


class EntityRef(BaseModel):
    """An entity, by its id, with the name it is shown by. `id` is null for a name that is not an entity, such as
    a status."""

    id: str | None = Field(None, examples=["0e3f6a7d4f1c2b5a9d8e7c6b5a493827"])
    label: str = Field(examples=["Harbor"])
    type: str | None = Field(None, examples=["product"])


class EntitySummary(BaseModel):
    """Names that are one, in a collection: its commonest name, and the type that most of its mentions have."""

    id: str
    collection: str
    label: str = Field(description="As it is written most often, or as people named it.")
    type: str
    confidence: float = Field(description="Of the type: the mean over its mentions, from 0 to 1.")
    salience: float = Field(
        description="How sure it is that the documents are about it: 1 - exp(-the sum of its mentions' confidences)."
    )
    mentions: int
    names: int = Field(description="How many different names are this entity.")


class EntityPage(BaseModel):
    """Entities, the most salient first; by relevance for `q`."""

    entities: list[EntitySummary]
    next_cursor: str | None = None
    total: int = Field(description="On all pages.")


class Evidence(BaseModel):
    """A sentence that states it, and where it is. `sentence` is null where the fact is of a header or a table."""

    sentence: str | None
    chunk_id: str
    collection: str
    document_id: str
    title: str
    version: int | None = Field(None, description="Of the document, as its producer gave it.")
    position: str | None = Field(
        None,
        description="Of the record it was made from, in the documents topic: partition:offset.",
        examples=["3:1042"],
    )
    stated_at: str | None = Field(None, description="RFC 3339 time of that record.")


class EntityDefinition(BaseModel):
    text: str
    source: Evidence


class Alias(BaseModel):
    surface: str
    mentions: int


class StatementPart(BaseModel):
    """What is in a statement in a role other than subject and object, such as a time."""

    role: str
    entity: EntityRef


class StatementDetail(BaseModel):
    """A fact and its evidence. `strength` is that of the predicate, or of a hand-made edge, .1 more for each further
    place or edge that states it, at most 1."""

    subject: EntityRef
    predicate: str
    object: EntityRef
    further: list[StatementPart] = Field(default_factory=list)
    strength: float
    stated: int = Field(description="In how many places.")
    by_people: list[str] = Field(default_factory=list, description="The ids of hand-made edges that state it too.")
    evidence: list[Evidence] = Field(description="A few of them.")


class AnswerNode(EntityRef):
    """An entity or hand-made node that the question names, or that hits are about."""

    collection: str
    named: bool = Field(description="By the question.")
    hits: int = Field(description="How many of the page mention it, or are of a document that is called so.")
    centrality: float | None = Field(description="PageRank, 1 for the most central entity; null for a hand-made node.")


class AnswerSubgraph(BaseModel):
    """What an answer is about, and the facts that join it."""

    entities: list[AnswerNode] = Field(description="What is named, then what most hits are about; 20 at most.")
    relations: list[StatementDetail] = Field(description="Between two of them, the strongest first; 40 at most.")
    truncated: bool = Field(description="There is more than is shown.")


class StatementSample(BaseModel):
    """Facts at random, the strongest first. `as_of` is the time of the snapshot that was read, where one was asked."""

    statements: list[StatementDetail]
    graph_position: int
    as_of: str | None = None


class EntityDocument(BaseModel):
    """A document that mentions the entity; `about` where it is the document's subject."""

    collection: str
    document_id: str
    title: str
    mentions: int
    about: bool = False
    relevance: float = Field(0.0, description="How much it explains the entity: .5 by a heading, 1 by its title.")


class EntityNeighbour(BaseModel):
    """Another entity that statements or chunks join with this one."""

    entity: EntityRef
    strength: float = Field(description="Of the strongest statement between them; 0 where none is.")
    predicates: list[str] = Field(default_factory=list)
    shared_chunks: int = Field(description="Chunks that mention both.")


class ConsolidatedRelation(BaseModel):
    """Another entity that the same documents treat, though no chunk mentions both and no statement joins them."""

    entity: EntityRef
    documents: int = Field(description="How many documents treat both.")
    document_ids: list[str] = Field(description="A few of them.")


class EntityDetail(EntitySummary):
    """All that the graph has of an entity, as far as the limits allow."""

    definition: EntityDefinition | None
    domain: str = Field("", description="The topic that most of its documents are filed under, else the collection.")
    prerequisites: list[EntityRef] = Field(default_factory=list, description="What it requires, or depends on.")
    parents: list[EntityRef] = Field(default_factory=list, description="What it is, or is part of.")
    subtopics: list[EntityRef] = Field(default_factory=list, description="What is one, or part, of it.")
    example: Evidence | None = Field(None, description="The first place that mentions it.")
    aliases: list[Alias]
    statements: list[StatementDetail]
    documents: list[EntityDocument]
    document_count: int
    neighbours: list[EntityNeighbour]
    consolidated: list[ConsolidatedRelation] = Field(description="At most 50 for each document.")
    truncated: bool = Field(False, description="There is more of something than is shown.")
    graph_position: int
    as_of: str | None = Field(None, description="When the snapshot that was read was made, where `as_of` was given.")
    withdrawn: list[StatementDetail] | None = Field(
        None,
        description="With `since`: what a snapshot from then states and no document states now. Null where none as old "
        "is kept.",
    )


class PathStep(BaseModel):
    """From one entity to the next: by a statement, or as one chunk mentions both (`mentioned_with`)."""

    source: EntityRef
    predicate: str
    target: EntityRef
    inverse: bool = Field(False, description="The statement leads the other way: its subject is the target.")
    strength: float
    evidence: Evidence | None


class EntityPath(BaseModel):
    """`strength` is the product of the steps'."""

    strength: float
    steps: list[PathStep]


class EntityPaths(BaseModel):
    """Without a `target`, each path leads to another entity."""

    collection: str
    source: EntityRef | EntitySummary
    target: EntitySummary | None
    paths: list[EntityPath] = Field(description="The strongest first; empty where there is none of `max_steps`.")
    truncated: bool = Field(False, description="The search ended at its bound: there may be further paths.")
    graph_position: int


class NodePathStep(BaseModel):
    """From one node to the next, over an edge of this kind: `predicate` is its label, or its kind."""

    source: EntityRef
    predicate: str
    target: EntityRef
    kind: str
    inverse: bool = Field(False, description="The edge leads the other way, from `target` to `source`.")
    strength: float
    evidence: Evidence | None = None


class NodePath(BaseModel):
    """`strength` is the product of the steps'."""

    strength: float
    steps: list[NodePathStep]


class NodePaths(BaseModel):
    """Paths where an end is not an entity. `type` of an end or a node is its kind where it has no other."""

    collection: str = Field(description="Of the source.")
    source: EntityRef
    target: EntityRef
    paths: list[NodePath] = Field(description="The shortest first; empty where there is none of `max_steps`.")
    truncated: bool = Field(False, description="The search ended at its bound: there may be further paths.")
    graph_position: int
