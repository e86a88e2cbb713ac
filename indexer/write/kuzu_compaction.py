"""Compaction of the graph: the same nodes and edges in a new file, without the holes that replaced documents leave.

Kùzu never reuses the place of a deleted row, and commits near it pay for it: with as many replaced documents as live
ones a commit took five times as long and the file was three times as large.
"""

import os
from pathlib import Path
from typing import Any

import kuzu

from indexer.graph_schema import (
    MAX_DATABASE_BYTES,
    NODE_TABLES,
    RELATIONSHIP_TABLES,
    SHARED_TABLES,
    columns_of,
    statements_that_create,
)

WATCHED_TABLES = ("Chunk", "Statement")
MIN_HOLES = 20_000
MAX_HOLES = 0.5  # of the live rows


def needs_compaction(connection: kuzu.Connection) -> bool:
    """Whether there are so many deleted rows that a new file is worth its cost."""
    live, holes = 0, 0
    for table in WATCHED_TABLES:
        count, last = _rows(connection, f"MATCH (node:{table}) RETURN count(*), max(offset(id(node)))").get_all()[0]
        live += count
        holes += (last or 0) + 1 - count
    return holes > max(MIN_HOLES, MAX_HOLES * live)


def compact(connection: kuzu.Connection, path: Path, *, buffer_pool_bytes: int) -> None:
    """Copy everything that has evidence into a new, closed and synced database file at `path`.

    Needs memory for the largest table and, on two cores, some six seconds for a million edges.
    """
    for stale in path.parent.glob(f"{path.name}*"):
        stale.unlink()
    database = kuzu.Database(str(path), buffer_pool_size=buffer_pool_bytes, max_db_size=MAX_DATABASE_BYTES)
    try:
        fresh = kuzu.Connection(database)
        try:
            for statement in statements_that_create():
                fresh.execute(statement)
            for table in NODE_TABLES:
                _copy(fresh, table, _rows(connection, _all_nodes(table)).get_as_arrow())
            for table in RELATIONSHIP_TABLES:
                _copy(fresh, table, _rows(connection, _all_edges(table)).get_as_arrow())
        finally:
            fresh.close()
    finally:
        database.close()
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _all_nodes(table: str) -> str:
    columns = ", ".join(f"node.{name} AS {name}" for name in columns_of(table))
    kept = "WHERE node.collection <> '' " if table in SHARED_TABLES else ""
    return f"MATCH (node:{table}) {kept}RETURN {columns}"


def _all_edges(table: str) -> str:
    source, target = RELATIONSHIP_TABLES[table].partition(",")[0].removeprefix("FROM ").split(" TO ")
    columns = "".join(f", edge.{name} AS {name}" for name in list(columns_of(table))[2:])
    return f"MATCH (a:{source})-[edge:{table}]->(b:{target}) RETURN a.id AS source, b.id AS target{columns}"


def _copy(connection: kuzu.Connection, table: str, rows: Any) -> None:
    if rows.num_rows:
        connection.execute(f"COPY {table} FROM $rows", {"rows": rows})


def _rows(connection: kuzu.Connection, cypher: str) -> Any:
    return connection.execute(cypher)
