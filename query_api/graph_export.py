"""The graph of a collection as a file: documents, entities and hand-made nodes, with what joins them.

GraphML (Brandes et al. 2002) for graph programs, or a JSON object a line. Nodes come before edges, each end of an edge
is among the nodes, and nothing but the joined facts and the values in them is held in memory while it is written. What
ends a fact and is no entity, such as a date or a state, is a node of the kind `value`.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from query_api.entities.catalogue import EntityCatalogue
from query_api.index.graph.edges import Role
from query_api.index.graph.explorer import Explorer, NodeRef
from query_api.index.graph.hand_made_relations import End, MadeRelation, made_nodes, made_relations
from query_api.index.graph.typed_mentions import typed_mentions_in_passages
from query_api.index.graph.view import GraphView
from schemas.graph_delta import decode_attributes
from schemas.ids import entity_id
from schemas.predicates import STRENGTH_STEP, predicate_strength

PART_BYTES = 64 * 1024
TEXTS_AT_ONCE = 100
NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
NODE_FIELDS = {"kind": "string", "label": "string", "type": "string", "mentions": "long", "text": "string"}
EDGE_FIELDS = {"kind": "string", "label": "string", "weight": "double", "count": "long", "note": "string"}

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ExportedNode(NamedTuple):
    """`fields` of NODE_FIELDS; `properties` as people gave them."""

    id: str
    fields: dict[str, Any]
    properties: dict[str, Any]


class ExportedEdge(NamedTuple):
    """`fields` of EDGE_FIELDS: `count` is how often a document mentions an entity, or how often a fact is stated."""

    source: str
    target: str
    fields: dict[str, Any]
    properties: dict[str, Any]


class GraphExport:
    """One collection of a view, with its catalogue. `texts` reads those of hand-made nodes by the numbers of their
    documents; it may block."""

    def __init__(
        self,
        view: GraphView,
        catalogue: EntityCatalogue,
        collection: str,
        texts: Callable[[Iterable[int]], Mapping[int, str]],
    ) -> None:
        self._view = view
        self._catalogue = catalogue
        self._texts = texts
        self._explorer = Explorer(view, lambda _: {})
        self._collection = collection
        self._row_of = dict(zip(catalogue.keys.tolist(), catalogue.groups.tolist(), strict=True))
        of_collection = [
            number for number in view.live_documents().tolist() if view.document_key(number).collection == collection
        ]
        numbers = np.array(of_collection, dtype=np.int64)
        self._nodes = {node.document: node for node in made_nodes(view.segments, numbers)}
        self._relations = sorted(made_relations(view.segments, numbers), key=lambda each: each.name)
        said = {each.document for each in self._relations}
        self._documents = [number for number in of_collection if number not in said]

    @property
    def is_empty(self) -> bool:
        return not self._documents

    def nodes(self) -> Iterator[ExportedNode]:
        for number in self._documents:
            if number not in self._nodes:
                title = self._view.title(number)
                yield ExportedNode(self._document_id(number), {"kind": "document", "label": title}, {})
        for identifier, label in self._values.values():
            yield ExportedNode(identifier, {"kind": "value", "label": label}, {})
        for row in self._catalogue.rows_in(self._collection).tolist():
            entity = self._catalogue[row]
            fields = {"kind": "entity", "label": entity.label, "type": entity.type, "mentions": entity.mentions}
            yield ExportedNode(entity.id, fields, {})
        nodes = sorted(self._nodes.values(), key=lambda node: node.name)
        for first in range(0, len(nodes), TEXTS_AT_ONCE):
            part = nodes[first : first + TEXTS_AT_ONCE]
            texts = self._texts(node.document for node in part)
            for node in part:
                fields = {
                    "kind": "hand_made",
                    "label": node.label,
                    "type": node.type,
                    "text": texts.get(node.document, ""),
                }
                yield ExportedNode(node.name, fields, _properties(node.attributes))
        ends = (end for _, joined in self._made() for end in joined if end.kind == "chunk")
        for chunk in dict.fromkeys(map(self._explorer.node_id, ends)):
            yield ExportedNode(chunk, {"kind": "chunk", "label": chunk}, {})

    def edges(self) -> Iterator[ExportedEdge]:
        facts: Counter[tuple[str, str, str]] = Counter()
        for number in self._documents:
            here = self._document_id(number)
            passages = np.array(self._view.passages_of_document(number), dtype=np.int64)
            mentioned: Counter[int] = Counter()
            for mention in typed_mentions_in_passages(self._view.segments, passages):
                mentioned[self._row_of[mention.entity]] += mention.times
            for row, times in sorted(mentioned.items()):
                yield ExportedEdge(here, self._catalogue[row].id, {"kind": "mentions", "count": times}, {})
            links = self._view.links_from(passages)
            for target in np.unique(links.document).tolist():
                if self._view.document_key(target).collection == self._collection:
                    yield ExportedEdge(here, self._document_id(target), {"kind": "links_to"}, {})
            facts.update(self._stated(passages))
        for (source, predicate, target), stated in sorted(facts.items()):
            strength = round(min(1.0, predicate_strength(predicate) + STRENGTH_STEP * (stated - 1)), 3)
            fields = {"kind": "states", "label": predicate, "weight": strength, "count": stated}
            yield ExportedEdge(source, target, fields, {})
        for relation, joined in self._made():
            attributes = decode_attributes(relation.attributes)
            fields = {
                "kind": "hand_made",
                "label": relation.predicate,
                "weight": relation.weight,
                "note": attributes.get("note"),
            }
            source_id, target_id = map(self._exported_as, joined)
            yield ExportedEdge(str(source_id), str(target_id), fields, _properties(relation.attributes))

    def _document_id(self, document: int) -> str:
        return self._explorer.node_id(self._explorer.ref_of(End("document", document)))

    def _ends(self, passages: Any) -> Iterator[tuple[str, Role, Role]]:
        """(predicate, subject, object) of the statements of some passages."""
        for statement in self._view.statements_in(passages):
            ends = {part.name: part for part in statement.roles}
            if "subject" in ends and "object" in ends:
                yield statement.predicate, ends["subject"], ends["object"]

    def _stated(self, passages: Any) -> Iterator[tuple[str, str, str]]:
        """(id, predicate, id) of each."""
        for predicate, *ends in self._ends(passages):
            source, target = (self._id_of(end.entity) for end in ends)
            if source != target:  # of names that people merged
                yield source, predicate, target

    def _id_of(self, key: int) -> str:
        row = self._row_of.get(key)
        return self._values[key][0] if row is None else self._catalogue[row].id

    @cached_property
    def _values(self) -> dict[int, tuple[str, str]]:
        """{key: (id, label)} of the ends of facts that are no entities."""
        labels: dict[int, str] = {}
        for number in self._documents:
            for _, *ends in self._ends(np.array(self._view.passages_of_document(number), dtype=np.int64)):
                for end in ends:
                    if end.entity not in self._row_of:
                        labels.setdefault(end.entity, end.surface)
        names = self._view.entity_names(list(labels))
        return {key: (entity_id(*names[key]), label) for key, label in labels.items()}

    def _made(self) -> Iterator[tuple[MadeRelation, tuple[NodeRef, NodeRef]]]:
        """The hand-made edges whose ends are there, and exported as nodes."""
        for relation in self._relations:
            if relation.source is not None and relation.target is not None:
                joined = self._explorer.ref_of(relation.source), self._explorer.ref_of(relation.target)
                if None not in map(self._exported_as, joined):
                    yield relation, joined

    def _exported_as(self, ref: NodeRef) -> str | None:
        """None for a name that is not an entity."""
        if ref.kind != "entity":
            return self._explorer.node_id(ref)
        row = self._row_of.get(ref.at)
        return None if row is None else self._catalogue[row].id


def _properties(attributes: str) -> dict[str, Any]:
    found: dict[str, Any] = decode_attributes(attributes).get("properties") or {}
    return found


def json_lines(export: GraphExport) -> Iterator[bytes]:
    """`{"node": id, …}` and `{"edge": [source, target], …}`, each on a line; what is empty is left out."""
    lines = (_line({"node": node.id}, node) for node in export.nodes())
    yield from _parts(lines)
    yield from _parts(_line({"edge": [edge.source, edge.target]}, edge) for edge in export.edges())


def _line(named: dict[str, Any], each: ExportedNode | ExportedEdge) -> bytes:
    given = {name: value for name, value in each.fields.items() if value not in ("", None)}
    properties = {"properties": each.properties} if each.properties else {}
    return json.dumps({**named, **given, **properties}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in parts of about PART_BYTES."""
    gathered, size = [], 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= PART_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)


