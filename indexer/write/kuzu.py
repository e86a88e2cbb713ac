"""The graph writer: replaces documents' contributions in Kùzu together with the position reached; publishes snapshots.

Kùzu's own recovery is not used: a process killed in a COMMIT after COPY keeps the deletes and the position and loses
the rows, and replaying deletes drops other rows from the primary keys. So a graph that was not closed is replaced by
the newest snapshot, and the log is replayed from the position stored in it.
"""

import importlib.util  # noqa: F401 -- Kùzu's first COPY from Arrow looks for it without importing it
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kuzu
import msgspec
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import structlog
from filelock import FileLock, Timeout

from indexer.errors import StoreInDoubt, StoreInUse, TransientStoreError
from indexer.generations import Generation, replace_file
from indexer.graph_schema import (
    EVIDENCE_TABLES,
    MAX_DATABASE_BYTES,
    SCHEMA_VERSION,
    SHARED_TABLES,
    statements_that_create,
)
from indexer.integrity.files import CLOSED, damaged_graph, file_checksum
from indexer.read.kuzu import POINTER, SUFFIX, SnapshotFile, description_of, newest_intact_snapshot
from indexer.write.kuzu_compaction import compact, needs_compaction
from indexer.write.kuzu_rows import GraphRows, arrow_rows
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey, document_node_id

NAMES = {"Entity": "name", "DocumentName": "document_id"}
OWNED = (
    "-[:HAS_SECTION]->(:Section)-[:HAS_CHUNK]->(:Chunk)-[:STATES]->(node:Statement)",
    "-[:HAS_SECTION]->(:Section)-[:HAS_CHUNK]->(node:Chunk)",
    "-[:HAS_SECTION]->(node:Section)",
)
MAX_LOOKUPS = 16  # ids looked up one by one in the primary key, at constant cost; more are found by one scan
MIN_BUFFER_BYTES = 1024**3
BUFFER_DIVISOR = 4  # of the machine's memory; only as much is used as the graph needs
UNCLOSED = "unclosed"  # a file beside the graph while a process has it open
KEPT_SNAPSHOTS = 3  # a reader may just have read the previous pointer, and the newest may be damaged

log = structlog.get_logger(__name__)


