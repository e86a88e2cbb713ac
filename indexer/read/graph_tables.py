"""The tables of a graph snapshot: nodes, and edges that name nodes by their row in the node's table.

Ids are 16 bytes; `with_ids` spells them, and what edges name, as 32 hex digits. Strings that recur are dictionaries.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

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

TABLES: dict[str, pa.Schema] = {
    name: pa.schema(columns)
    for name, columns in {
        "documents": {
            "id": _ID,
            "collection": _RECURRING,
            "document_id": pa.string(),
            "revision": pa.string(),
            "title": pa.string(),
        },
        "sections": {
            "id": _ID,
            "document": _ROW,
            "ordinal": pa.int32(),
            "title": pa.string(),
            "level": pa.int32(),
            "parent": pa.int32(),
        },
        "chunks": {"id": _ID, "section": _ROW, "ordinal": pa.int32(), "passage": pa.int32(), "passage_id": _ID},
        "entities": {"id": _ID, "collection": _RECURRING, "name": pa.string()},
        "statements": {
            "id": _ID,
            "chunk": _ROW,
            "predicate": _RECURRING,
            "confidence": pa.float64(),
            "extractor": _RECURRING,
            "sentence": pa.int32(),
        },
        "document_names": {"id": _ID, "collection": _RECURRING, "document_id": pa.string()},
        "about": {"source": _ROW, "target": _ROW, "surface": pa.string(), "weight": pa.float64()},
        "mentions": {
            "source": _ROW,
            "target": _ROW,
            "kind": _RECURRING,
            "surface": pa.string(),
            "count": pa.int32(),
            "sentences": pa.list_(pa.int32()),
            "entity_type": _RECURRING,
            "confidence": pa.float64(),
        },
        "roles": {"source": _ROW, "target": _ROW, "role": _RECURRING, "surface": pa.string()},
        "chunk_edges": {"source": _ROW, "target": _ROW, "kind": _RECURRING, "weight": pa.float64()},
        "links": {"source": _ROW, "target": _ROW, "weight": pa.float64()},
    }.items()
}
"""{table: its columns}; `parent` is the ordinal of a section, no row."""

REFERENCES = {
    ("sections", "document"): "documents",
    ("chunks", "section"): "sections",
    ("statements", "chunk"): "chunks",
    ("about", "source"): "documents",
    ("about", "target"): "entities",
    ("mentions", "source"): "chunks",
    ("mentions", "target"): "entities",
    ("roles", "source"): "statements",
    ("roles", "target"): "entities",
    ("chunk_edges", "source"): "chunks",
    ("chunk_edges", "target"): "chunks",
    ("links", "source"): "chunks",
    ("links", "target"): "document_names",
}
"""{(table, column): the table whose rows it names}"""

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
    about: pa.Table
    mentions: pa.Table
    roles: pa.Table
    chunk_edges: pa.Table
    links: pa.Table

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
        ids: list[str] = spelled(_one_array(self.table(name)["id"])).to_pylist()
        return ids

    def rows_named(self, name: str, column: str) -> NDArray[np.int32]:
        """What a column of REFERENCES holds."""
        numbers: NDArray[np.int32] = self.table(name)[column].to_numpy()
        return numbers

    def documents_of_chunks(self) -> NDArray[np.int32]:
        """The row of each chunk's document."""
        return self.rows_named("sections", "document")[self.rows_named("chunks", "section")]

    def with_ids(self, name: str, batch_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """A table in batches, with ids in place of rows and strings in place of dictionaries; chunks with their
        document, links with the collection and id of the document that they name."""
        references = REFERENCES | {("chunks", "document"): "documents"}
        ids = {column: _one_array(self.table(of)["id"]) for (table, column), of in references.items() if table == name}
        for first in range(0, self.table(name).num_rows, batch_rows):
            part = self.table(name).slice(first, batch_rows)
            for (table, column), (by, of) in _ADDED.items():
                if table == name:
                    part = part.append_column(column, self.table(of)[column].take(part[by]))
            yield pa.table({column: _spelled_column(part[column], ids.get(column)) for column in part.column_names})


def with_missing_columns(name: str, table: pa.Table) -> pa.Table:
    """A table of an earlier program, with the columns of TABLES that it had not: empty strings, or 0."""
    for field in TABLES[name]:
        if field.name not in table.column_names:
            empty: object = "" if pa.types.is_dictionary(field.type) or pa.types.is_string(field.type) else 0
            values = pa.repeat(pa.scalar(empty, _plain_type(field.type)), table.num_rows)
            table = table.append_column(field, values.cast(field.type))
    return table.select(TABLES[name].names)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


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
    content = bytes.fromhex("".join(ids.to_pylist()))
    if len(content) != ID_BYTES * len(ids):
        raise ValueError("Every node id has 32 hex digits.")
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
    whole: Any = _one_array(column)
    if named is not None:
        return spelled(named.take(whole))
    if whole.type == _ID:
        return spelled(whole)
    if whole.type == _RECURRING:
        return whole.dictionary_decode()
    return whole


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined
