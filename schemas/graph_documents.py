"""Nodes and edges that people make, as documents: a media type and a form of id of their own, JSON as content."""

from typing import NamedTuple

from schemas.errors import MalformedEvent
from schemas.graph_edits import EDGE, EDITS, NODE, EdgeEdit, EditKind, NodeEdit, is_id_of, read_model
from schemas.ids import DocumentKey

NODE_TYPE = "application/vnd.thalweg.node+json"
EDGE_TYPE = "application/vnd.thalweg.edge+json"
KINDS: dict[str, EditKind] = {NODE_TYPE: NODE, EDGE_TYPE: EDGE}
MEDIA_TYPES = {kind: media_type for media_type, kind in KINDS.items()}


class Made(NamedTuple):
    """What people made: a node or an edge, whole, and the id that they gave it."""

    id: str
    edit: NodeEdit | EdgeEdit


def kind_of(content_type: str) -> EditKind | None:
    """Whether a document of this media type is a node or an edge; None for another."""
    return KINDS.get(content_type.partition(";")[0].strip().lower())


def made_key(collection: str, kind: EditKind, identifier: str) -> DocumentKey:
    """The key of a node's or an edge's document. Raises MalformedEvent for what is not a collection."""
    return DocumentKey.checked(collection, f"{kind}:{identifier}")


def made_id(kind: EditKind, document_id: str) -> str | None:
    """The id of the node or edge whose document this may be; None for what is not such a document's id."""
    prefix, _, identifier = document_id.partition(":")
    return identifier if prefix == kind and is_id_of(kind, identifier) else None


def may_be_made(document_id: str) -> bool:
    """Whether a document of this id may be a node or an edge: its media type decides."""
    return document_id.startswith(tuple(f"{kind}:" for kind in MEDIA_TYPES))


def read_made(key: DocumentKey, content_type: str, content: bytes) -> Made | None:
    """The node or edge that a document is; None for another document.

    Raises MalformedEvent: `key_mismatch` for a key that is not that of a node or an edge, `not_json`, `wrong_type`.
    """
    kind = kind_of(content_type)
    if kind is None:
        return None
    identifier = made_id(kind, key.document_id)
    if identifier is None:
        raise MalformedEvent(
            "key_mismatch",
            f"The document {key.document_id[:80]!r} is sent as {MEDIA_TYPES[kind]}, and its id is not "
            f"'{kind}:<id of the {kind}>': that has 1 to 128 letters, digits and `._:@-`, begins with a letter or "
            "digit, and is not 32 hex digits.",
        )
    edit = read_model(EDITS[kind], content, kind)
    if not isinstance(edit, NodeEdit | EdgeEdit):
        raise TypeError(f"{kind} is neither a node nor an edge.")
    if isinstance(edit, EdgeEdit) and edit.source == edit.target:
        raise MalformedEvent("wrong_type", "The edge does not fit: it joins two different ends, not one with itself.")
    return Made(identifier, edit)
