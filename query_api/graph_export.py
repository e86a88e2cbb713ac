"""The graph of a collection as a file: what documents say, and what people made.

GraphML (Brandes et al. 2002) for graph programs, a JSON object a line, or a zip of CSV with scripts that load it into
Neo4j and Kùzu. Nodes come before edges, each end of an edge is among the nodes, and nothing but the stated facts, the
values in them and what names the rest is held in memory while it is written. What ends a fact and is not an entity,
such as a date or a state, is a node of the kind `value`. What was imported is what it was where it was exported
(`schemas.graph_files`), whatever documents say of it by now.
"""

import csv
import io
import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import chain, islice
from typing import IO, Any, cast

import numpy as np
from lxml import etree

from indexer.read.rows import ChunkRow
from query_api.entities.catalogue import EntityCatalogue
from query_api.index.graph.builder import CHUNK_EDGE_KINDS
from query_api.index.graph.edges import rows_of
from query_api.index.graph.explorer import BOTH_WAYS, Explorer
from query_api.index.graph.hand_made_relations import End, made_nodes, made_relations
from query_api.index.graph.identifiers import entity_keys_of, key_of
from query_api.index.graph.typed_mentions import typed_mentions_in_passages
from query_api.index.graph.view import GraphView
from query_api.query.evidence_sentences import sentence_of_fact
from schemas.graph_edits import EDGE, NODE, EditKind
from schemas.graph_files import ENDS, FIELDS, HAND_MADE, GraphItem, GraphSummary, exported
from schemas.ids import entity_id, normalise_name
from schemas.predicates import fact_strength, predicate_strength

PART_BYTES = 64 * 1024
READ_AT_ONCE = 100
MAX_CHUNKS = 200  # of a fact, that are named
NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
SCRIPTS = ("kuzu.cypher", "neo4j.cypher")

Stated = tuple[int, str, str]  # in a chunk, with the surfaces of subject and object