class GraphWriter:
    """Writes a generation's graph, one process at a time. Not thread-safe.

    Each call may be repeated with the same arguments and then changes nothing. After a failure of the store every
    method raises StoreInDoubt: the process then ends, and the next one starts from the newest snapshot.
    """

    def __init__(self, path: Path, lock: FileLock, buffer_bytes: int) -> None:
        """Use `open`. `lock` is acquired, and released by `close`."""
        self._buffer_bytes = buffer_bytes
        self._path = path
        self._lock = lock
        self._unclosed = path.with_name(UNCLOSED)
        self._in_doubt = False
        self._unchanged_since: SnapshotFile | None = None
        self._open()

    @classmethod
    def open(cls, generation: Generation, buffer_bytes: int | None = None) -> "GraphWriter":
        """Open or create the graph.

        `buffer_bytes` bounds Kùzu's page cache, by default to a quarter of the machine's memory. A COMMIT needs about
        the size of the graph's file: with 256 MiB one of 390 MB accepted no more changes.

        A graph that was not closed, was changed since, or cannot be opened is replaced by the newest intact snapshot;
        `position()` then tells from where to replay the graph topic. Raises StoreInUse if another process has it open.
        """
        path = generation.graph_path
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
        damage = damaged_graph(path)
        if damage:
            log.warning("the graph is taken from its newest intact snapshot", reason=str(damage[0]))
        if damage or path.with_name(UNCLOSED).exists():
            _restore(path, generation.snapshots_dir)
        try:
            return cls(path, lock, buffer_bytes or default_buffer_bytes())
        except RuntimeError:  # damaged, or of another version: Kùzu raises nothing more telling
            _restore(path, generation.snapshots_dir)
            return cls(path, lock, buffer_bytes or default_buffer_bytes())

    def position(self) -> int:
        """The last offset of the graph topic that is applied; -1 for none."""
        with self._failing_in_doubt("tell its position"):
            rows = self._run("MATCH (applied:Applied {id: 0}) RETURN applied.position").get_all()
        return int(rows[0][0]) if rows else -1

    def apply(self, changes: Sequence[tuple[DocumentKey, Contribution | None]], position: int) -> None:
        """Replace, or delete (None), the contribution of each document and store the position, in one transaction.

        1. build the rows (ValueError for a value that no column can hold); 2. delete the documents' old rows; 3. copy
        the new rows, of shared nodes the missing ones; 4. set the position; 5. commit.
        """
        rows = GraphRows.from_contributions(contribution for _, contribution in changes if contribution is not None)
        nodes = {table: arrow_rows(table, new.values()) for table, new in rows.nodes.items()}  # 1
        relationships = {table: arrow_rows(table, new) for table, new in rows.relationships.items()}
        self._require_unchanged()
        with self._failing_in_doubt(f"take {len(changes)} changes"):
            self._reconnect()
            self._run("BEGIN TRANSACTION")
            self._remove([document_node_id(key) for key, _ in changes])  # 2
            for table in SHARED_TABLES:
                nodes[table] = self._missing(table, nodes[table])
            for table, new in (nodes | relationships).items():  # 3
                if new.num_rows:
                    self._run(f"COPY {table} FROM $rows", rows=new)
            self._run(  # 4
                "MERGE (applied:Applied {id: 0}) SET applied.position = $position, applied.schema = $schema",
                position=position,
                schema=SCHEMA_VERSION,
            )
            self._run("COMMIT")  # 5

    def collect_orphans(self) -> int:
        """Clear the shared nodes without evidence; returns their number.

        Kùzu cannot delete a node that a forward-only table points to. A cleared node keeps only its id, which tells
        nothing, and is filled again with new evidence.
        """
        self._require_unchanged()
        with self._failing_in_doubt("collect orphans"):
            return sum(self._clear_orphans(shared) for shared in SHARED_TABLES)

    def snapshot(self, snapshots_dir: Path) -> SnapshotFile:
        """Publish the graph as the newest snapshot, compacted first if needed. A crash leaves the previous one."""
        with self._failing_in_doubt("make a snapshot"):
            if needs_compaction(self._connection):
                self._compact()
            self._run("CHECKPOINT")
            counts = {table: self._count(table) for table in ("Document", "Chunk", "Entity", "Statement")}
            position = self.position()
        made = publish_snapshot(self._path, snapshots_dir, position=position, counts=counts)
        self._unchanged_since = made
        return made

    def close(self) -> None:
        """Close the store with its checksum; one in doubt is left for the next start to replace."""
        if not self._in_doubt:
            with self._failing_in_doubt("be closed"):
                self._run("CHECKPOINT")
                self._shut()
            replace_file(self._path.with_name(CLOSED), file_checksum(self._path).encode())
            self._unclosed.unlink(missing_ok=True)
        self._lock.release()

    def _open(self) -> None:
        self._unclosed.touch()
        self._path.with_name(CLOSED).unlink(missing_ok=True)
        self._database = kuzu.Database(
            str(self._path), buffer_pool_size=self._buffer_bytes, max_db_size=MAX_DATABASE_BYTES
        )
        self._connection = kuzu.Connection(self._database)
        for statement in statements_that_create():
            self._run(statement)
        stored = self._run("MATCH (applied:Applied {id: 0}) RETURN applied.schema").get_all()
        if stored and stored[0][0] != SCHEMA_VERSION:
            self._shut()
            raise RuntimeError(f"The graph has the tables of version {stored[0][0]}, not {SCHEMA_VERSION}.")

    def _reconnect(self) -> None:
        """A connection keeps every table that it ever copied in memory until it is closed."""
        self._connection.close()
        self._connection = kuzu.Connection(self._database)

    def _shut(self) -> None:
        self._connection.close()
        self._database.close()

    def _compact(self) -> None:
        fresh = self._path.with_name(f"{self._path.name}.fresh")
        compact(self._connection, fresh, buffer_pool_bytes=self._buffer_bytes)
        self._shut()
        for stale in self._path.parent.glob(f"{self._path.name}.*"):
            if stale != fresh:
                stale.unlink()
        fresh.replace(self._path)
        self._open()

    def _require_unchanged(self) -> None:
        """Before the first change after a snapshot, check that the file is still what was copied.

        Kùzu does not check its pages: a damaged one would be in every further snapshot.
        """
        since, self._unchanged_since = self._unchanged_since, None
        if since is not None and file_checksum(self._path) != since.checksum:
            self._in_doubt = True
            raise StoreInDoubt(f"The graph at {self._path} was changed on disk since its snapshot {since.name}.")

    def _clear_orphans(self, shared: str) -> int:
        orphans = self._ids(f"MATCH (node:{shared}) WHERE node.collection <> '' RETURN node.id AS id")
        for table, (source, target) in EVIDENCE_TABLES.items():
            if target == shared:
                orphans -= self._ids(f"MATCH (:{source})-[:{table}]->(node:{shared}) RETURN DISTINCT node.id AS id")
        if orphans:
            self._run(
                f"UNWIND $ids AS id MATCH (node:{shared} {{id: id}}) "
                f"SET node.collection = '', node.{NAMES[shared]} = ''",
                ids=sorted(orphans),
            )
        return len(orphans)

    def _count(self, table: str) -> int:
        filled = "WHERE node.collection <> '' " if table in SHARED_TABLES else ""
        return int(self._run(f"MATCH (node:{table}) {filled}RETURN count(*)").get_all()[0][0])

    def _remove(self, documents: Sequence[str]) -> None:
        """Delete documents with all they own, at a cost that does not depend on the size of the graph."""
        existing = sorted(self._existing("Document", documents))
        for path in OWNED:
            if len(existing) > MAX_LOOKUPS:
                found = f"MATCH (document:Document){path} WHERE document.id IN $ids"
                self._run(f"{found} DETACH DELETE node", ids=existing)
                continue
            for identifier in existing:
                self._run(f"MATCH (document:Document {{id: $id}}){path} DETACH DELETE node", id=identifier)
        for identifier in existing:
            self._run("MATCH (node:Document {id: $id}) DETACH DELETE node", id=identifier)

    def _existing(self, table: str, ids: Sequence[str]) -> set[str]:
        if len(ids) > MAX_LOOKUPS:
            return self._ids(f"UNWIND $ids AS id MATCH (node:{table} {{id: id}}) RETURN node.id AS id", ids=ids)
        find = f"MATCH (node:{table} {{id: $id}}) RETURN node.id AS id"
        return {found for identifier in ids for found in self._ids(find, id=identifier)}

    def _missing(self, table: str, rows: pa.Table) -> pa.Table:
        """The rows that do not exist yet; cleared nodes are filled again."""
        ids = rows["id"].to_pylist()
        existing = self._existing(table, ids)
        if not existing:
            return rows
        cleared = f"UNWIND $ids AS id MATCH (node:{table} {{id: id}}) WHERE node.collection = '' RETURN node.id AS id"
        found = pa.array(sorted(self._ids(cleared, ids=sorted(existing))), pa.string())
        for row in rows.filter(pc.is_in(rows["id"], value_set=found)).to_pylist():
            self._run(
                f"MATCH (node:{table} {{id: $id}}) SET node.collection = $collection, node.{NAMES[table]} = $name",
                id=row["id"],
                collection=row["collection"],
                name=row[NAMES[table]],
            )
        return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=pa.array(sorted(existing), pa.string()))))

    def _ids(self, cypher: str, **parameters: object) -> set[str]:
        return set(self._run(cypher, **parameters).get_as_arrow().column("id").to_pylist())

    def _run(self, cypher: str, **parameters: object) -> Any:
        return self._connection.execute(cypher, parameters)

    @contextmanager
    def _failing_in_doubt(self, doing: str) -> Iterator[None]:
        """After an error the handle is not used again: after a COMMIT that met a full disk the next call crashes."""
        if self._in_doubt:
            raise StoreInDoubt(f"The graph could not {doing}: it failed before; restart the worker.")
        try:
            yield
        except RuntimeError as error:
            self._in_doubt = True
            raise StoreInDoubt(f"The graph could not {doing}: {error}") from error


