"""One file of the graph in Kùzu: documents' contributions replaced together with the position, in one transaction."""

import ctypes
import importlib.util  # noqa: F401 -- Kùzu's first COPY from Arrow looks for it without importing it
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kuzu
import pyarrow as pa
import pyarrow.compute as pc

from indexer.graph.contributions import tables_of
from indexer.graph.kuzu_schema import (
    MAX_DATABASE_BYTES,
    SCHEMA_VERSION,
    SHARED_LABELS,
    copied_tables,
    rows_to_copy,
    statements_that_create,
)
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey, document_node_id

Change = tuple[DocumentKey, Contribution | None]

OWNED = (
    "-[:HAS_SECTION]->(:Section)-[:HAS_CHUNK]->(:Chunk)-[:STATES]->(node:Statement)",
    "-[:HAS_SECTION]->(:Section)-[:HAS_CHUNK]->(node:Chunk)",
    "-[:HAS_SECTION]->(node:Section)",
)
MAX_LOOKUPS = 16  # ids looked up one by one in the primary key, at constant cost; more are found by one scan


@dataclass(frozen=True)
class GraphChanges:
    """The rows of documents' new contributions by table, nodes first, and the ids of all documents that are replaced or
    deleted."""

    documents: list[str]
    rows: dict[str, pa.Table]

    @classmethod
    def from_changes(cls, changes: Sequence[Change]) -> "GraphChanges":
        """Raises ValueError for a value that no column can hold."""
        tables = tables_of(contribution for _, contribution in changes if contribution is not None)
        rows = {label: rows_to_copy(tables, label) for label in copied_tables()}
        return cls([document_node_id(key) for key, _ in changes], rows)


class GraphDatabase:
    """An open file. Not thread-safe; raises RuntimeError for whatever fails in Kùzu.

    After a failure Kùzu's objects are left in memory and open until the process ends: where a COMMIT met a full disk,
    their destructors corrupt the heap or terminate the process.
    """

    def __init__(self, path: Path, buffer_bytes: int, *, both_directions: bool = False) -> None:
        """Opens or creates it; `both_directions` as in `statements_that_create`. RuntimeError also where it has the
        tables of another version."""
        self._database = kuzu.Database(str(path), buffer_pool_size=buffer_bytes, max_db_size=MAX_DATABASE_BYTES)
        self._connection = kuzu.Connection(self._database)
        self._has_failed = False
        for statement in statements_that_create(both_directions=both_directions):
            self.run(statement)
        stored = self.run("MATCH (applied:Applied {id: 0}) RETURN applied.schema").get_all()
        if stored and stored[0][0] != SCHEMA_VERSION:
            self.close()
            raise RuntimeError(f"The graph has the tables of version {stored[0][0]}, not {SCHEMA_VERSION}.")

    def position(self) -> int:
        """The last offset of the graph topic that is applied; -1 for none."""
        rows = self.run("MATCH (applied:Applied {id: 0}) RETURN applied.position").get_all()
        return int(rows[0][0]) if rows else -1

    def apply(self, changes: GraphChanges, position: int) -> None:
        """Replace, or delete, the contribution of each document and store the position, in one transaction.

        1. delete the documents' old rows; 2. copy the new rows, of shared nodes the missing ones; 3. set the position;
        4. commit.
        """
        self.reconnect()
        self.run("BEGIN TRANSACTION")
        self._remove(changes.documents)  # 1
        for table, rows in changes.rows.items():  # 2
            is_shared = table in SHARED_LABELS and rows.num_rows
            self.copy_in(table, self._missing(table, rows) if is_shared else rows)
        self.set_position(position)  # 3
        self.run("COMMIT")  # 4

    def documents(self, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """{id: (revision, number of chunks)} of those that there are."""
        found = self.run(
            "UNWIND $ids AS id MATCH (document:Document {id: id}) "
            "OPTIONAL MATCH (document)-[:HAS_SECTION]->(:Section)-[:HAS_CHUNK]->(chunk:Chunk) "
            "RETURN document.id, document.revision, COUNT(chunk)",
            ids=list(ids),
        )
        return {identifier: (revision, chunks) for identifier, revision, chunks in found.get_all()}

    def extractors(self) -> set[str]:
        """The extractors of all statements."""
        return self._ids("MATCH (statement:Statement) RETURN DISTINCT statement.extractor AS id")

    def copy_in(self, table: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self.run(f"COPY {table} FROM $rows", rows=rows)

    def set_position(self, position: int) -> None:
        self.run(
            "MERGE (applied:Applied {id: 0}) SET applied.position = $position, applied.schema = $schema",
            position=position,
            schema=SCHEMA_VERSION,
        )

    def run(self, cypher: str, **parameters: object) -> Any:
        try:
            return self._connection.execute(cypher, parameters)
        except RuntimeError:
            self._leave_open()
            raise

    def close(self) -> None:
        if self._has_failed:
            return
        self._connection.close()
        self._database.close()

    def reconnect(self) -> None:
        """A connection keeps every table that it ever copied in memory until it is closed."""
        self._connection.close()
        self._connection = kuzu.Connection(self._database)

    def _leave_open(self) -> None:
        """One reference more, which nobody gives back, keeps Python from ever calling a destructor."""
        if not self._has_failed:
            self._has_failed = True
            for native in (self._connection, self._database):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(native))

    def _remove(self, documents: Sequence[str]) -> None:
        """Delete documents with all they own, at a cost that does not depend on the size of the graph."""
        existing = sorted(self._existing("Document", documents))
        for path in OWNED:
            if len(existing) > MAX_LOOKUPS:
                found = f"MATCH (document:Document){path} WHERE document.id IN $ids"
                self.run(f"{found} DETACH DELETE node", ids=existing)
                continue
            for identifier in existing:
                self.run(f"MATCH (document:Document {{id: $id}}){path} DETACH DELETE node", id=identifier)
        for identifier in existing:
            self.run("MATCH (node:Document {id: $id}) DETACH DELETE node", id=identifier)

    def _existing(self, table: str, ids: Sequence[str]) -> set[str]:
        if len(ids) > MAX_LOOKUPS:
            return self._ids(f"UNWIND $ids AS id MATCH (node:{table} {{id: id}}) RETURN node.id AS id", ids=ids)
        find = f"MATCH (node:{table} {{id: $id}}) RETURN node.id AS id"
        return {found for identifier in ids for found in self._ids(find, id=identifier)}

    def _missing(self, table: str, rows: pa.Table) -> pa.Table:
        """The rows that do not exist yet. Nodes that earlier versions cleared, to a mere id, are filled again."""
        ids = rows["id"].to_pylist()
        existing = self._existing(table, ids)
        if not existing:
            return rows
        cleared = f"UNWIND $ids AS id MATCH (node:{table} {{id: id}}) WHERE node.collection = '' RETURN node.id AS id"
        found = pa.array(sorted(self._ids(cleared, ids=sorted(existing))), pa.string())
        for row in rows.filter(pc.is_in(rows["id"], value_set=found)).to_pylist():
            self._fill(table, row)
        return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=pa.array(sorted(existing), pa.string()))))

    def _fill(self, table: str, row: Mapping[str, str]) -> None:
        properties = ", ".join(f"node.{name} = ${name}" for name in row if name != "id")
        self.run(f"MATCH (node:{table} {{id: $id}}) SET {properties}", **row)

    def _ids(self, cypher: str, **parameters: object) -> set[str]:
        return set(self.run(cypher, **parameters).get_as_arrow().column("id").to_pylist())
