"""A graph leaves one installation as a file and enters another, which then holds the same; or is refused."""

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import kuzu
import numpy as np
import pytest
from typer.testing import CliRunner

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.linking import contribution
from indexer.read.rows import ChunkRow
from query_api.entities.catalogue import EntityCatalogues
from query_api.graph_export import SCRIPTS, GraphExport, csv_archive, graphml, json_lines
from query_api.index.curation_follower import Curation
from query_api.index.graph.view import GraphView
from schemas.errors import Failure
from schemas.events import DocumentUpsert, decode_document_event
from schemas.graph_documents import MEDIA_TYPES
from schemas.graph_edits import EDGE, NODE, EditKind
from schemas.ids import DocumentKey
from schemas.progress_bars import Bar
from schemas.settings import LimitSettings
from streams.cli.app import Joined
from streams.cli.load import graph_app
from streams.loader.graph_import import MAX_REFUSED, GraphImport
from streams.loader.sources import Record
from streams.settings import WorkerSettings

WRITERS = {"jsonl": json_lines, "graphml": graphml, "csv.zip": csv_archive}
TEXTS = {
    "pump.md": "# Tidal pump\n\nThe tidal pump requires a [brine valve](valve.md). Ada Quist designed the tidal pump.",
    "valve.md": "# Brine valve\n\nThe brine valve is a kind of valve, made since 1984.\n\n" + "It is cold there. " * 60,
    "notes/log.md": "---\nowner: Ada Quist\nstatus: Final\n---\n# Pump log\n\nTidal pumps require a brine valve.",
}
MADE: list[tuple[EditKind, str, dict[str, Any]]] = [
    (
        NODE,
        "workshop",
        {"label": "Workshop", "type": "place", "text": "Tidal pumps require a gauge.\nSecond line: “é”."},
    ),
    (
        NODE,
        "crew",
        {"label": "Crew & <co>", "aliases": ["The crew"], "properties": {"size": 4, "ok": True, "ü": "\x0c"}},
    ),
    (EDGE, "e1", {"source": "crew", "target": "workshop", "predicate": "works_in", "weight": 0.35, "note": "Seen."}),
    (EDGE, "e2", {"source": "crew", "target": "tidal pump", "predicate": "mends", "by": "ada", "properties": {"n": 2}}),
    (EDGE, "e3", {"source": "sea/pump.md", "target": "crew", "predicate": "names"}),
]


class Installation:
    """What a worker and a service make of records, without either."""

    def __init__(self, records: Iterable[Record], collection: str = "sea") -> None:
        self.collection = collection
        self.chunks: dict[str, ChunkRow] = {}
        self.texts: dict[DocumentKey, str] = {}
        made = {record.key: self._contribution(record) for record in records}
        self.view = GraphView.from_contributions(list(made.values()), 0)

    def _contribution(self, record: Record) -> Any:
        event = decode_document_event(record.key.encoded(), record.value, record.headers, LimitSettings())
        assert isinstance(event, DocumentUpsert)
        prepared = prepare(event, ChunkingParameters())
        self.texts[record.key] = json.loads(event.content).get("text", "") if b'"label"' in event.content else ""
        for at, each in enumerate(prepared.chunked.chunks):
            self.chunks[each.id] = ChunkRow(each.id, record.key, "", at, "", [], each.start, each.end, each.text)
        vectors = np.eye(1, 8, dtype=np.float32).repeat(len(prepared.chunked.chunks), axis=0)
        return contribution(prepared, vectors)

    def export(self) -> GraphExport:
        def texts(documents: Iterable[int]) -> Mapping[int, str]:
            return {number: self.texts[self.view.document_key(number)] for number in documents}

        def chunks(ids: Iterable[str]) -> Mapping[str, ChunkRow]:
            return {each: self.chunks[each] for each in ids}

        catalogue = EntityCatalogues().of(self.view, Curation())
        return GraphExport(self.view, catalogue, self.collection, texts, chunks)

    def file(self, folder: Path, ending: str) -> Path:
        path = folder / f"graph.{ending}"
        path.write_bytes(b"".join(WRITERS[ending](self.export())))
        return path

    def digest(self) -> str:
        (last,) = b"".join(json_lines(self.export())).splitlines()[-1:]
        found: str = json.loads(last)["graph"]["digest"]
        return found


