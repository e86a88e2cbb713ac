"""The graph writer: replaces documents' contributions in Kùzu, with the position reached, in one transaction.

Kùzu's own recovery is not relied on: a process killed in a COMMIT after COPY keeps the deletes and the position and
loses the rows, and replaying deletes drops other rows from the primary keys. So a graph that was not closed is thrown
away and taken from the newest snapshot, and the log brings the rest: the position in the store says from where.
"""

import importlib.util  # noqa: F401 -- Kùzu's first COPY from Arrow looks for it without importing it
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kuzu
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
from indexer.integrity.check import CLOSED, closed_graph_damage
from indexer.integrity.file_checksums import file_checksum
from indexer.read.graph_snapshots import SnapshotFile, newest_intact_snapshot
from indexer.write.graph_snapshots import publish_snapshot
from indexer.write.kuzu_compaction import is_worn, write_anew
from indexer.write.kuzu_rows import GraphRows, arrow_rows
from schemas.contributions import Contribution
from schemas.ids import DocumentKey, document_node_id

NAMES = {"Entity": "name", "DocumentName": "document_id"}
OWNED = (
    "-[:HAS_SECTION]->(:Section)-[:HAS_CHUNK]->(:Chunk)-[:STATES]->(node:Statement)",
    "-[:HAS_SECTION]->(:Section)-[:HAS_CHUNK]->(node:Chunk)",
    "-[:HAS_SECTION]->(node:Section)",
)
FEW = 16  # ids are looked up one by one in the primary key, at a cost that does not grow; more are found by one scan
LEAST_BUFFER_BYTES = 1024**3
BUFFER_SHARE = 4  # of the machine's memory: a quarter, of which as much is taken as the graph needs
UNCLOSED = "unclosed"

log = structlog.get_logger(__name__)


