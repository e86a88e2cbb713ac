"""The graph of a collection as a file: documents, entities and hand-made nodes, with what joins them.

GraphML (Brandes et al. 2002) for graph programs, or a JSON object a line. Nodes come before edges, each end of an edge
is among the nodes, and nothing but the joined facts is held in memory while it is written.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.facts import STRENGTH_STEP
from query_api.index.curation import Curation
from query_api.index.graph.explorer import Explorer, NodeRef
from query_api.index.graph.typed_mentions import typed_mentions_in_passages
from query_api.index.graph.view import GraphView
from schemas.predicates import predicate_strength

PART_BYTES = 64 * 1024
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
    """One collection of a view, with its catalogue and what people made."""

    def __init__(self, view: GraphView, catalogue: EntityCatalogue, curation: Curation, collection: str) -> None:
        self._view = view
        self._catalogue = catalogue
        self._edits = curation.of(collection)
        self._explorer = Explorer(view, lambda _: {}, curation)
        self._collection = collection
        self._row_of = dict(zip(catalogue.keys.tolist(), catalogue.groups.tolist(), strict=True))
        self._documents = [
            number for number in view.live_documents().tolist() if view.document_key(number).collection == collection
        ]

    @property
    def is_empty(self) -> bool:
        return not self._documents and not self._edits.nodes

    def nodes(self) -> Iterator[ExportedNode]:
        for number in self._documents:
            title = self._view.title(number)
            yield ExportedNode(str(self._view.document_key(number)), {"kind": "document", "label": title}, {})
        for row in self._catalogue.rows_in(self._collection).tolist():
            entity = self._catalogue[row]
            fields = {"kind": "entity", "label": entity.label, "type": entity.type, "mentions": entity.mentions}
            yield ExportedNode(entity.id, fields, {})
        for identifier, (node, _) in sorted(self._edits.nodes.items()):
            fields = {"kind": "hand_made", "label": node.label, "type": node.type, "text": node.text}
            yield ExportedNode(identifier, fields, dict(node.properties))
        for chunk in dict.fromkeys(end for *_, ends in self._made() for end in ends if self._is_chunk(end)):
            yield ExportedNode(chunk, {"kind": "chunk", "label": chunk}, {})

    def edges(self) -> Iterator[ExportedEdge]:
        facts: Counter[tuple[int, str, int]] = Counter()
        for number in self._documents:
            here = str(self._view.document_key(number))
            passages = np.array(self._view.passages_of_document(number), dtype=np.int64)
            mentioned: Counter[int] = Counter()
            for mention in typed_mentions_in_passages(self._view.segments, passages):
                mentioned[self._row_of[mention.entity]] += mention.times
            for row, times in sorted(mentioned.items()):
                yield ExportedEdge(here, self._catalogue[row].id, {"kind": "mentions", "count": times}, {})
            links = self._view.links_from(passages)
            for target in np.unique(links.document).tolist():
                key = self._view.document_key(target)
                if key.collection == self._collection:
                    yield ExportedEdge(here, str(key), {"kind": "links_to"}, {})
            facts.update(self._stated(passages))
        for (source, predicate, target), stated in sorted(facts.items()):
            strength = round(min(1.0, predicate_strength(predicate) + STRENGTH_STEP * (stated - 1)), 3)
            fields = {"kind": "states", "label": predicate, "weight": strength, "count": stated}
            yield ExportedEdge(self._catalogue[source].id, self._catalogue[target].id, fields, {})
        for identifier, (source_id, target_id) in self._made():
            edge = self._edits.edges[identifier].edit
            fields = {"kind": "hand_made", "label": edge.predicate, "weight": edge.weight, "note": edge.note}
            yield ExportedEdge(source_id, target_id, fields, dict(edge.properties))

    def _stated(self, passages: Any) -> Iterator[tuple[int, str, int]]:
        """(row, predicate, row) of the statements whose subject and object are entities."""
        for statement in self._view.statements_in(passages):
            ends = {part.name: self._row_of.get(part.entity) for part in statement.roles}
            subject, target = ends.get("subject"), ends.get("object")
            if subject is not None and target is not None and subject != target:
                yield subject, statement.predicate, target

    def _made(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """The hand-made edges whose ends are there, with the ids of the nodes that these are exported as."""
        for identifier, (edge, _) in sorted(self._edits.edges.items()):
            ends = [self._explorer.find(each, self._collection) for each in (edge.source, edge.target)]
            names = [self._exported_as(each) for each in ends if each is not None]
            if len(names) == 2 and None not in names:
                yield identifier, (str(names[0]), str(names[1]))

    def _exported_as(self, ref: NodeRef) -> str | None:
        """None for a name that is no entity."""
        if ref.kind != "entity":
            return self._explorer.node_id(ref)
        row = self._row_of.get(ref.at)
        return None if row is None else self._catalogue[row].id

    def _is_chunk(self, identifier: str) -> bool:
        found = self._explorer.find(identifier, self._collection)
        return found is not None and found.kind == "chunk"


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