class Service:
    """An installation with these documents, and this choice of what its graph may hold."""

    def __init__(self, chosen: dict[str, Any] | None = None, documents: Sequence[str] = (), edges: Any = ()) -> None:
        self.chosen, self.ids, self.edges = chosen or {}, documents, list(edges)
        self.published: list[dict[str, Any]] = []

    def get(self, path: str) -> dict[str, Any]:
        return {"edges": self.edges, "next_cursor": None} if "/v1/edges" in path else {"chosen": self.chosen}

    def documents(self, _collection: str, *, hand_made: bool = True) -> list[dict[str, Any]]:
        assert not hand_made
        return [{"id": each} for each in self.ids]

    def publish(self, envelopes: Sequence[bytes]) -> dict[str, Any]:
        self.published += map(json.loads, envelopes)
        accepted = [{"index": index, "position": f"0:{index}"} for index in range(len(envelopes))]
        return {"token": "0:9", "accepted": accepted, "refused": []}

    def close(self) -> None:
        """Nothing is open."""


def record_of(kind: EditKind, name: str, made: dict[str, Any]) -> Record:
    headers = (("content-type", MEDIA_TYPES[kind].encode()),)
    return Record(DocumentKey("sea", f"{kind}:{name}"), json.dumps(made).encode(), headers, "")


@pytest.fixture(scope="module")
def first() -> Installation:
    markdown = (("content-type", b"text/markdown"),)
    documents = [Record(DocumentKey("sea", name), text.encode(), markdown, "") for name, text in TEXTS.items()]
    return Installation([*documents, *(record_of(*made) for made in MADE)])


def imported(path: Path, collection: str | None = None, service: Service | None = None) -> GraphImport:
    graph = GraphImport(path, collection, service or Service())  # type: ignore[arg-type]
    graph.check(Bar)
    return graph


def refusals(path: Path, service: Service | None = None) -> list[tuple[str, str]]:
    """(what follows the file's name in the origin, message) of each."""
    return [(each.origin.removeprefix(str(path)), each.message) for each in imported(path, service=service).refused]


def lines(folder: Path, *held: Any) -> Path:
    path = folder / "graph.jsonl"
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in held))
    return path


@pytest.mark.parametrize("ending", WRITERS)
def test_graph_imported_into_nothing_has_equal_digest(tmp_path: Path, first: Installation, ending: str) -> None:
    graph = imported(first.file(tmp_path, ending))
    assert not graph.refused
    records = list(graph.records())
    kinds = {each.key.document_id.split(":")[1] for each in records}
    assert kinds >= {
        "document",
        "chunk",
        "entity",
        "value",
        "mentions",
        "has_chunk",
        "next_chunk",
        "links_to",
        "states",
    }
    second = Installation(records)
    assert second.digest() == first.digest()
    again = imported(second.file(tmp_path, ending))
    assert {each.key: each.value for each in again.records()} == {each.key: each.value for each in records}


def test_every_format_holds_the_same(tmp_path: Path, first: Installation) -> None:
    held = [list(imported(first.file(tmp_path, ending)).records()) for ending in WRITERS]
    assert [(each.key, each.value) for each in held[0]] == [(each.key, each.value) for each in held[1]]
    assert [(each.key, each.value) for each in held[0]] == [(each.key, each.value) for each in held[2]]