class GraphWriter:
    """The one process that writes a generation's graph. Not thread-safe: call it from one thread at a time.

    Each call may be repeated with the same arguments and then changes nothing. Every method raises StoreInDoubt once
    the store has failed: the process then ends, and the next one begins with the newest snapshot.
    """

    def __init__(self, path: Path, lock: FileLock, buffer_bytes: int) -> None:
        """`lock` is held, and given back by `close`. Use `open`."""
        self._buffer_bytes = buffer_bytes
        self._path = path
        self._lock = lock
        self._unclosed = path.with_name(UNCLOSED)
        self._in_doubt = False
        self._untouched_since: SnapshotFile | None = None
        self._open()

    @classmethod
    def open(cls, generation: Generation, buffer_bytes: int | None = None) -> "GraphWriter":
        """Open the graph, made new where there is none.

        `buffer_bytes` is the most memory Kùzu may hold pages in; a quarter of the machine's unless given. A COMMIT
        needs about as much as the graph's file has: at 256 MiB one of 390 MB took no change any more.

        A graph that was not closed, was changed since, or cannot be opened, is replaced by the newest intact snapshot:
        `position()` then says from where the graph topic has to be read again. Raises StoreInUse when another process
        has it open.
        """
        path = generation.graph_path
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
        damage = closed_graph_damage(path)
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
        """The offset on the graph topic up to which everything is applied; -1 for none."""
        with self._sound("tell its position"):
            rows = self._run("MATCH (applied:Applied {id: 0}) RETURN applied.position").get_all()
        return int(rows[0][0]) if rows else -1

    def apply(self, changes: Sequence[tuple[DocumentKey, Contribution | None]], position: int) -> None:
        """Replace, or withdraw (None), the contribution of each document and store the position, all or nothing.

        1. make the rows (ValueError when a contribution holds what no column takes); 2. delete what the documents had;
        3. copy the new rows, of shared nodes those that are missing; 4. set the position; 5. commit.
        """
        rows = GraphRows.of(contribution for _, contribution in changes if contribution is not None)
        nodes = {table: arrow_rows(table, held.values()) for table, held in rows.nodes.items()}  # 1
        relationships = {table: arrow_rows(table, held) for table, held in rows.relationships.items()}
        self._require_untouched()
        with self._sound(f"take {len(changes)} changes"):
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
        """Empty the shared nodes whose last evidence is gone; the number emptied.

        Kùzu cannot delete a node at the end of a table that is stored forward only. An emptied node keeps its id,
        which says nothing, and is filled again when evidence comes.
        """
        self._require_untouched()
        with self._sound("collect orphans"):
            return sum(self._empty_orphans(shared) for shared in SHARED_TABLES)

    def snapshot(self, snapshots_dir: Path) -> SnapshotFile:
        """Publish the graph as it is as the newest snapshot. A crash at any moment leaves the one before.

        A graph worn by many replaced documents is written anew first.
        """
        with self._sound("make a snapshot"):
            if is_worn(self._connection):
                self._renew()
            self._run("CHECKPOINT")
            counts = {table: self._count(table) for table in ("Document", "Chunk", "Entity", "Statement")}
            position = self.position()
        made = publish_snapshot(self._path, snapshots_dir, position=position, counts=counts)
        self._untouched_since = made
        return made

    def close(self) -> None:
        """Close the store so that the next start can trust it; one in doubt is left for the next start to replace."""
        if not self._in_doubt:
            with self._sound("be closed"):
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
        """A connection keeps every table that it was ever given to copy, until it is closed."""
        self._connection.close()
        self._connection = kuzu.Connection(self._database)

    def _shut(self) -> None:
        self._connection.close()
        self._database.close()

    def _renew(self) -> None:
        fresh = self._path.with_name(f"{self._path.name}.fresh")
        write_anew(self._connection, fresh, buffer_pool_bytes=self._buffer_bytes)
        self._shut()
        for stale in self._path.parent.glob(f"{self._path.name}.*"):
            if stale != fresh:
                stale.unlink()
        fresh.replace(self._path)
        self._open()

    def _require_untouched(self) -> None:
        """Before the first change after a snapshot: the file is still what was copied, so nobody else has changed it.

        Kùzu reads its pages as they are; a damaged one would else be in every snapshot from now on.
        """
        since, self._untouched_since = self._untouched_since, None
        if since is not None and file_checksum(self._path) != since.checksum:
            self._in_doubt = True
            raise StoreInDoubt(f"The graph at {self._path} was changed on disk since its snapshot {since.name}.")

    def _empty_orphans(self, shared: str) -> int:
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
        """Delete documents with all they own, in a time that depends on them alone."""
        held = sorted(self._held("Document", documents))
        for path in OWNED:
            if len(held) > FEW:
                found = f"MATCH (document:Document){path} WHERE document.id IN $ids"
                self._run(f"{found} DETACH DELETE node", ids=held)
                continue
            for identifier in held:
                self._run(f"MATCH (document:Document {{id: $id}}){path} DETACH DELETE node", id=identifier)
        for identifier in held:
            self._run("MATCH (node:Document {id: $id}) DETACH DELETE node", id=identifier)

    def _held(self, table: str, ids: Sequence[str]) -> set[str]:
        if len(ids) > FEW:
            return self._ids(f"UNWIND $ids AS id MATCH (node:{table} {{id: id}}) RETURN node.id AS id", ids=ids)
        find = f"MATCH (node:{table} {{id: $id}}) RETURN node.id AS id"
        return {found for identifier in ids for found in self._ids(find, id=identifier)}

    def _missing(self, table: str, rows: pa.Table) -> pa.Table:
        """The rows that are not there yet; emptied ones are filled again."""
        ids = rows["id"].to_pylist()
        held = self._held(table, ids)
        if not held:
            return rows
        emptied = f"UNWIND $ids AS id MATCH (node:{table} {{id: id}}) WHERE node.collection = '' RETURN node.id AS id"
        found = pa.array(sorted(self._ids(emptied, ids=sorted(held))), pa.string())
        for row in rows.filter(pc.is_in(rows["id"], value_set=found)).to_pylist():
            self._run(
                f"MATCH (node:{table} {{id: $id}}) SET node.collection = $collection, node.{NAMES[table]} = $name",
                id=row["id"],
                collection=row["collection"],
                name=row[NAMES[table]],
            )
        return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=pa.array(sorted(held), pa.string()))))

    def _ids(self, cypher: str, **parameters: object) -> set[str]:
        return set(self._run(cypher, **parameters).get_as_arrow().column("id").to_pylist())

    def _run(self, cypher: str, **parameters: object) -> Any:
        return self._connection.execute(cypher, parameters)

    @contextmanager
    def _sound(self, doing: str) -> Iterator[None]:
        """After an error the handle is not used again: after a COMMIT that met a full disk the next call crashes."""
        if self._in_doubt:
            raise StoreInDoubt(f"The graph could not {doing}: it failed before; restart the worker.")
        try:
            yield
        except RuntimeError as error:
            self._in_doubt = True
            raise StoreInDoubt(f"The graph could not {doing}: {error}") from error


def default_buffer_bytes() -> int:
    return max(LEAST_BUFFER_BYTES, psutil.virtual_memory().total // BUFFER_SHARE)


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