@dataclass(eq=False)
class GraphExport:
    """One collection of a view, with its catalogue. `texts` reads those of hand-made nodes by the numbers of their
    documents, `chunks` those of chunks by their ids; they may block. `summary` is of what was written so far."""

    view: GraphView
    catalogue: EntityCatalogue
    collection: str
    texts: Callable[[Iterable[int]], Mapping[int, str]]
    chunks: Callable[[Iterable[str]], Mapping[str, ChunkRow]] = lambda _: {}

    def __post_init__(self) -> None:
        self._explorer = Explorer(self.view, lambda _: {})
        self._row_of = dict(zip(self.catalogue.keys.tolist(), self.catalogue.groups.tolist(), strict=True))
        of_collection = [
            number
            for number in self.view.live_documents().tolist()
            if self.view.document_key(number).collection == self.collection
        ]
        numbers = np.array(of_collection, dtype=np.int64)
        self._nodes = sorted(made_nodes(self.view.segments, numbers), key=lambda node: node.name)
        self._relations = sorted(made_relations(self.view.segments, numbers), key=lambda each: each.name)
        self._fields = {
            node.document: exported(
                {"label": node.label, "type": node.type, "aliases": list(node.aliases)}, node.attributes
            )
            for node in self._nodes
        }
        aside = {each.document for each in self._relations}
        aside |= {number for number, fields in self._fields.items() if fields["kind"] != HAND_MADE}
        self._documents = [number for number in of_collection if number not in aside]
        self._seen: set[int] = set()
        self.summary = GraphSummary(self.collection)

    @property
    def is_empty(self) -> bool:
        return not (self._documents or self._nodes)

    def items(self, side: EditKind) -> Iterator[GraphItem]:
        """All nodes or all edges. What was imported comes before what documents say by now."""
        is_node = side == NODE
        yield from self._once(self._made_nodes() if is_node else self._made_edges())
        yield from self._once(self._nodes_of_documents() if is_node else self._edges_of_documents())

    def _once(self, items: Iterable[GraphItem]) -> Iterator[GraphItem]:
        for item in items:
            of_edge = item.side == EDGE and (item.kind, item.fields.get("label"), item.fields.get("id"))
            name = hash((*item.ends, of_edge))
            if name not in self._seen:
                self._seen.add(name)
                self.summary.add(item)
                yield item

    def _made_nodes(self) -> Iterator[GraphItem]:
        for part in _batches(self._nodes):
            texts = self.texts(node.document for node in part)
            for node in part:
                fields = {**self._fields[node.document], "text": texts.get(node.document)}
                yield GraphItem.of([fields.pop("id", node.name)], fields)

    def _nodes_of_documents(self) -> Iterator[GraphItem]:
        for number in self._documents:
            here = self._document_id(number)
            if number not in self._fields:
                yield GraphItem.of([here], {"kind": "document", "label": self.view.title(number)})
            for ordinal, chunk in enumerate(self._chunks_of(number).values()):
                yield GraphItem.of([chunk], {"kind": "chunk", "document": here, "ordinal": ordinal})
        for identifier, label in self._values.values():
            yield GraphItem.of([identifier], {"kind": "value", "label": label})
        for row in self.catalogue.rows_in(self.collection).tolist():
            entity = self.catalogue[row]
            several = self.view.entity_names(entity.members) if len(entity.members) > 1 else {}
            names = {entity.name, *(name for _, name in several.values())}
            fields = {"kind": "entity", "label": entity.label, "type": entity.type, "mentions": entity.mentions}
            aliases = sorted(names - {normalise_name(entity.label)})
            yield GraphItem.of([str(self._id_of(entity.members[0]))], {**fields, "aliases": aliases})

    def _made_edges(self) -> Iterator[GraphItem]:
        for relation in self._relations:
            ends = [self._exported_as(each) for each in (relation.source, relation.target) if each is not None]
            found = [each for each in ends if each is not None]
            if len(found) == 2:
                shown = {"label": relation.predicate, "weight": round(relation.weight, 6)}
                fields = exported(shown, relation.attributes)
                yield GraphItem.of(found, {**fields, "id": relation.name} if fields["kind"] == HAND_MADE else fields)

    def _edges_of_documents(self) -> Iterator[GraphItem]:
        facts: defaultdict[tuple[str, str, str], list[Stated]] = defaultdict(list)
        for number in self._documents:
            here = self._document_id(number)
            passages = np.array(self.view.passages_of_document(number), dtype=np.int64)
            mentioned: Counter[str] = Counter()
            for mention in typed_mentions_in_passages(self.view.segments, passages):
                mentioned[str(self._id_of(mention.entity))] += mention.times
            for identifier, times in sorted(mentioned.items()):
                yield GraphItem.of([here, identifier], {"kind": "mentions", "count": times})
            for linked in np.unique(self.view.links_from(passages).document).tolist():
                if linked != number and self.view.document_key(linked).collection == self.collection:
                    yield GraphItem.of([here, self._document_id(linked)], {"kind": "links_to"})
            yield from self._explained(here, number)
            yield from self._chunk_edges(here, self._chunks_of(number))
        for (subject, predicate, target), stated in self._stated.items():
            fact = str(self._id_of(subject)), predicate, str(self._id_of(target))
            if fact[0] != fact[2]:  # of names that people merged
                facts[fact] += stated
        for part in _batches(sorted(facts.items())):
            yield from self._facts(part)

    def _explained(self, here: str, document: int) -> Iterator[GraphItem]:
        about = self.view.about_of(np.array([document]), least=0.0)
        for entity, weight in sorted(rows_of(about.entity, about.weight)):
            if entity in self._row_of:
                fields = {"kind": "explains", "weight": round(weight, 3)}
                yield GraphItem.of([here, str(self._id_of(entity))], fields)

    def _chunk_edges(self, document: str, chunks: Mapping[int, str]) -> Iterator[GraphItem]:
        for chunk in chunks.values():
            yield GraphItem.of([document, chunk], {"kind": "has_chunk"})
        around = self.view.chunk_edges(np.array([*chunks], dtype=np.int64))
        rows = rows_of(around.chunk, around.other, around.kind, around.weight)
        for one, other, kind, weight in sorted(set(rows)):  # each is there from both of its ends
            if CHUNK_EDGE_KINDS[kind] in BOTH_WAYS or one < other:
                fields = {"kind": CHUNK_EDGE_KINDS[kind], "weight": round(weight, 3)}
                yield GraphItem.of([chunks[one], chunks[other]], fields)

    def _facts(self, facts: Sequence[tuple[tuple[str, str, str], list[Stated]]]) -> Iterator[GraphItem]:
        """Each with the chunks that state it, and the sentence of the first of them."""
        named = [
            sorted((self.view.chunk_id(chunk), *map(normalise_name, ends)) for chunk, *ends in stated)
            for _, stated in facts
        ]
        texts = self.chunks([stated[0][0] for stated in named])
        for ((source, predicate, target), _), stated in zip(facts, named, strict=True):
            first, *ends = stated[0]
            fields = {
                "kind": "states",
                "label": predicate,
                "weight": fact_strength(predicate_strength(predicate), len(stated)),
                "count": len(stated),
                "note": sentence_of_fact(texts[first].text, predicate, *ends) if first in texts else None,
                "chunks": [chunk for chunk, *_ in stated[:MAX_CHUNKS]],
            }
            yield GraphItem.of([source, target], fields)

    def _chunks_of(self, document: int) -> dict[int, str]:
        """{number: id}"""
        passages = self.view.passages_of_document(document)
        chunks = (chunk for passage in passages for chunk in self.view.chunks_of_passage(passage))
        return {chunk: self.view.chunk_id(chunk) for chunk in chunks}

    def _document_id(self, document: int) -> str:
        return self._explorer.node_id(self._explorer.ref_of(End("document", document)))

    @cached_property
    def _stated(self) -> dict[tuple[int, str, int], list[Stated]]:
        """By the keys of the ends and the predicate."""
        found: dict[tuple[int, str, int], list[Stated]] = defaultdict(list)
        for number in self._documents:
            passages = np.array(self.view.passages_of_document(number), dtype=np.int64)
            for statement in self.view.statements_in(passages):
                ends = {part.name: part for part in statement.roles}
                if "subject" in ends and "object" in ends:
                    subject, target = ends["subject"], ends["object"]
                    stated = statement.chunk, subject.surface, target.surface
                    found[subject.entity, statement.predicate, target.entity].append(stated)
        return found

    def _id_of(self, key: int) -> str | None:
        """Of an entity or a value, as what was imported has it; None for a name that is neither."""
        row = self._row_of.get(key)
        entity = None if row is None else self.catalogue[row]
        same = (self._named[each] for each in (entity.members if entity else [key]) if each in self._named)
        return next(same, entity.id if entity else self._values.get(key, (None, ""))[0])

    @cached_property
    def _named(self) -> dict[int, str]:
        """{key of a name here: id} of imported entities and values."""
        found: dict[int, str] = {}
        for fields in self._fields.values():
            if fields["kind"] in ("entity", "value"):
                names = map(normalise_name, [fields.get("label") or "", *fields.get("aliases", ())])
                found |= dict.fromkeys([key_of(fields["id"]), *entity_keys_of(self.collection, names)], fields["id"])
        return found

    @cached_property
    def _values(self) -> dict[int, tuple[str, str]]:
        """{key: (id, label)} of the ends of facts that are not entities."""
        labels: dict[int, str] = {}
        for (subject, _, target), stated in self._stated.items():
            for at, key in ((1, subject), (2, target)):
                if key not in self._row_of:
                    surfaces = [str(each[at]) for each in stated]
                    labels[key] = min([labels.get(key, surfaces[0]), *surfaces])
        names = self.view.entity_names(list(labels))
        return {key: (self._named.get(key) or entity_id(*names[key]), label) for key, label in labels.items()}

    def _exported_as(self, end: End) -> str | None:
        if end.kind == "entity":
            return self._id_of(end.at)
        fields = self._fields.get(end.at, {}) if end.kind == "document" else {}
        return fields.get("id") or self._explorer.node_id(self._explorer.ref_of(end))


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(items)
    while part := list(islice(left, READ_AT_ONCE)):
        yield part


