"""`thalweg graph import`: a file of a graph, checked as a whole, then as nodes and edges that people could have made.

The file is GraphML, JSON lines, or CSV in a zip or a folder, as `GET /v1/graph/export` writes it or as people do, with
nodes before the edges that join them. It is read twice, a line at a time; what is kept of it is the ids of its nodes.
"""

import csv
import io
import json
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlencode

from schemas.errors import Failure, MalformedEvent
from schemas.graph_documents import MEDIA_TYPES
from schemas.graph_edits import EDGE, NODE, GraphChoice
from schemas.graph_files import ENDS, FIELDS, HAND_MADE, GraphItem, GraphSummary, imported, imported_id, side_of
from schemas.ids import DEFAULT_COLLECTION
from schemas.progress_bars import Bars
from streams.loader.folders import Refused
from streams.loader.http_publishing import Service
from streams.loader.loader import Loaded
from streams.loader.sources import BROKEN, Record, bounded_lines, opened

MAX_REFUSED = 1_000
MAX_LINE_BYTES = 16 * 1024 * 1024
SHOWN_TOGETHER = 1_000
OF_TEXT = "chunk of a hand-made node"
CHANGED = "The file was changed while it was read; what came before is sent. Import it again when it is whole."
NODE_OR_EDGE = 'It is not {"node": id, …} or {"edge": [source, target], …} with the fields of a node or an edge.'

Read = tuple[str, GraphItem | dict[str, Any] | Refused]
"""Its place, and a node or edge, what the file says of itself, or why it is neither."""


def read_graph(path: Path) -> Iterator[Read]:
    """Everything in the file, in order. Raises Failure for what is not a file of a graph."""
    origin = str(path)
    try:
        with ExitStack() as stack:
            for origin, read in _reader_of(path, stack):
                yield origin, read
    except (*BROKEN, ValueError, KeyError, SyntaxError, RuntimeError, csv.Error, zipfile.BadZipFile) as error:
        yield origin, Refused(origin, "unreadable", f"After this the file cannot be read: {error}. Was it cut?")