def default_buffer_bytes() -> int:
    return max(MIN_BUFFER_BYTES, psutil.virtual_memory().total // BUFFER_DIVISOR)


def _locked(path: Path) -> FileLock:
    """Our own lock: Kùzu's is a POSIX one, which the process loses when a snapshot closes its copy of the file."""
    lock = FileLock(path.with_name("lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise StoreInUse(f"Another process writes the graph at {path}; stop it first.") from error
    return lock


def _restore(path: Path, snapshots_dir: Path) -> None:
    """Put the newest snapshot, or nothing, where the graph was. May be interrupted and made again."""
    path.with_name(UNCLOSED).touch()
    for stale in path.parent.glob(f"{path.name}*"):
        stale.unlink()
    newest = newest_intact_snapshot(snapshots_dir)
    if newest is None:
        return
    try:
        shutil.copyfile(snapshots_dir / newest.name, path)
    except OSError as error:
        raise TransientStoreError(f"The graph could not be taken from {newest.name}: {error}") from error


def publish_snapshot(graph: Path, snapshots_dir: Path, *, position: int, counts: Mapping[str, int]) -> SnapshotFile:
    """Make a copy of the checkpointed graph file the newest snapshot, and drop those nobody reads any more."""
    snapshots_dir.mkdir(parents=True, exist_ok=True)
    made_at_ms = time.time_ns() // 1_000_000
    name = f"{max(position, 0):012d}-{made_at_ms}{SUFFIX}"
    copy = snapshots_dir / f".{name}.part"
    shutil.copyfile(graph, copy)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    snapshot = SnapshotFile(
        name=name,
        graph_position=position,
        made_at_ms=made_at_ms,
        documents=counts["Document"],
        chunks=counts["Chunk"],
        entities=counts["Entity"],
        statements=counts["Statement"],
        schema=SCHEMA_VERSION,
        checksum=file_checksum(copy),
    ).seal()
    copy.replace(snapshots_dir / name)
    replace_file(description_of(snapshots_dir / name), msgspec.json.encode(snapshot))
    replace_file(snapshots_dir / POINTER, msgspec.json.encode(snapshot))
    _prune(snapshots_dir)
    return snapshot


def _prune(snapshots_dir: Path) -> None:
    published = sorted(snapshots_dir.glob(f"*{SUFFIX}"), key=lambda path: path.name.partition("-")[2])
    for stale in published[:-KEPT_SNAPSHOTS]:
        description_of(stale).unlink(missing_ok=True)
        stale.unlink(missing_ok=True)
    for part in snapshots_dir.glob(".*.part"):
        part.unlink(missing_ok=True)
