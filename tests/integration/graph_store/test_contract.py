"""The contract of a graph store against each: snapshots of Arrow files, Kùzu's file, LadybugDB's where it is there."""

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kuzu
import pytest

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation
from indexer.graph.kuzu_schema import MAX_DATABASE_BYTES
from indexer.graph.snapshot_publication import set_aside_damaged
from indexer.graph.snapshots import SNAPSHOTS, latest_snapshot, read_graph
from indexer.graph.store import GraphStore
from indexer.graph.tables import TABLES
from indexer.read.arrow_folders import MANIFEST
from indexer.read.published_graph import FILE, newest_folder, require_intact
from indexer.write.kuzu_publication import publish_graph, remove_damaged
from tests.integration.graph_store.contract import GraphStoreContract, Rows, comparable, rows_of
from tests.support.fixtures.graph import Batch

ROOT = Path(__file__).parents[3]
BUFFER_BYTES = 128 * 1024**2

QUERIES = {
    "documents": "MATCH (n:Document) RETURN n.id, n.collection, n.document_id, n.revision, n.title",
    "sections": (
        "MATCH (document:Document)-[:HAS_SECTION]->(n:Section) "
        "RETURN n.id, document.id, n.ordinal, n.title, n.level, n.parent"
    ),
    "chunks": (
        "MATCH (document:Document)-[:HAS_SECTION]->(section:Section)-[:HAS_CHUNK]->(n:Chunk) "
        "RETURN n.id, section.id, n.ordinal, n.passage, n.passage_id, document.id"
    ),
    "entities": "MATCH (n:Entity) RETURN n.id, n.collection, n.name",
    "statements": (
        "MATCH (chunk:Chunk)-[:STATES]->(n:Statement) "
        "RETURN n.id, chunk.id, n.predicate, n.confidence, n.extractor, n.sentence"
    ),
    "document_names": "MATCH (n:DocumentName) RETURN n.id, n.collection, n.document_id",
    "about": "MATCH (n:Document)-[e:ABOUT]->(m:Entity) RETURN n.id, m.id, e.surface, e.weight",
    "mentions": (
        "MATCH (n:Chunk)-[e:MENTIONS]->(m:Entity) "
        "RETURN n.id, m.id, e.kind, e.surface, e.count, e.sentences, e.entity_type, e.confidence"
    ),
    "roles": "MATCH (n:Statement)-[e:ROLE]->(m:Entity) RETURN n.id, m.id, e.role, e.surface",
    "chunk_edges": "MATCH (n:Chunk)-[e:CHUNK_EDGE]->(m:Chunk) RETURN n.id, m.id, e.kind, e.weight",
    "links": "MATCH (n:Chunk)-[e:LINKS_TO]->(m:DocumentName) RETURN n.id, m.id, e.weight, m.collection, m.document_id",
    "nodes": (
        "MATCH (document:Document)-[:DESCRIBES]->(n:Node) "
        "RETURN n.id, document.id, n.name, n.label, n.type, n.aliases, n.attributes"
    ),
    "references": "MATCH (n:Reference) RETURN n.id, n.collection, n.name",
    "relations": (
        "MATCH (document:Document)-[:SAYS]->(n:Relation) "
        "RETURN n.id, document.id, n.name, n.predicate, n.weight, n.attributes"
    ),
    "ends": "MATCH (n:Relation)-[e:JOINS]->(m:Reference) RETURN n.id, m.id, e.role",
}
"""{table of a snapshot: the same rows in Cypher}"""


class ArrowSnapshots:
    """Folders of Arrow files, as searches read them."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.store = GraphStore.open(generation)

    def publish(self, changes: Batch, position: int) -> None:
        if changes:
            self.store.apply(changes, position)
        newest = latest_snapshot(self.generation.snapshots_dir)
        if newest is None or newest.graph_position != position:
            self.store.snapshot()

    def open(self) -> "OpenSnapshot | None":
        for name, manifest in SNAPSHOTS.described(self.generation.snapshots_dir):
            if manifest is None:
                raise DamagedStore(name)
        newest = latest_snapshot(self.generation.snapshots_dir)
        if newest is None:
            return None
        return OpenSnapshot(newest.graph_position, rows_of(read_graph(self.generation.snapshots_dir, newest)))

    def files(self) -> Sequence[Path]:
        newest = latest_snapshot(self.generation.snapshots_dir)
        assert newest is not None
        folder = self.generation.snapshots_dir / newest.name
        return [folder / MANIFEST, *(folder / newest.tables[name].file for name in TABLES)]

    def repair(self) -> None:
        set_aside_damaged(self.generation.snapshots_dir)


class OpenSnapshot:
    def __init__(self, position: int, rows: Rows) -> None:
        self.position = position
        self._rows = rows

    def rows(self) -> Rows:
        return self._rows

    def close(self) -> None:
        """Nothing is held."""


class KuzuFile:
    """Published from snapshots."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.snapshots = ArrowSnapshots(generation)

    def publish(self, changes: Batch, position: int) -> None:
        self.snapshots.publish(changes, position)
        publish_graph(self.generation, BUFFER_BYTES)

    def open(self) -> "OpenFile | None":
        folder = newest_folder(self.generation.kuzu_dir)
        return folder and OpenFile(folder / FILE, require_intact(folder).graph_position)

    def files(self) -> Sequence[Path]:
        [folder] = self.generation.kuzu_dir.glob("[!.]*/")
        return [folder / MANIFEST, folder / FILE]

    def repair(self) -> None:
        assert remove_damaged(self.generation.kuzu_dir)


class OpenFile:
    def __init__(self, path: Path, position: int) -> None:
        self.position = position
        self._database = kuzu.Database(
            str(path), read_only=True, buffer_pool_size=BUFFER_BYTES, max_db_size=MAX_DATABASE_BYTES
        )
        self._connection = kuzu.Connection(self._database)

    def rows(self) -> Rows:
        return {table: sorted(map(self._row, self._ask(cypher)), key=repr) for table, cypher in QUERIES.items()}

    def close(self) -> None:
        self._connection.close()
        self._database.close()

    def _ask(self, cypher: str) -> list[list[Any]]:
        with self._connection.execute(cypher) as result:
            rows: list[list[Any]] = result.get_all()
        return rows

    @staticmethod
    def _row(values: list[Any]) -> tuple[Any, ...]:
        """Kùzu holds numbers of sentences as a string."""
        is_mention = len(values) == 8
        return tuple(
            tuple(map(int, filter(None, value.split(",")))) if is_mention and at == 5 else comparable(value)
            for at, value in enumerate(values)
        )


@pytest.fixture(params=[ArrowSnapshots, KuzuFile], ids=["arrow", "kuzu"])
def store(request: pytest.FixtureRequest, generation: Generation) -> Any:
    return request.param(generation)


class TestGraphStore(GraphStoreContract):
    """Every promise, of every store."""


@pytest.mark.skipif(
    importlib.util.find_spec("ladybug") is None, reason="LadybugDB is no dependency: pip install ladybug"
)
def test_ladybugdb_in_the_place_of_kuzu_keeps_every_promise() -> None:
    """In a process of its own: the two cannot be loaded into one."""
    chosen = [__file__, "-k", "TestGraphStore and kuzu", "-q", "-p", "no:cacheprovider"]
    program = f"import sys, ladybug, pytest; sys.modules['kuzu'] = ladybug; sys.exit(pytest.main({chosen}))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stdout[-4_000:]