def _reader_of(path: Path, stack: ExitStack) -> Iterator[Read]:
    if path.is_dir():
        return _tables(path, lambda name: (path / name).open("rb"))
    if not path.is_file():
        raise Failure(f"There is no file or folder {str(path)!r}.")
    if zipfile.is_zipfile(path):
        return _tables(path, stack.enter_context(zipfile.ZipFile(path)).open)
    begins = stack.enter_context(opened(path)).read(4_096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    content = stack.enter_context(opened(path))
    if begins in (b"<", b"{"):
        return _graphml(content, path) if begins == b"<" else _lines(content, path)
    raise Failure(
        f"{str(path)!r} is not a graph: neither GraphML, JSON lines, nor a zip (not cut) or folder with nodes.csv."
    )


def _lines(content: IO[bytes], path: Path) -> Iterator[Read]:
    for number, raw in enumerate(bounded_lines(content, MAX_LINE_BYTES), start=1):
        origin = f"{path}:{number}"
        if raw is None or raw.strip():
            yield origin, _line(origin, raw)


def _line(origin: str, raw: bytes | None) -> GraphItem | dict[str, Any] | Refused:
    try:
        held = None if raw is None else json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        return Refused(origin, "not_json", f"The line is not JSON, or was cut: {error}.")
    match held:
        case {"graph": dict(said)}:
            return said
        case {"node": str(node), **fields}:
            return _item(origin, [node], fields)
        case {"edge": [str(source), str(target)], **fields}:
            return _item(origin, [source, target], fields)
    return Refused(origin, "wrong_type", NODE_OR_EDGE)


def _graphml(content: IO[bytes], path: Path) -> Iterator[Read]:
    from lxml import etree  # which the other formats do not need

    keys: dict[str | None, str] = {}
    for _, element in etree.iterparse(content, events=("end",), resolve_entities=False, no_network=True):
        name, origin, parent = etree.QName(element).localname, f"{path}:{element.sourceline}", element.getparent()
        if name == "key":
            keys[element.get("id")] = element.get("attr.name", "")
        elif name == "data" and etree.QName(parent).localname == "graph":
            yield origin, {keys.get(element.get("key"), ""): element.text}
        elif name in ENDS:
            held = ((each.get("key", ""), each.text or "") for each in element.iterchildren("{*}data"))
            fields = {keys.get(key) or key: text for key, text in held}
            yield origin, _item(origin, [element.get(each, "") for each in ENDS[name]], fields)
            element.clear()
            while parent is not None and element.getprevious() is not None:  # what was read leaves memory
                del parent[0]


def _tables(path: Path, open_table: Callable[[str], IO[bytes]]) -> Iterator[Read]:
    try:
        with open_table("manifest.json") as manifest:
            held = json.load(manifest)
            is_object, message = isinstance(held, dict), "It is not a JSON object with what the file holds."
            yield str(path), held if is_object else Refused(f"{path}/manifest.json", "wrong_type", message)
    except (KeyError, FileNotFoundError):
        pass  # people's own tables have none
    for side, ends in ENDS.items():
        with _fields_as_long_as_lines(), open_table(name := f"{side}s.csv") as table:
            rows = csv.DictReader(io.TextIOWrapper(table, "utf-8-sig", newline=""), strict=True)
            for row in rows:
                origin = f"{path}/{name}:{rows.line_num}"
                if None in row or None in row.values():
                    yield origin, Refused(origin, "wrong_type", "It has not one value for each column. Was it cut?")
                else:
                    yield origin, _item(origin, [row.pop(each, "") for each in ends], row)


@contextmanager
def _fields_as_long_as_lines() -> Iterator[None]:
    """The limit is one of the whole process."""
    usual = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _item(origin: str, ends: Sequence[str], fields: Mapping[Any, Any]) -> GraphItem | Refused:
    """Fields of other names are properties."""
    known = FIELDS[side_of(ends)]
    given: dict[str, Any] = {}
    further: dict[str, Any] = {}
    for name, value in fields.items():
        try:
            if value not in ("", None):
                (given if name in known else further)[name] = _READ[known.get(name, "any")](value)
        except (ValueError, TypeError, OverflowError, RecursionError):
            return Refused(origin, "wrong_type", f"{name}: {str(value)[:80]!r} is not of the type {known[name]}.")
    if further and isinstance(given.setdefault("properties", {}), dict):
        given["properties"] = further | given["properties"]
    return GraphItem.of(ends, given) if all(ends) else Refused(origin, "wrong_type", NODE_OR_EDGE)


_READ: dict[str, Callable[[Any], Any]] = {
    "string": str.__str__,  # which raises TypeError for anything else
    "long": int,
    "double": float,
    "json": lambda value: json.loads(value) if isinstance(value, str) else value,
    "any": lambda value: value,
}


@dataclass(frozen=True)
class ImportedGraph(Loaded):
    """With what the file holds: `collection`, `nodes`, `edges`, `digest`."""

    graph: dict[str, Any] = field(default_factory=dict)


@dataclass
class GraphImport:
    """A file, and the collection it is for, by default the one that it names. `service` is asked what that holds and
    allows. `refused` is what does not fit, after `check`."""

    path: Path
    collection: str | None
    service: Service
    refused: list[Refused] = field(default_factory=list)

    def check(self, bars: Bars) -> GraphSummary:
        """Read all of it, up to MAX_REFUSED faults. Raises Failure for what is not a file of a graph."""
        checked = bars("checked")
        said: dict[str, Any] = {}
        summary: GraphSummary | None = None
        for origin, read in read_graph(self.path):
            if isinstance(read, dict):
                said |= read
                continue
            summary = summary or self._begin(said)
            if isinstance(read, GraphItem):
                summary.add(read)
                if (summary.nodes + summary.edges) % SHOWN_TOGETHER == 0:
                    checked.advance(SHOWN_TOGETHER)
            problems = self._problems(read, origin) if isinstance(read, GraphItem) else [read]
            self.refused += islice(problems, 1)
            if len(self.refused) == MAX_REFUSED:
                return summary
        summary = summary or self._begin(said)
        self.refused += [*self._cycles(), *self._cut(said, summary)]
        return summary

    def records(self) -> Iterator[Record]:
        """After `check`: the documents of all that it holds, without what comes with the texts of its nodes. Raises
        Failure at the end, or at the first thing that was not there, for a file that holds something else by now."""
        again = GraphSummary(self._summary.collection)
        for origin, read in read_graph(self.path):
            if isinstance(read, Refused):
                raise Failure(f"{origin}: {read.message} {CHANGED}")
            if isinstance(read, GraphItem):
                again.add(read)
                try:
                    record = None if self._is_of_text(read) else self._record(read, origin)
                except (KeyError, MalformedEvent) as error:
                    raise Failure(
                        f"{origin}: {read.line} was not there when the file was checked. {CHANGED}"
                    ) from error
                if record is not None:
                    yield record
        if again != self._summary:
            raise Failure(f"{self.path}: it held {self._summary.line}, and then {again.line}. {CHANGED}")

    def _is_of_text(self, item: GraphItem) -> bool:
        if item.kind in (HAND_MADE, "states"):
            return False
        of = item.fields.get("document", "") if item.side == NODE else item.ends[0]
        return self._nodes.get(of, ("",))[0] in (HAND_MADE, OF_TEXT)

    def _record(self, item: GraphItem, origin: str) -> Record:
        key, content = imported(item, str(self.collection), [self._name(end) for end in item.ends])
        return Record(key, content, (("content-type", MEDIA_TYPES[item.side].encode()),), origin)

    def _begin(self, said: Mapping[str, Any]) -> GraphSummary:
        self.collection = self.collection or str(said.get("collection") or DEFAULT_COLLECTION)
        named = quote(self.collection, safe="")
        self._choice = GraphChoice.model_validate(self.service.get(f"/v1/collections/{named}/graph")["chosen"])
        documents = self.service.documents(self.collection, hand_made=False)
        self._documents = {f"{self.collection}/{each['id']}" for each in documents}
        self._nodes: dict[str, tuple[str, str | None]] = {}  # kind and type; None for any type
        self._edges: set[int] = set()  # hashes of their keys
        self._ways: dict[str, dict[str, dict[str, str]]] = {}  # predicate without cycles: source: target: origin
        for predicate in self._choice.acyclic:
            self._ways[predicate] = defaultdict(dict)
            query: dict[str, Any] = {"collection": self.collection, "predicate": predicate, "limit": 1_000}
            while query.get("cursor", "") is not None:
                page = self.service.get(f"/v1/edges?{urlencode(query)}")
                for edge in page["edges"]:
                    self._ways[predicate][edge["source"]][edge["target"]] = ""
                query["cursor"] = page["next_cursor"]
        self._summary = GraphSummary(self.collection)
        return self._summary

    def _problems(self, item: GraphItem, origin: str) -> Iterator[Refused]:
        """Why it cannot be imported; each may follow from the one before."""
        yield from (self._problems_of_node if item.side == NODE else self._problems_of_edge)(item, origin)
        try:
            key = self._record(item, origin).key
        except MalformedEvent as error:
            yield Refused(origin, error.reason, str(error))
            return
        if item.kind == HAND_MADE and item.side == EDGE:
            if hash(key) in self._edges:
                message = f"The edge {key.document_id[:80]!r} is there twice: give it an id."
                yield Refused(origin, "duplicate_id", message)
            self._edges.add(hash(key))

    def _problems_of_node(self, item: GraphItem, origin: str) -> Iterator[Refused]:
        (node,), is_made = item.ends, item.kind == HAND_MADE
        node_type = item.fields.get("type", "thing") if is_made else None if item.kind == "entity" else item.kind
        kind, is_there = OF_TEXT if self._is_of_text(item) else item.kind, node in self._nodes
        self._nodes[node] = sys.intern(kind), node_type and sys.intern(node_type)
        if is_there:
            yield Refused(origin, "duplicate_id", f"The node {node[:80]!r} is in the file twice.")
        if node in self._documents:
            message = f"The document {node[:80]!r} is in the collection, and says itself what the file has of it."
            yield Refused(origin, "duplicate_id", f"{message} Import into another collection.")
        allowed = self._choice.node_types
        if is_made and allowed is not None and node_type not in allowed:
            yield _not_allowed(origin, "type", str(node_type), allowed)

    def _problems_of_edge(self, item: GraphItem, origin: str) -> Iterator[Refused]:
        for end in item.ends:
            if end not in self._nodes:
                message = f"No node {end[:80]!r} comes before this edge: every end is a node of the file."
                yield Refused(origin, "missing_end", message)
        if item.kind != HAND_MADE:
            return
        predicate = item.fields.get("label", "related_to")
        misfit = self._choice.misfit(predicate, *(self._nodes[end][1] for end in item.ends))
        if misfit is not None:
            what = "predicate" if misfit.type is None else f"type of the {misfit.what} of {predicate}"
            yield _not_allowed(origin, what, misfit.type or predicate, misfit.allowed)
        if predicate in self._ways:
            source, target = map(self._name, item.ends)
            self._ways[predicate][source][target] = origin

    def _name(self, end: str) -> str:
        kind = self._nodes[end][0]
        return imported_id(HAND_MADE if kind == OF_TEXT else kind, end)

    def _cycles(self) -> Iterator[Refused]:
        for predicate, ways in self._ways.items():
            try:
                TopologicalSorter(ways).prepare()
            except CycleError as error:
                cycle: list[str] = error.args[1][::-1]
                origins = (ways[source].get(target) for source, target in pairwise(cycle))
                message = f"The collection allows no cycle of {predicate}: {' → '.join(cycle[:20])}."
                yield Refused(next(filter(None, origins), str(self.path)), "not_allowed", message)

    def _cut(self, said: Mapping[str, Any], summary: GraphSummary) -> Iterator[Refused]:
        """An exported file says at its end what it holds."""
        held = {name: str(value) for name, value in summary.line.items() if name != "collection"}
        stated = {name: str(said.get(name, "nothing")) for name in held}
        if "collection" in said and stated != held:
            message = f"It holds {held}, and says {stated}: it was cut or changed. Where you changed it, delete what "
            yield Refused(str(self.path), "changed", f"{message}it says (`graph` lines, manifest.json) to import it.")


def _not_allowed(origin: str, what: str, given: str, allowed: Sequence[str]) -> Refused:
    message = f"The {what} {given!r} is not among those chosen for the collection: {', '.join(allowed[:20])}."
    return Refused(origin, "not_allowed", message)