def test_kuzu_loads_csv_by_its_script(tmp_path: Path, first: Installation) -> None:
    with zipfile.ZipFile(first.file(tmp_path, "csv.zip")) as archive:
        assert {*SCRIPTS, "nodes.csv", "edges.csv", "manifest.json"} == {*archive.namelist()}
        archive.extractall(tmp_path)
        said = json.loads(archive.read("manifest.json"))
        script = archive.read("kuzu.cypher").decode().replace(" FROM '", f" FROM '{tmp_path}/")
    connection = kuzu.Connection(kuzu.Database(str(tmp_path / "graph.kuzu")))

    def rows(query: str) -> list[Any]:
        answer = connection.execute(query)
        assert isinstance(answer, kuzu.QueryResult)
        return list(answer)

    for statement in script.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    assert rows("MATCH (n:Node) RETURN count(*)") == [[said["nodes"]]]
    assert rows("MATCH ()-[e:Edge]->() RETURN count(*)") == [[said["edges"]]]
    fact = "MATCH (a)-[e:Edge {kind: 'states', label: 'requires'}]->(b) RETURN a.label, b.label, e.count, e.weight"
    assert ["tidal pump", "brine valve", 2, 1.0] in rows(fact)
    made = rows("MATCH (n:Node {id: 'workshop'}) RETURN n.text, n.type")
    assert made == [["Tidal pumps require a gauge.\nSecond line: “é”.", "place"]]


def test_folder_of_tables_is_read_as_the_zip_is(tmp_path: Path, first: Installation) -> None:
    path = first.file(tmp_path, "csv.zip")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "tables")
    of_zip, of_folder = ([each.value for each in imported(place).records()] for place in (path, tmp_path / "tables"))
    assert of_zip == of_folder


def test_lines_that_people_write_become_nodes_and_edges(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"node": "ada", "label": "Ada", "type": "person", "born": 1990, "text": "She knows pumps."},
        {"node": "pump"},
        {"edge": ["ada", "pump"], "label": "repairs", "weight": 0.5},
        {"edge": ["pump", "ada"]},
    )
    graph = imported(path)
    assert (graph.refused, graph.collection) == ([], "default")
    held = [json.loads(each.value or b"") for each in graph.records()]
    assert held[0] == {
        "label": "Ada", "type": "person", "text": "She knows pumps.", "aliases": [], "properties": {"born": 1990},
    }  # fmt: skip
    assert (held[1]["label"], held[1]["type"], held[2]["predicate"]) == ("pump", "thing", "repairs")
    assert (held[2]["weight"], held[3]["predicate"], held[3]["source"]) == (0.5, "related_to", "pump")


def test_graphml_of_another_program_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    path.write_text(
        """<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
        <key id="d0" for="node" attr.name="label" attr.type="string"/><key id="d1" for="edge" attr.name="weight"/>
        <graph edgedefault="undirected"><node id="a"><data key="d0">A one</data></node><node id="b"/>
        <edge source="a" target="b"><data key="d1">0.25</data></edge></graph></graphml>"""
    )
    graph = imported(path)
    assert not graph.refused
    held = [json.loads(each.value or b"") for each in graph.records()]
    assert [each.get("label") for each in held] == ["A one", "b", None]
    assert held[2]["weight"] == 0.25


def test_fields_that_no_node_or_edge_can_have_come_back(tmp_path: Path) -> None:
    long = "x" * 400
    path = lines(
        tmp_path,
        {"node": "1" * 32, "kind": "entity", "label": long, "type": "é"},
        {"node": "c/–", "kind": "document"},
        {"edge": ["c/–", "1" * 32], "kind": "states", "label": "hängt ab von", "weight": 0.3, "count": 1},
    )
    graph = imported(path, "c")
    assert not graph.refused
    exported = [
        json.loads(line) for line in b"".join(json_lines(Installation(graph.records(), "c").export())).splitlines()
    ]
    held = sorted(path.read_text().splitlines())
    assert (
        sorted(json.dumps({**each, "edge": each["edge"]} if "edge" in each else each) for each in exported[1:-1])
        == held
    )