def graphml(export: GraphExport) -> Iterator[bytes]:
    """A GraphML document. Properties are in one field, as JSON."""
    buffer = io.BytesIO()
    with etree.xmlfile(buffer, encoding="utf-8") as document:
        document.write_declaration()
        with document.element("graphml", xmlns=NAMESPACE):
            for side, names in (("node", NODE_FIELDS), ("edge", EDGE_FIELDS)):
                for name, kind in {**names, "properties": "string"}.items():
                    key = {"id": f"{side}_{name}", "for": side, "attr.name": name, "attr.type": kind}
                    document.write(etree.Element("key", key))
            with document.element("graph", edgedefault="directed"):
                for node in export.nodes():
                    document.write(_element("node", {"id": node.id}, node))
                    yield from _written(buffer)
                for edge in export.edges():
                    document.write(_element("edge", {"source": edge.source, "target": edge.target}, edge))
                    yield from _written(buffer)
    yield buffer.getvalue()


def _element(side: str, named: dict[str, str], each: ExportedNode | ExportedEdge) -> Any:
    element = etree.Element(side, {name: _plain(value) for name, value in named.items()})
    properties = {"properties": json.dumps(each.properties, ensure_ascii=False)} if each.properties else {}
    for name, value in {**each.fields, **properties}.items():
        if value not in ("", None):
            etree.SubElement(element, "data", key=f"{side}_{name}").text = _plain(str(value))
    return element


def _plain(text: str) -> str:
    """Without what XML cannot hold: control characters, lone surrogates."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _written(buffer: io.BytesIO) -> Iterator[bytes]:
    """What was written so far, once it is a part's worth."""
    if buffer.tell() >= PART_BYTES:
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
