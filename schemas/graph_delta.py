"""A document's whole contribution to the graph: ids, names and numbers, never text.

On the contributions topic it replaces everything the document contributed before. Within a contribution, sections and
chunks are referred to by their index in its own lists.
"""

from typing import Any, Literal, get_args

import msgspec


class SectionNode(msgspec.Struct, frozen=True, array_like=True):
    """A section that has content. `parent` is the index of the enclosing section in the list, or -1."""

    id: str
    title: str
    level: int
    parent: int


class ChunkNode(msgspec.Struct, frozen=True, array_like=True):
    """A child chunk; `passage_id` is its parent passage, `passage` that passage's ordinal, `section` an index."""

    id: str
    passage_id: str
    passage: int
    section: int


NAMING = 0.7


class AboutEdge(msgspec.Struct, frozen=True, array_like=True):
    """Document → entity that it explains. `weight` is in (0, 1]: from NAMING on it is a title or an alias of the
    document, 1 for the whole title; below, a concept that it defines, or has a heading for."""

    name: str
    surface: str
    weight: float


EntityType = Literal[
    "person", "organisation", "place", "time", "work", "product", "event", "identifier", "concept", "thing"
]
ENTITY_TYPES: tuple[EntityType, ...] = get_args(EntityType)
LITERAL_TYPES = frozenset(("time",))  # whose entities are values


class MentionEdge(msgspec.Struct, frozen=True, array_like=True):
    """Chunk → entity. `sentences` are document-wide sentence numbers, ascending; `count` is the number of mentions.

    `kind` is what the rules take the name for: a term, by which searches join passages; empty where they found none.
    `entity_type`, of ENTITY_TYPES, makes it a mention of a typed entity, with a confidence in (0, 1]; empty
    for what is only a term.
    """

    chunk: int
    name: str
    surface: str
    kind: str
    count: int
    sentences: list[int]
    entity_type: str = ""
    confidence: float = 0.0


class RoleEdge(msgspec.Struct, frozen=True, array_like=True):
    """Statement → entity in a role: `subject`, `object`, or a further one."""

    role: str
    name: str
    surface: str


DENIAL = "denial"


class StatementNode(msgspec.Struct, frozen=True, array_like=True):
    """A fact, anchored at the chunk that states it; or denies it, where the extractor is DENIAL. `confidence` is in
    (0, 1]."""

    id: str
    chunk: int
    predicate: str
    confidence: float
    extractor: str
    sentence: int
    roles: list[RoleEdge]


class ChunkEdge(msgspec.Struct, frozen=True, array_like=True):
    """Chunk → chunk of the same document: `next_chunk`, `similar_to`, `related_to`; `weight` is in (0, 1]."""

    kind: str
    source: int
    target: int
    weight: float


class LinkEdge(msgspec.Struct, frozen=True, array_like=True):
    """Chunk → another document (`links_to`), by that document's id in `target_collection`, arrived or not."""

    chunk: int
    target_collection: str
    target_id: str
    weight: float


class HandMadeNode(msgspec.Struct, frozen=True, array_like=True):
    """A node that people made. `name` is the id that they gave it; `attributes` is JSON of `properties` and `by`."""

    name: str
    label: str
    type: str
    aliases: list[str]
    attributes: str


class Relation(msgspec.Struct, frozen=True, array_like=True):
    """An edge that people made, between what `source` and `target` name in its collection, arrived or not: the id of a
    node, chunk or entity, or that of a document.

    `name` is the id that they gave it; `weight` is in (0, 1]; `attributes` is JSON of `note`, `properties` and `by`.
    """

    name: str
    source: str
    target: str
    predicate: str
    weight: float
    attributes: str


class Contribution(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one revision of one document puts into the graph."""

    collection: str
    document_id: str
    revision: str
    title: str
    sections: list[SectionNode]
    chunks: list[ChunkNode]
    about: list[AboutEdge]
    mentions: list[MentionEdge]
    statements: list[StatementNode]
    edges: list[ChunkEdge]
    links: list[LinkEdge]
    nodes: list[HandMadeNode] = []
    relations: list[Relation] = []


def encode_attributes(attributes: dict[str, object]) -> str:
    """Those of a node or a relation that people made."""
    return msgspec.json.encode(attributes, order="deterministic").decode()


def decode_attributes(attributes: str) -> dict[str, Any]:
    """The opposite."""
    found: dict[str, Any] = msgspec.json.decode(attributes)
    return found


def encode_contribution(contribution: Contribution) -> bytes:
    return msgspec.json.encode(contribution)


_decoder = msgspec.json.Decoder(Contribution)


def decode_contribution(value: bytes) -> Contribution:
    """Raises msgspec.DecodeError (ValueError) for bytes that are not a contribution."""
    return _decoder.decode(value)