@pytest.mark.parametrize(
    ("held", "origin", "message"),
    [
        (['{"node": "a"}', '{"node": "b"'], ":2", "The line is not JSON, or was cut"),
        (['{"node": "a"}', "[1]"], ":2", "It is not {"),
        ([{"node": "a"}, {"edge": ["a", "b"]}], ":2", "No node 'b' comes before this edge"),
        ([{"node": "a"}, {"node": "a"}], ":2", "The node 'a' is in the file twice."),
        ([{"node": "a"}, {"node": "b"}, {"edge": ["a", "b"]}, {"edge": ["a", "b"]}], ":4", "is there twice"),
        ([{"node": "a"}, {"node": "b"}, {"edge": ["a", "b"], "weight": "much"}], ":3", "weight: 'much' is not of"),
        ([{"node": "a"}, {"node": "b"}, {"edge": ["a", "b"], "weight": 7}], ":3", "weight: Input should be less"),
        ([{"node": "a"}, {"edge": ["a", "a"]}], ":2", "it joins two different ends"),
        ([{"node": "a", "properties": {"p": "x" * 2**20}}], ":1", "properties.p"),
        ([{"node": "a", "p": {"deep": []}}], ":1", "properties.p"),
        ([{"node": "a", "properties": "[1]", "p": 1}], ":1", "properties: Input should be"),
        ([{"node": "a", "aliases": "[" * 10**5}], ":1", "aliases: '[[["),
        (['{"node": "a", "mentions": 1e999}'], ":1", "mentions: 'inf' is not of the type long"),
        ([{"node": "a", "label": 5}], ":1", "label: '5' is not of the type string"),
        ([{"node": "a b"}], ":1", "its id is not 'node:"),
        ([{"node": "a", "kind": "No Kind"}], ":1", "'No Kind' is not a kind of nodes."),
        ([{"node": "default/a.md", "kind": "document"}], ":1", "is in the collection, and says itself"),
        ([{"graph": {"collection": "default"}}, {"node": "a"}], "", "it was cut or changed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_by_its_line(tmp_path: Path, held: list[Any], origin: str, message: str) -> None:
    path = lines(tmp_path, *held)
    ((found, said),) = refusals(path, Service(documents=["a.md"]))
    assert found == origin
    assert message in said


@pytest.mark.parametrize("ending", WRITERS)
def test_file_cut_in_the_middle_is_refused(tmp_path: Path, first: Installation, ending: str) -> None:
    path = first.file(tmp_path, ending)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    if ending == "csv.zip":
        with pytest.raises(Failure, match="is not a graph"):
            imported(path)
    else:
        assert any("cut" in message for _, message in refusals(path))


def test_file_cut_between_two_lines_is_refused(tmp_path: Path, first: Installation) -> None:
    path = first.file(tmp_path, "jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    ((_, message),) = refusals(path)
    assert "it was cut or changed" in message


@pytest.mark.parametrize("held", ["[1]", "3", "[" * 10**5, '{"collection": ', "\xe9"])
def test_table_with_broken_manifest_is_refused(tmp_path: Path, first: Installation, held: str) -> None:
    with zipfile.ZipFile(first.file(tmp_path, "csv.zip")) as archive:
        archive.extractall(tmp_path / "tables")
    (tmp_path / "tables" / "manifest.json").write_bytes(held.encode("latin-1"))
    assert refusals(tmp_path / "tables")


def test_graphml_of_one_element_after_a_comment_is_read(tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    path.write_text('<!-- by hand --><node id="a"/>')
    assert [each.key.document_id for each in imported(path).records()] == ["node:a"]


def test_archive_that_cannot_be_opened_is_refused(tmp_path: Path, first: Installation) -> None:
    path = first.file(tmp_path, "csv.zip")
    packed = bytearray(path.read_bytes())
    entry = packed.index(b"PK\x01\x02")
    packed[entry + 8] |= 1  # encrypted, it says
    packed[packed.index(b"PK\x03\x04") + 6] |= 1
    path.write_bytes(packed)
    assert "encrypted" in refusals(path)[0][1]


A, B, JOINED = {"node": "a"}, {"node": "b"}, {"edge": ["a", "b"], "label": "joins"}


@pytest.mark.parametrize(
    ("by_now", "sent", "says"),
    [
        ([A, B, {"edge": ["a", "c"], "label": "joins"}], 2, ":3: {'edge': ['a', 'c'], 'label': 'joins'} was not there"),
        ([A, B, {"edge": ["a", "b"], "label": "!"}], 2, ":3: {'edge': ['a', 'b'], 'label': '!'} was not there"),
        ([A, JOINED], 2, ": it held {'collection': 'default', 'nodes': 2, 'edges': 1"),
        ([A, B, JOINED, {"node": "c"}], 3, ":4: {'node': 'c'} was not there"),
        ([A | {"label": "x"}, B, JOINED], 3, "and then {'collection': 'default', 'nodes': 2, 'edges': 1"),
        ([A, '{"node'], 1, ":2: The line is not JSON"),
    ],
)
def test_file_that_changes_between_check_and_sending_ends_in_a_sentence(
    tmp_path: Path, by_now: list[Any], sent: int, says: str
) -> None:
    graph = imported(lines(tmp_path, A, B, JOINED))
    records = graph.records()
    lines(tmp_path, *by_now)
    kept: list[Record] = []
    with pytest.raises(Failure) as failure:
        kept.extend(records)  # what came before the failure stays
    assert (len(kept), says in str(failure.value)) == (sent, True), failure.value
    assert "The file was changed while it was read" in str(failure.value)


def test_file_that_is_not_a_graph_is_refused(tmp_path: Path) -> None:
    for content in ("id,label\n1,a\n", "", "# Words"):
        path = tmp_path / "words.txt"
        path.write_text(content)
        with pytest.raises(Failure, match="is not a graph"):
            imported(path)
    with pytest.raises(Failure, match="There is no file or folder"):
        imported(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "nodes.csv" in refusals(tmp_path / "empty")[0][1]


def test_faults_without_end_are_not_all_kept(tmp_path: Path) -> None:
    path = lines(tmp_path, {"node": "a"}, *["[]"] * (MAX_REFUSED + 10))
    assert len(refusals(path)) == MAX_REFUSED


def test_schema_of_the_collection_holds_for_imports(tmp_path: Path) -> None:
    chosen = {
        "node_types": ["person", "team"],
        "predicates": {"leads": {"source": ["person"], "target": ["team"]}, "part_of": {"acyclic": True}},
    }
    a, b, c = ({"node": each, "type": "team"} for each in "abc")
    edges = [{"source": "c", "target": "a"}]
    service = Service(chosen, edges=edges)
    bad_type = lines(
        tmp_path,
        {"node": "x", "type": "boat"},
        a,
        b,
        {"edge": ["a", "b"], "label": "leads"},
        {"edge": ["a", "b"], "label": "eats"},
    )
    assert [origin for origin, _ in refusals(bad_type, service)] == [":1", ":4", ":5"]
    cycle = lines(tmp_path, a, b, c, {"edge": ["a", "b"], "label": "part_of"}, {"edge": ["b", "c"], "label": "part_of"})
    ((origin, message),) = refusals(cycle, service)
    assert origin in (":4", ":5")
    assert "no cycle of part_of" in message
    assert refusals(cycle, Service({"predicates": {"part_of": {"acyclic": True}}})) == []


def run(service: Service, *arguments: str) -> tuple[int, str]:
    joined = Joined(lambda *_: service, WorkerSettings)  # type: ignore[arg-type, return-value]
    done = CliRunner().invoke(graph_app, [*arguments, "--url", "http://service"], obj=joined)
    return done.exit_code, done.stdout


def test_command_sends_what_fits_and_nothing_else(tmp_path: Path) -> None:
    service = Service()
    path = lines(tmp_path, {"node": "a"}, {"node": "b"}, {"edge": ["a", "b"], "label": "knows"})
    code, said = run(service, str(path), "--dry-run")
    assert (code, service.published) == (0, [])
    assert "default: 2 nodes, 1 edges, digest " in said
    code, said = run(service, str(path), "--no-wait", "--json", "--collection", "sea")
    assert code == 0
    assert json.loads(said)["graph"] | {"digest": ""} == {"collection": "sea", "nodes": 2, "edges": 1, "digest": ""}
    assert [each["collection"] for each in service.published] == ["sea"] * 3
    assert [each["id"].split(":")[0] for each in service.published] == ["node", "node", "edge"]
    code, said = run(service, str(lines(tmp_path, {"node": "c"}, "{", {"edge": ["c", "d"]})))
    assert (code, len(service.published)) == (1, 3)
    assert f"{path}:2: The line is not JSON" in said
    assert f"{path}:3: No node 'd' comes before this edge" in said
