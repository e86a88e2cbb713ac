"""The graph's tables, described once: nodes, and edges that name nodes by their row in the node's table.

What is merged, published, compared and copied into Kùzu is derived from DESCRIBED. Ids are 16 bytes; `with_ids` spells
them, and what edges name, as 32 hex digits. Strings that recur are dictionaries.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.errors import DamagedStore

BATCH_ROWS = 10_000
ID_BYTES = 16

_ID = pa.binary(ID_BYTES)
_ROW = pa.int32()
_RECURRING = pa.dictionary(pa.int32(), pa.string())
_ID_FORM = "^[0-9a-f]{32}$"


class Owner(NamedTuple):
    """The table of a node's owner, the column that names the owner's row, and the label of the edge that leads here."""

    table: str
    column: str
    label: str


class NodeTable(NamedTuple):
    """A table of nodes; its first column is `id`, its second names the owner, if there is one.

    A shared node is there as long as an edge leads to it; every other belongs to one document. Labels are Kùzu's names.
    """

    label: str
    columns: dict[str, pa.DataType]
    owner: Owner | None = None
    is_shared: bool = False


class EdgeTable(NamedTuple):
    """A table of edges; its first columns are `source` and `target`, rows of these tables. An edge belongs to the
    document of its source."""

    label: str
    source: str
    target: str
    columns: dict[str, pa.DataType]


DESCRIBED: dict[str, NodeTable | EdgeTable] = {
    "documents": NodeTable(
        "Document",
        {"collection": _RECURRING, "document_id": pa.string(), "revision": pa.string(), "title": pa.string()},
    ),
    "sections": NodeTable(
        "Section",
        {"ordinal": pa.int32(), "title": pa.string(), "level": pa.int32(), "parent": pa.int32()},
        Owner("documents", "document", "HAS_SECTION"),
    ),
    "chunks": NodeTable(
        "Chunk",
        {"ordinal": pa.int32(), "passage": pa.int32(), "passage_id": _ID},
        Owner("sections", "section", "HAS_CHUNK"),
    ),
    "entities": NodeTable("Entity", {"collection": _RECURRING, "name": pa.string()}, is_shared=True),
    "statements": NodeTable(
        "Statement",
        {"predicate": _RECURRING, "confidence": pa.float64(), "extractor": _RECURRING, "sentence": pa.int32()},
        Owner("chunks", "chunk", "STATES"),
    ),
    "document_names": NodeTable("DocumentName", {"collection": _RECURRING, "document_id": pa.string()}, is_shared=True),
    "nodes": NodeTable(
        "Node",
        {
            "name": pa.string(),
            "label": pa.string(),
            "type": _RECURRING,
            "aliases": pa.list_(pa.string()),
            "attributes": pa.string(),
        },
        Owner("documents", "document", "DESCRIBES"),
    ),
    "references": NodeTable("Reference", {"collection": _RECURRING, "name": pa.string()}, is_shared=True),
    "relations": NodeTable(
        "Relation",
        {"name": pa.string(), "predicate": _RECURRING, "weight": pa.float64(), "attributes": pa.string()},
        Owner("documents", "document", "SAYS"),
    ),
    "about": EdgeTable("ABOUT", "documents", "entities", {"surface": pa.string(), "weight": pa.float64()}),
    "mentions": EdgeTable(
        "MENTIONS",
        "chunks",
        "entities",
        {
            "kind": _RECURRING,
            "surface": pa.string(),
            "count": pa.int32(),
            "sentences": pa.list_(pa.int32()),
            "entity_type": _RECURRING,
            "confidence": pa.float64(),
        },
    ),
    "roles": EdgeTable("ROLE", "statements", "entities", {"role": _RECURRING, "surface": pa.string()}),
    "chunk_edges": EdgeTable("CHUNK_EDGE", "chunks", "chunks", {"kind": _RECURRING, "weight": pa.float64()}),
    "links": EdgeTable("LINKS_TO", "chunks", "document_names", {"weight": pa.float64()}),
    "ends": EdgeTable("JOINS", "relations", "references", {"role": _RECURRING}),
}
"""Owners before what they own, nodes before edges. `parent` is the ordinal of a section, not a row.

