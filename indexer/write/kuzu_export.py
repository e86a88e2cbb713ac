"""The graph handed out by Kùzu, in bounded ranges, as the tables of a snapshot.

Kùzu holds a whole result before it gives the first row: the graph at once takes thirty times its size. So nodes and
edges are read by ranges of the internal numbers of nodes, each of about as many rows, and written as they come.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kuzu
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.graph.kuzu_schema import EVIDENCE, MAX_DATABASE_BYTES
from indexer.graph.tables import EDGES, NODES, TABLES, EdgeTable, NodeTable, Owner, one_array, packed

EXPORT_BUFFER_BYTES = 32 * 1024**2
ROWS_AT_A_TIME = 16_384
SCANS = 32  # each range scans the internal numbers of the whole table: large tables are read in so many ranges
FIRST_RANGE = 1_024
NOWHERE = -1

Rows = NDArray[np.int32]


@dataclass(frozen=True)
class ExportedGraph:
    """The number of rows by table; of nodes and edges that belong to no document, and were left out."""

    rows: dict[str, int]
    unreachable: dict[str, int]


class TableWriter:
    """Writes a table of a snapshot in batches, with one dictionary for each column of recurring strings."""

    def __init__(self, folder: Path, table: str) -> None:
        self._schema = TABLES[table]
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        self._writer = pa.ipc.new_file(str(folder / f"{table}.arrow"), self._schema, options=options)
        self._words: dict[str, dict[str, int]] = {}
        self.rows = 0

    def write(self, columns: dict[str, pa.Array]) -> None:
        """All columns of the table; recurring strings as strings."""
        arrays = [self._column(field, columns[field.name]) for field in self._schema]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        self._writer.close()

    def _column(self, field: pa.Field, values: pa.Array) -> pa.Array:
        if not pa.types.is_dictionary(field.type):
            return values.cast(field.type)
        known = self._words.setdefault(field.name, {})
        encoded = values.dictionary_encode()
        codes = [known.setdefault(word, len(known)) for word in encoded.dictionary.to_pylist()]
        indices = pa.array(codes, pa.int32()).take(encoded.indices)
        return pa.DictionaryArray.from_arrays(indices, pa.array(known, pa.string()))


def export_graph(graph: Path, folder: Path) -> ExportedGraph:
    """Write the tables of a closed graph file into `folder`. Needs memory for a range, and some bytes a node."""
    with _opened(graph) as connection:
        return _Export(connection, folder).run()


@contextmanager
def _opened(graph: Path) -> Iterator[kuzu.Connection]:
    database = kuzu.Database(
        str(graph), read_only=True, buffer_pool_size=EXPORT_BUFFER_BYTES, max_db_size=MAX_DATABASE_BYTES
    )
    try:
        connection = kuzu.Connection(database, num_threads=1)
        try:
            yield connection
        finally:
            connection.close()
    finally:
        database.close()


class _Export:
    """`_rows`: for each table of nodes, the row in the snapshot of the node at each of Kùzu's offsets, else NOWHERE."""

    def __init__(self, connection: kuzu.Connection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder
        self._rows: dict[str, Rows] = {}
        self._written: dict[str, int] = {}
        self._unreachable: dict[str, int] = {}

    def run(self) -> ExportedGraph:
        """Owned nodes after their owners, shared nodes by their evidence, then the edges."""
        for name, node in NODES.items():
            if not node.is_shared:
                self._write_owned(name, node)
        for name, node in NODES.items():
            if node.is_shared:
                self._write_shared(name, node)
        for name, edge in EDGES.items():
            self._write_edges(name, edge)
        unreachable = {table: count for table, count in self._unreachable.items() if count}
        return ExportedGraph(self._written, unreachable)

    def _write_owned(self, name: str, node: NodeTable) -> None:
        owners = None if node.owner is None else self._owners(name, node.owner)
        with self._writing(name) as writer:
            for found in self._nodes(name, node, "true"):
                columns = _columns(name, found)
                if node.owner is None or owners is None:
                    self._write_nodes(name, writer, found, columns)
                    continue
                of = owners[_numbers(found["row"])]
                is_owned = of != NOWHERE
                self._unreachable[name] += int(np.count_nonzero(~is_owned))
                columns[node.owner.column] = pa.array(of)
                self._write_nodes(name, writer, found, columns, is_owned)

    def _write_shared(self, name: str, node: NodeTable) -> None:
        """Those with evidence, which comes from an owned node."""
        has_evidence = np.zeros(self._offsets(name), dtype=bool)
        for edge in EVIDENCE.values():
            if edge.target == name:
                for found in self._edges(edge.source, edge.label, name, ()):
                    live = self._rows[edge.source][_numbers(found["source"])] != NOWHERE
                    has_evidence[_numbers(found["target"])[live]] = True
        with self._writing(name) as writer:
            for found in self._nodes(name, node, "a.collection <> ''"):
                kept = has_evidence[_numbers(found["row"])]
                self._write_nodes(name, writer, found, _columns(name, found), kept)

    def _write_edges(self, name: str, edge: EdgeTable) -> None:
        with self._writing(name) as writer:
            for found in self._edges(edge.source, edge.label, edge.target, edge.columns):
                columns = _columns(name, found)
                sources = self._rows[edge.source][_numbers(found["source"])]
                targets = self._rows[edge.target][_numbers(found["target"])]
                columns |= {"source": pa.array(sources), "target": pa.array(targets)}
                kept = (sources != NOWHERE) & (targets != NOWHERE)
                self._unreachable[name] += int(np.count_nonzero(~kept))
                writer.write(_filtered(columns, kept))

    def _write_nodes(
        self,
        name: str,
        writer: TableWriter,
        found: pa.Table,
        columns: dict[str, pa.Array],
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        offsets = _numbers(found["row"])
        if kept is not None:
            columns, offsets = _filtered(columns, kept), offsets[kept]
        self._rows[name][offsets] = np.arange(writer.rows, writer.rows + len(offsets), dtype=np.int32)
        writer.write(columns)

    @contextmanager
    def _writing(self, table: str) -> Iterator[TableWriter]:
        self._unreachable[table] = 0
        writer = TableWriter(self._folder, table)
        try:
            yield writer
        finally:
            writer.close()
        self._written[table] = writer.rows

    def _owners(self, name: str, owner: Owner) -> Rows:
        """For each offset of the owned table, the row of the owner."""
        owners = np.full(self._offsets(name), NOWHERE, dtype=np.int32)
        for found in self._edges(owner.table, owner.label, name, ()):
            owners[_numbers(found["target"])] = self._rows[owner.table][_numbers(found["source"])]
        return owners

    def _nodes(self, name: str, node: NodeTable, condition: str) -> Iterator[pa.Table]:
        self._rows[name] = np.full(self._offsets(name), NOWHERE, dtype=np.int32)
        columns = "".join(f", a.{column} AS {column}" for column in ("id", *node.columns))
        matched = f"MATCH (a:{node.label})"
        yield from self._ranges(name, matched, condition, f"offset(id(a)) AS row{columns}")

    def _edges(self, source: str, label: str, target: str, properties: Iterable[str]) -> Iterator[pa.Table]:
        columns = "".join(f", r.{name} AS {name}" for name in properties)
        matched = f"MATCH (a:{NODES[source].label})-[r:{label}]->(b:{NODES[target].label})"
        returned = f"offset(id(a)) AS source, offset(id(b)) AS target{columns}"
        yield from self._ranges(source, matched, "true", returned)

    def _ranges(self, table: str, matched: str, condition: str, returned: str) -> Iterator[pa.Table]:
        """The rows of all nodes `a` of a table, by ranges of so many nodes that the densest so far has its rows.

        Kùzu reads what is returned only for the range, and keeps it in its buffer: a range that does not fit is halved.
        """
        query = f"{matched} WHERE offset(id(a)) >= $first AND offset(id(a)) < $until AND {condition} RETURN {returned}"
        first, size, density, offsets = 0, FIRST_RANGE, 1.0, self._offsets(table)
        while first < offsets:
            try:
                found = self._run(query, first=first, until=first + size)
            except RuntimeError as error:
                if "buffer pool is full" not in str(error) or size == 1:
                    raise
                size = size // 2
                continue
            first += size
            density = max(density, found.num_rows / size)
            size = max(1, offsets // SCANS, int(ROWS_AT_A_TIME / density))
            if found.num_rows:
                yield found

    def _offsets(self, table: str) -> int:
        """One more than the last offset of a node."""
        last = self._run(f"MATCH (a:{NODES[table].label}) RETURN max(offset(id(a))) AS last")["last"]
        return 0 if not len(last) or last[0].as_py() is None else int(last[0].as_py()) + 1

    def _run(self, cypher: str, **parameters: object) -> pa.Table:
        result: Any = self._connection.execute(cypher, parameters)
        try:
            return result.get_as_arrow()
        finally:
            result.close()


def _columns(table: str, found: pa.Table) -> dict[str, pa.Array]:
    """The columns of the snapshot's table that Kùzu's rows hold."""
    columns: dict[str, pa.Array] = {}
    for field in TABLES[table]:
        if field.name not in found.column_names:
            continue
        values = one_array(found[field.name])
        if pa.types.is_fixed_size_binary(field.type):
            values = packed(values)
        elif pa.types.is_list(field.type):
            values = _listed(values)
        columns[field.name] = values
    return columns


def _filtered(columns: dict[str, pa.Array], kept: NDArray[np.bool_]) -> dict[str, pa.Array]:
    if kept.all():
        return columns
    mask = pa.array(kept)
    return {name: values.filter(mask) for name, values in columns.items()}


def _listed(texts: pa.Array) -> pa.Array:
    """Lists of int32 from strings such as `3,17`; an empty list from an empty string."""
    split = pc.split_pattern(texts, ",")
    return pc.if_else(pc.equal(texts, ""), pa.scalar([], split.type), split).cast(pa.list_(pa.int32()))


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(column.to_numpy(), dtype=np.int64)
