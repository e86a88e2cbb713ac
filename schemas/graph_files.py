"""The graph of a collection as a file: what nodes and edges hold there, the digest of all of it, and how each comes
back as a node or an edge that people made.

What documents say is made `by` IMPORT where it is imported. What such a node or edge has no place for is JSON in its
property FURTHER, from which the next export makes what it was.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import ValidationError

from schemas.curation import encode_choice
from schemas.errors import MalformedEvent
from schemas.graph_delta import decode_attributes
from schemas.graph_documents import MEDIA_TYPES, made_key, read_made
from schemas.graph_edits import EDGE, EDITS, NODE, EditKind
from schemas.ids import COMPUTED_ID, DocumentKey, digest
from schemas.predicates import predicate_strength

HAND_MADE = "hand_made"
IMPORT = "import"
FURTHER = "imported"
ENDS: dict[str, tuple[str, ...]] = {NODE: ("id",), EDGE: ("source", "target")}
FIELDS = {
    NODE: {
        "kind": "string", "label": "string", "type": "string", "mentions": "long", "text": "string", "aliases": "json",
        "document": "string", "ordinal": "long", "by": "string", "properties": "json",
    },
    EDGE: {
        "id": "string", "kind": "string", "label": "string", "weight": "double", "count": "long", "note": "string",
        "chunks": "json", "by": "string", "properties": "json",
    },
}  # fmt: skip

_PLACES = {
    NODE: {"label": "label", "type": "type", "text": "text", "aliases": "aliases"},
    EDGE: {"label": "predicate", "weight": "weight", "note": "note"},
}
_BARE = {NODE: {"label": "x"}, EDGE: {"source": "x", "target": "y", "predicate": "x"}}

_KIND = re.compile("[a-z][a-z_]{0,30}")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class GraphItem(NamedTuple):
    """A node with its id as the only end, or an edge with the ids of its source and target. `fields` are of its
    FIELDS, without those that are empty."""

    ends: tuple[str, ...]
    fields: dict[str, Any]

    @classmethod
    def of(cls, ends: Sequence[str], fields: Mapping[str, Any]) -> "GraphItem":
        """As every format can hold it: control characters and lone surrogates replaced."""
        held = {name: fields[name] for name in FIELDS[side_of(ends)] if fields.get(name) not in ("", None, [], {})}
        given = {name: plain(value) if isinstance(value, str) else value for name, value in held.items()}
        return cls(tuple(map(plain, ends)), given)

    @property
    def side(self) -> EditKind:
        return side_of(self.ends)

    @property
    def kind(self) -> str:
        return str(self.fields.get("kind", HAND_MADE))

    @property
    def line(self) -> dict[str, Any]:
        return {self.side: self.ends[0] if self.side == NODE else list(self.ends), **self.fields}


def side_of(ends: Sequence[str]) -> EditKind:
    return NODE if len(ends) == 1 else EDGE


@dataclass
class GraphSummary:
    """What a file holds. The digest is the sum of the hashes of nodes and edges, so their order does not matter; the
    number of a node's mentions is left out: it is the sum of the `count` of edges."""

    collection: str
    nodes: int = 0
    edges: int = 0
    total: int = 0

    def add(self, item: GraphItem) -> None:
        self.nodes += item.side == NODE
        self.edges += item.side == EDGE
        held = {name: value for name, value in item.line.items() if name != "mentions"}
        hashed = hashlib.sha256(json.dumps(held, sort_keys=True).encode()).digest()
        self.total = (self.total + int.from_bytes(hashed)) % 2**256

    @property
    def line(self) -> dict[str, Any]:
        return {
            "collection": self.collection, "nodes": self.nodes, "edges": self.edges, "digest": f"{self.total:064x}",
        }  # fmt: skip


def plain(text: str) -> str:
    """Without what XML cannot hold: control characters, lone surrogates."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def imported_id(kind: str, identifier: str) -> str:
    """The id of the hand-made node that a node of a file becomes."""
    if kind == HAND_MADE:
        return identifier
    return f"{kind}:{identifier if COMPUTED_ID.fullmatch(identifier) else digest(kind, identifier)}"


def imported(item: GraphItem, collection: str, ends: Sequence[str]) -> tuple[DocumentKey, bytes]:
    """The document of the node or edge that people could have made: its key and content. `ends` are what the ends of an
    edge are called there. Raises MalformedEvent."""
    side, kind, fields = item.side, item.kind, dict(item.fields)
    if not _KIND.fullmatch(kind):
        raise MalformedEvent("wrong_type", f"{kind[:80]!r} is not a kind of {side}s.")
    fields.pop("kind", None)
    if side == NODE:
        identifier = imported_id(kind, item.ends[0])
        given: dict[str, Any] = {"label": item.ends[0]}
    else:
        hashed = digest(kind, item.ends[0], fields.get("label", ""), item.ends[1])
        identifier = fields.pop("id", f"{kind}:{hashed}")
        given = {"predicate": "related_to", "source": ends[0], "target": ends[1]}
    places = _PLACES[side]
    if kind == HAND_MADE:
        given |= {places.get(name, name): value for name, value in fields.items()}
    else:
        strength = predicate_strength(fields.get("label", kind))
        further = {"kind": kind} | ({"id": item.ends[0]} if side == NODE else {})
        given |= {"label": kind, "type": kind} if side == NODE else {"predicate": kind, "weight": strength}
        given["by"] = IMPORT
        for name in {**fields, **places}:
            value = fields.get(name, "")
            if value and name in places and _fits(side, places[name], value):
                given[places[name]] = value
            elif name in fields or places[name] in given:
                further[name] = value
        given["properties"] = {FURTHER: json.dumps(further)}
    key = made_key(collection, side, identifier)
    made = read_made(key, MEDIA_TYPES[side], json.dumps(given).encode())
    return key, b"" if made is None else encode_choice(made.edit)


def _fits(side: EditKind, name: str, value: Any) -> bool:
    try:
        EDITS[side](**_BARE[side] | {name: value})
    except ValidationError:
        return False
    return True


def exported(shown: Mapping[str, Any], attributes: str) -> dict[str, Any]:
    """The fields of what a hand-made node or edge was before it was imported, with the `id` that a node had; else those
    that it has. `attributes` are JSON of its `by`, `properties` and `note`."""
    held = decode_attributes(attributes)
    try:
        further = json.loads((held.get("properties") or {}).get(FURTHER, ""))
        return {**shown, "note": held.get("note"), "kind": further["kind"], **further}
    except (ValueError, TypeError, KeyError):
        return {**shown, **held, "kind": HAND_MADE}