class _Outlet:
    """What was written so far, to be taken in parts."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        self._size += len(data)
        return len(data)

    def flush(self) -> None:
        """There is nowhere to flush it to."""

    def part(self, at_least: int = PART_BYTES) -> Iterator[bytes]:
        """Once it is so much."""
        if self._size >= at_least:
            yield b"".join(self._written)
            self._written, self._size = [], 0


def json_lines(export: GraphExport) -> Iterator[bytes]:
    """`{"node": id, …}` and `{"edge": [source, target], …}`, each on a line, between two of the `graph`."""
    outlet = _Outlet()
    lines = (item.line for side in (NODE, EDGE) for item in export.items(side))
    for line in chain([{"graph": {"collection": export.summary.collection}}], lines):
        outlet.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        yield from outlet.part()
    outlet.write(json.dumps({"graph": export.summary.line}).encode() + b"\n")
    yield from outlet.part(0)


def graphml(export: GraphExport) -> Iterator[bytes]:
    """A GraphML document, a node or edge a line. Lists and properties are JSON."""
    outlet = _Outlet()
    with etree.xmlfile(outlet, encoding="utf-8") as document:
        document.write_declaration()
        with document.element("graphml", xmlns=NAMESPACE):
            summary = dict.fromkeys(export.summary.line, "string")
            for side, names in (*FIELDS.items(), ("graph", summary)):
                for name, kind in names.items():
                    attributes = {"attr.name": name, "attr.type": "string" if kind == "json" else kind}
                    document.write(_element("key", {"id": f"{side}_{name}", "for": side, **attributes}, {}))
            with document.element("graph", edgedefault="directed"):
                document.write(_data("graph", "collection", export.summary.collection))
                for item in (each for side in (NODE, EDGE) for each in export.items(side)):
                    named = dict(zip(ENDS[item.side], item.ends, strict=True))
                    document.write(_element(item.side, named, item.fields))
                    yield from outlet.part()
                for name, value in list(export.summary.line.items())[1:]:
                    document.write(_data("graph", name, value))
    yield from outlet.part(0)


def _element(side: str, named: dict[str, str], fields: Mapping[str, Any]) -> Any:
    element = etree.Element(side, named)
    element.extend(_data(side, name, value) for name, value in fields.items())
    element.tail = "\n"
    return element


def _data(side: str, name: str, value: Any) -> Any:
    data = etree.Element("data", key=f"{side}_{name}")
    data.text = _text(value)
    return data


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def csv_archive(export: GraphExport) -> Iterator[bytes]:
    """A zip of `nodes.csv`, `edges.csv`, the scripts that load them, and `manifest.json`."""
    outlet = _Outlet()
    with zipfile.ZipFile(cast("IO[bytes]", outlet), "w", zipfile.ZIP_DEFLATED) as archive:
        for side, fields in FIELDS.items():
            with (
                archive.open(f"{side}s.csv", "w", force_zip64=True) as member,
                io.TextIOWrapper(member, "utf-8", "replace", "") as text,
            ):
                rows = csv.writer(text, lineterminator="\n")
                rows.writerow([*ENDS[side], *fields])
                for item in export.items(side):
                    rows.writerow([*item.ends, *(_text(item.fields.get(each, "")) for each in fields)])
                    yield from outlet.part()
        for script in SCRIPTS:
            archive.writestr(script, files(__package__).joinpath("graph_scripts", script).read_bytes())
        archive.writestr("manifest.json", json.dumps(export.summary.line))
    yield from outlet.part(0)