Nodes and relations are made by hand: a relation joins what two references name, in the roles `source` and `target`.
A reference is the id of a node, chunk or entity, or that of a document, arrived or not.
"""

NODES = {name: table for name, table in DESCRIBED.items() if isinstance(table, NodeTable)}
EDGES = {name: table for name, table in DESCRIBED.items() if isinstance(table, EdgeTable)}


def _rows_named() -> Iterator[tuple[str, str, str]]:
    for name, node in NODES.items():
        if node.owner is not None:
            yield name, node.owner.column, node.owner.table
    for name, edge in EDGES.items():
        yield name, "source", edge.source
        yield name, "target", edge.target


REFERENCES = {(table, column): of for table, column, of in _rows_named()}
"""{(table, column): the table whose rows it names}"""

TABLES: dict[str, pa.Schema] = {
    name: pa.schema(
        ({"id": _ID} if name in NODES else {})
        | {column: _ROW for table, column in REFERENCES if table == name}
        | described.columns
    )
    for name, described in DESCRIBED.items()
}
"""{table: its columns}"""

_ADDED = {
    ("chunks", "document"): ("section", "sections"),
    ("links", "collection"): ("target", "document_names"),
    ("links", "document_id"): ("target", "document_names"),
}
"""{(table, column that `with_ids` adds): (the column that names the row that holds it, of which table)}"""


@dataclass(frozen=True)
class GraphTables:
    """A snapshot's tables, with the columns of TABLES."""

    documents: pa.Table
    sections: pa.Table
    chunks: pa.Table
    entities: pa.Table
    statements: pa.Table
    document_names: pa.Table
    nodes: pa.Table
    references: pa.Table
    relations: pa.Table
    about: pa.Table
    mentions: pa.Table
    roles: pa.Table
    chunk_edges: pa.Table
    links: pa.Table
    ends: pa.Table

    @classmethod
    def empty(cls) -> "GraphTables":
        return cls(**{name: schema.empty_table() for name, schema in TABLES.items()})

    def table(self, name: str) -> pa.Table:
        table: pa.Table = getattr(self, name)
        return table

    def counts(self) -> dict[str, int]:
        return {field.name: self.table(field.name).num_rows for field in fields(self)}

    def ids(self, name: str) -> list[str]:
        """The ids of a table's nodes, in the order of its rows."""
        return list(spelled(one_array(self.table(name)["id"])).to_pylist())

    def rows_named(self, name: str, column: str) -> NDArray[np.int32]:
        """What a column of REFERENCES holds."""
        numbers: NDArray[np.int32] = self.table(name)[column].to_numpy()
        return numbers

    def documents_of(self, name: str) -> NDArray[np.int32]:
        """The row of the document that each row of a table belongs to; of one without shared nodes."""
        described = DESCRIBED[name]
        if isinstance(described, EdgeTable):
            return self.documents_of(described.source)[self.rows_named(name, "source")]
        if described.owner is None:
            return np.arange(self.table(name).num_rows, dtype=np.int32)
        return self.documents_of(described.owner.table)[self.rows_named(name, described.owner.column)]

    def with_ids(self, name: str, batch_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """A table in batches, with ids in place of rows and strings in place of dictionaries; chunks with their
        document, links with the collection and id of the document that they name."""
        references = REFERENCES | {("chunks", "document"): "documents"}
        ids = {column: one_array(self.table(of)["id"]) for (table, column), of in references.items() if table == name}
        for first in range(0, self.table(name).num_rows, batch_rows):
            part = self.table(name).slice(first, batch_rows)
            for (table, column), (by, of) in _ADDED.items():
                if table == name:
                    part = part.append_column(column, self.table(of)[column].take(part[by]))
            yield pa.table({column: _spelled_column(part[column], ids.get(column)) for column in part.column_names})


def require_known_rows(name: str, table: pa.Table, rows: Mapping[str, int]) -> None:
    """Raises DamagedStore where a column names a row that its table, of so many `rows`, does not have."""
    for (referring, column), of in REFERENCES.items():
        if referring != name or not table.num_rows:
            continue
        bounds = pc.min_max(table[column]).as_py()
        if table[column].null_count or bounds["min"] < 0 or bounds["max"] >= rows[of]:
            raise DamagedStore(f"{name} of the graph's snapshot name {of} that it does not hold.")


def packed(ids: pa.Array) -> pa.Array:
    """Ids of 32 hex digits as 16 bytes. Raises ValueError for another id."""
    if pc.all(pc.match_substring_regex(ids, _ID_FORM)).as_py() is False:
        raise ValueError("Every node id has 32 hex digits.")
    content = bytes.fromhex("".join(ids.to_pylist()))
    return pa.Array.from_buffers(_ID, len(ids), [None, pa.py_buffer(content)])


def spelled(ids: pa.Array) -> pa.Array:
    """Ids of 16 bytes as 32 hex digits."""
    content = ids.buffers()[1][ID_BYTES * ids.offset : ID_BYTES * (ids.offset + len(ids))]
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * (2 * ID_BYTES)
    digits = content.to_pybytes().hex().encode()
    return pa.Array.from_buffers(pa.string(), len(ids), [None, pa.py_buffer(offsets), pa.py_buffer(digits)])


def id_keys(ids: pa.ChunkedArray) -> NDArray[np.uint64]:
    """(n,) the first 8 bytes of each id of 16, big-endian."""
    parts = [
        np.frombuffer(part.buffers()[1], dtype=">u8")[2 * part.offset : 2 * (part.offset + len(part)) : 2]
        for part in ids.chunks
        if len(part)
    ]
    return np.concatenate(parts).astype(np.uint64) if parts else np.empty(0, np.uint64)


def _spelled_column(column: pa.ChunkedArray, named: pa.Array | None) -> pa.Array:
    whole: Any = one_array(column)
    if named is not None:
        return spelled(named.take(whole))
    if whole.type == _ID:
        return spelled(whole)
    if whole.type == _RECURRING:
        return whole.dictionary_decode()
    return whole


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array, with one dictionary."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined
