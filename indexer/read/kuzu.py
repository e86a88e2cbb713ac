"""Snapshots of the graph: which are published and intact, and their content as Arrow tables.

Each snapshot file has a description with its checksum beside it; the pointer is a copy of the newest description. A
snapshot is read once, as a whole; searches use the memory built from it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kuzu
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import structlog

from indexer.errors import DamagedStore
from indexer.graph_schema import MAX_DATABASE_BYTES, SCHEMA_VERSION
from indexer.integrity.files import Damage, file_checksum

BUFFER_POOL_BYTES = 2 * 1024**3
POINTER = "LATEST"
SUFFIX = ".kuzu"

log = structlog.get_logger(__name__)


class SnapshotFile(msgspec.Struct, frozen=True, kw_only=True):
    """A published snapshot: its file, the offset on the graph topic that it includes, and its counts.

    `checksum` is that of the file, `sealed` that of all these fields; earlier programs left both empty.
    """

    name: str
    graph_position: int
    made_at_ms: int
    documents: int
    chunks: int
    entities: int
    statements: int
    schema: int = 1
    checksum: str = ""
    sealed: str = ""

    def seal(self) -> "SnapshotFile":
        """With the checksum of the other fields."""
        fields = msgspec.json.encode(msgspec.structs.replace(self, sealed=""))
        return msgspec.structs.replace(self, sealed=hashlib.sha256(fields).hexdigest()[:32])


def description_of(file: Path) -> Path:
    """The path of a snapshot file's description."""
    return file.with_suffix(".json")


def published_snapshots(snapshots_dir: Path) -> list[SnapshotFile]:
    """The snapshots, newest first, without those whose description is damaged; the files themselves are not read."""
    found = [snapshot for snapshot, _ in _described(snapshots_dir) if snapshot is not None]
    by_name = {snapshot.name: snapshot for snapshot in found if (snapshots_dir / snapshot.name).exists()}
    return sorted(by_name.values(), key=lambda snapshot: snapshot.made_at_ms, reverse=True)


def latest_snapshot(snapshots_dir: Path) -> SnapshotFile | None:
    """The newest published snapshot of this schema version; None before the first. Its file is not read."""
    return next((each for each in published_snapshots(snapshots_dir) if each.schema == SCHEMA_VERSION), None)


def newest_intact_snapshot(snapshots_dir: Path) -> SnapshotFile | None:
    """The newest one whose file matches its checksum. Damaged ones are skipped with a warning."""
    for snapshot in published_snapshots(snapshots_dir):
        if snapshot.schema != SCHEMA_VERSION:
            continue
        try:
            require_intact_snapshot(snapshots_dir / snapshot.name, snapshot.checksum)
        except (DamagedStore, FileNotFoundError) as error:
            log.warning("a snapshot of the graph is passed over", name=snapshot.name, reason=str(error))
            continue
        return snapshot
    return None


def require_intact_snapshot(file: Path, checksum: str) -> None:
    """Raises DamagedStore for a file that does not match its checksum, FileNotFoundError for a missing one."""
    if checksum and file_checksum(file) != checksum:
        raise DamagedStore(
            f"The snapshot {file.name} of the graph does not match its checksum. The one before it is read in its "
            "place, and the worker's next snapshot replaces it: nothing is to be done."
        )


def damaged_snapshots(snapshots_dir: Path) -> Iterator[Damage]:
    """Read each snapshot file once and compare it with its checksum."""
    for snapshot, path in _described(snapshots_dir):
        if snapshot is None:
            yield Damage(f"snapshots/{path.name}", "cannot be read as the description of a snapshot")
    for snapshot in published_snapshots(snapshots_dir):
        try:
            require_intact_snapshot(snapshots_dir / snapshot.name, snapshot.checksum)
        except DamagedStore:
            yield Damage(f"snapshots/{snapshot.name}", "does not match its checksum")
        except FileNotFoundError:  # replaced by a newer one meanwhile
            continue


def _described(snapshots_dir: Path) -> Iterator[tuple[SnapshotFile | None, Path]]:
    """Every description, and the pointer; None for a damaged one."""
    for path in [snapshots_dir / POINTER, *snapshots_dir.glob("*.json")]:
        try:
            snapshot = msgspec.json.decode(path.read_bytes(), type=SnapshotFile)
        except FileNotFoundError:
            continue
        except ValueError:
            yield None, path
            continue
        is_unsealed = not snapshot.sealed and not snapshot.checksum  # by an earlier program
        yield snapshot if is_unsealed or snapshot.seal() == snapshot else None, path


@dataclass(frozen=True)
class GraphTables:
    """A snapshot's nodes and edges. `source` and `target` are node ids; columns as in `indexer.graph_schema`.

    documents(id, collection, document_id, revision, title) · sections(id, document, ordinal, title, level, parent) ·
    chunks(id, document, section, ordinal, passage, passage_id) · entities(id, collection, name) ·
    statements(id, chunk, predicate, confidence, extractor, sentence) · about(source, target, surface, weight) ·
    mentions(source, target, kind, surface, count, sentences) · roles(source, target, role, surface) ·
    chunk_edges(source, target, kind, weight) · links(source, target, collection, document_id, weight)
    """

    documents: pa.Table
    sections: pa.Table
    chunks: pa.Table
    entities: pa.Table
    statements: pa.Table
    about: pa.Table
    mentions: pa.Table
    roles: pa.Table
    chunk_edges: pa.Table
    links: pa.Table


def read_graph(path: Path, checksum: str = "") -> GraphTables:
    """The content of a snapshot file, which is opened read-only.

    Raises FileNotFoundError when a newer snapshot has replaced it, DamagedStore when it does not match its `checksum`:
    Kùzu itself would read it, or crash the process.
    """
    if not path.exists():
        raise FileNotFoundError(path)
    require_intact_snapshot(path, checksum)
    database = kuzu.Database(
        str(path), read_only=True, buffer_pool_size=BUFFER_POOL_BYTES, max_db_size=MAX_DATABASE_BYTES
    )
    try:
        connection = kuzu.Connection(database)
        try:
            return _read(connection)
        finally:
            connection.close()
    finally:
        database.close()


def _read(connection: kuzu.Connection) -> GraphTables:
    def table(cypher: str) -> pa.Table:
        result: Any = connection.execute(cypher)
        return result.get_as_arrow()

    about = table(
        "MATCH (d:Document)-[r:ABOUT]->(e:Entity) "
        "RETURN d.id AS source, e.id AS target, r.surface AS surface, r.weight AS weight"
    )
    mentions = table(
        "MATCH (c:Chunk)-[r:MENTIONS]->(e:Entity) RETURN c.id AS source, e.id AS target, r.kind AS kind, "
        "r.surface AS surface, r.count AS count, r.sentences AS sentences"
    )
    roles = table(
        "MATCH (s:Statement)-[r:ROLE]->(e:Entity) "
        "RETURN s.id AS source, e.id AS target, r.role AS role, r.surface AS surface"
    )
    entities = table("MATCH (e:Entity) RETURN e.id AS id, e.collection AS collection, e.name AS name")
    with_evidence = pa.chunked_array(
        [chunk for edges in (about, mentions, roles) for chunk in edges["target"].chunks], type=pa.string()
    )
    return GraphTables(
        documents=table(
            "MATCH (d:Document) RETURN d.id AS id, d.collection AS collection, d.document_id AS document_id, "
            "d.revision AS revision, d.title AS title"
        ),
        sections=table(
            "MATCH (d:Document)-[:HAS_SECTION]->(s:Section) RETURN s.id AS id, d.id AS document, "
            "s.ordinal AS ordinal, s.title AS title, s.level AS level, s.parent AS parent"
        ),
        chunks=table(
            "MATCH (d:Document)-[:HAS_SECTION]->(s:Section)-[:HAS_CHUNK]->(c:Chunk) RETURN c.id AS id, "
            "d.id AS document, s.id AS section, c.ordinal AS ordinal, c.passage AS passage, c.passage_id AS passage_id"
        ),
        entities=entities.filter(pc.is_in(entities["id"], value_set=pc.unique(with_evidence))),
        statements=table(
            "MATCH (c:Chunk)-[:STATES]->(s:Statement) RETURN s.id AS id, c.id AS chunk, s.predicate AS predicate, "
            "s.confidence AS confidence, s.extractor AS extractor, s.sentence AS sentence"
        ),
        about=about,
        mentions=mentions.set_column(5, "sentences", _numbers(mentions["sentences"])),
        roles=roles,
        chunk_edges=table(
            "MATCH (a:Chunk)-[r:CHUNK_EDGE]->(b:Chunk) "
            "RETURN a.id AS source, b.id AS target, r.kind AS kind, r.weight AS weight"
        ),
        links=table(
            "MATCH (c:Chunk)-[r:LINKS_TO]->(n:DocumentName) RETURN c.id AS source, n.id AS target, "
            "n.collection AS collection, n.document_id AS document_id, r.weight AS weight"
        ),
    )


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of int32 from strings such as `3,17`; an empty list from an empty string."""
    listed = pc.split_pattern(column, ",")
    return pc.if_else(pc.equal(column, ""), pa.scalar([], listed.type), listed).cast(pa.list_(pa.int32()))
