"""The graph handed out by Kùzu, in bounded ranges, as the tables of a snapshot.

Kùzu holds a whole result before it gives the first row: the graph at once takes thirty times its size. So nodes and
edges are read by ranges of the internal numbers of nodes, each of about as many rows, and written as they come.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import kuzu
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.graph_schema import EVIDENCE_TABLES, MAX_DATABASE_BYTES, ends_of
from indexer.read.graph_tables import TABLES, packed

EXPORT_BUFFER_BYTES = 32 * 1024**2
ROWS_AT_A_TIME = 16_384
SCANS = 32  # each range scans the internal numbers of the whole table: large tables are read in so many ranges
FIRST_RANGE = 1_024
NOWHERE = -1

Rows = NDArray[np.int32]


class _Nodes(NamedTuple):
    """A node table of Kùzu and its table in the snapshot; the relationship that comes from a node's owner, and the
    column that holds the owner's row."""

    kuzu: str
    table: str
    owner: tuple[str, str] | None = None


class _Edges(NamedTuple):
    kuzu: str
    table: str


_OWNED = (
    _Nodes("Document", "documents"),
    _Nodes("Section", "sections", ("HAS_SECTION", "document")),
    _Nodes("Chunk", "chunks", ("HAS_CHUNK", "section")),
    _Nodes("Statement", "statements", ("STATES", "chunk")),
)
_SHARED = (_Nodes("Entity", "entities"), _Nodes("DocumentName", "document_names"))
_EDGES = (
    _Edges("ABOUT", "about"),
    _Edges("MENTIONS", "mentions"),
    _Edges("ROLE", "roles"),
    _Edges("CHUNK_EDGE", "chunk_edges"),
    _Edges("LINKS_TO", "links"),
)


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
    """`_rows`: for each node table of Kùzu, the row in the snapshot of the node at each offset, else NOWHERE."""

    def __init__(self, connection: kuzu.Connection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder
        self._rows: dict[str, Rows] = {}
        self._written: dict[str, int] = {}
        self._unreachable: dict[str, int] = {}

    def run(self) -> ExportedGraph:
        """Owned nodes after their owners, shared nodes by their evidence, then the edges."""
        for nodes in _OWNED:
            self._write_owned(nodes)
        for nodes in _SHARED:
            self._write_shared(nodes)
        for edges in _EDGES:
            self._write_edges(edges)
        unreachable = {table: count for table, count in self._unreachable.items() if count}
        return ExportedGraph(self._written, unreachable)

    def _write_owned(self, nodes: _Nodes) -> None:
        owners = None if nodes.owner is None else self._owners(nodes.owner[0])
        with self._writing(nodes.table) as writer:
            for found in self._nodes(nodes, "true"):
                columns = _columns(nodes.table, found)
                if nodes.owner is None or owners is None:
                    self._write_nodes(nodes, writer, found, columns)
                    continue
                of = owners[_numbers(found["row"])]
                is_owned = of != NOWHERE
                self._unreachable[nodes.table] += int(np.count_nonzero(~is_owned))
                columns[nodes.owner[1]] = pa.array(of)
                self._write_nodes(nodes, writer, found, columns, is_owned)

    def _write_shared(self, nodes: _Nodes) -> None:
        """Those with evidence, which comes from an owned node."""
        has_evidence = np.zeros(self._offsets(nodes.kuzu), dtype=bool)
        for relationship, (source, target) in EVIDENCE_TABLES.items():
            if target == nodes.kuzu:
                for found in self._edges(relationship, ()):
                    live = self._rows[source][_numbers(found["source"])] != NOWHERE
                    has_evidence[_numbers(found["target"])[live]] = True
        with self._writing(nodes.table) as writer:
            for found in self._nodes(nodes, "a.collection <> ''"):
                kept = has_evidence[_numbers(found["row"])]
                self._write_nodes(nodes, writer, found, _columns(nodes.table, found), kept)

    def _write_edges(self, edges: _Edges) -> None:
        source, target = ends_of(edges.kuzu)
        properties = [name for name in TABLES[edges.table].names if name not in ("source", "target")]
        with self._writing(edges.table) as writer:
            for found in self._edges(edges.kuzu, properties):
                columns = _columns(edges.table, found)
                sources = self._rows[source][_numbers(found["source"])]
                targets = self._rows[target][_numbers(found["target"])]
                columns |= {"source": pa.array(sources), "target": pa.array(targets)}
                kept = (sources != NOWHERE) & (targets != NOWHERE)
                self._unreachable[edges.table] += int(np.count_nonzero(~kept))
                writer.write(_filtered(columns, kept))

    def _write_nodes(
        self,
        nodes: _Nodes,
        writer: TableWriter,
        found: pa.Table,
        columns: dict[str, pa.Array],
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        offsets = _numbers(found["row"])
        if kept is not None:
            columns, offsets = _filtered(columns, kept), offsets[kept]
        self._rows[nodes.kuzu][offsets] = np.arange(writer.rows, writer.rows + len(offsets), dtype=np.int32)
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

    def _owners(self, relationship: str) -> Rows:
        """For each offset of the owned table, the row of the owner."""
        source, target = ends_of(relationship)
        owners = np.full(self._offsets(target), NOWHERE, dtype=np.int32)
        for found in self._edges(relationship, ()):
            owners[_numbers(found["target"])] = self._rows[source][_numbers(found["source"])]
        return owners

    def _nodes(self, nodes: _Nodes, condition: str) -> Iterator[pa.Table]:
        self._rows[nodes.kuzu] = np.full(self._offsets(nodes.kuzu), NOWHERE, dtype=np.int32)
        owner = None if nodes.owner is None else nodes.owner[1]
        columns = "".join(f", a.{name} AS {name}" for name in TABLES[nodes.table].names if name != owner)
        matched = f"MATCH (a:{nodes.kuzu})"
        yield from self._ranges(nodes.kuzu, matched, condition, f"offset(id(a)) AS row{columns}")

    def _edges(self, relationship: str, properties: Sequence[str]) -> Iterator[pa.Table]:
        source, target = ends_of(relationship)
        columns = "".join(f", r.{name} AS {name}" for name in properties)
        matched = f"MATCH (a:{source})-[r:{relationship}]->(b:{target})"
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
        last = self._run(f"MATCH (a:{table}) RETURN max(offset(id(a))) AS last")["last"]
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
        values = _one_array(found[field.name])
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


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined
