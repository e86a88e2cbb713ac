"""The tables of a graph snapshot as the columns that segments are built from."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.index.graph.columns import CHUNK_EDGE_KINDS, GraphColumns, Keys, halves, link_name_of
from schemas.ids import DocumentKey

if TYPE_CHECKING:
    from indexer.read.graph_tables import GraphTables


def columns_of_tables(tables: "GraphTables") -> GraphColumns:
    """Raises ValueError when an id is no id, or an edge's kind is unknown."""
    return GraphColumns(
        **{name: read(getattr(tables, table)[column]) for name, (table, column, read) in _SOURCES.items()},
        document_names=_link_names(tables.documents),
        link_names=_link_names(tables.links),
    )


def _link_names(table: pa.Table) -> Keys:
    """The keys of the names under which links find the documents of these rows; each document's is made once."""
    rows = list(zip(table["collection"].to_pylist(), table["document_id"].to_pylist(), strict=True))
    known = {row: link_name_of(DocumentKey(*row)) for row in set(rows)}
    return np.fromiter((known[row] for row in rows), dtype=np.uint64, count=len(rows))


def _array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return _array(column.cast(pa.string()))


def _keys(column: pa.ChunkedArray) -> Keys:
    return np.ascontiguousarray(_halves(column)[:, 0])


def _halves(column: pa.ChunkedArray) -> Keys:
    return halves(_texts(column))


def _integers(column: pa.ChunkedArray) -> NDArray[np.int32]:
    return _numbers(column, np.int32)


def _floats(column: pa.ChunkedArray) -> NDArray[np.float32]:
    return _numbers(column, np.float32)


def _numbers(column: pa.Array | pa.ChunkedArray, dtype: type[np.generic]) -> NDArray[Any]:
    return np.asarray(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy(), dtype
    )


def _first_values(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """The first value of each list, -1 for an empty one."""
    lists = _array(column)
    firsts = np.full(len(lists), -1, dtype=np.int32)
    lengths = _numbers(pc.list_value_length(lists), np.int64)
    values = _numbers(pc.list_flatten(lists), np.int32)
    firsts[lengths > 0] = values[(np.cumsum(lengths) - lengths)[lengths > 0]]
    return firsts


def _kinds(column: pa.ChunkedArray) -> NDArray[np.uint8]:
    """Places in CHUNK_EDGE_KINDS."""
    places = pc.index_in(_texts(column), value_set=pa.array(CHUNK_EDGE_KINDS))
    if places.null_count:
        unknown = pc.unique(pc.filter(_texts(column), pc.is_null(places))).to_pylist()
        raise ValueError(f"Chunk edges of unknown kinds {unknown}; known are {', '.join(CHUNK_EDGE_KINDS)}.")
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.uint8)


_SOURCES: dict[str, tuple[str, str, Callable[[pa.ChunkedArray], Any]]] = {
    "document_keys": ("documents", "id", _keys),
    "document_collections": ("documents", "collection", _texts),
    "document_ids": ("documents", "document_id", _texts),
    "document_titles": ("documents", "title", _texts),
    "chunk_ids": ("chunks", "id", _halves),
    "chunk_documents": ("chunks", "document", _keys),
    "chunk_passage_ids": ("chunks", "passage_id", _halves),
    "chunk_passages": ("chunks", "passage", _integers),
    "chunk_ordinals": ("chunks", "ordinal", _integers),
    "entity_keys": ("entities", "id", _keys),
    "entity_collections": ("entities", "collection", _texts),
    "entity_names": ("entities", "name", _texts),
    "mention_chunks": ("mentions", "source", _keys),
    "mention_entities": ("mentions", "target", _keys),
    "mention_counts": ("mentions", "count", _integers),
    "mention_sentences": ("mentions", "sentences", _first_values),
    "about_documents": ("about", "source", _keys),
    "about_entities": ("about", "target", _keys),
    "about_weights": ("about", "weight", _floats),
    "about_surfaces": ("about", "surface", _texts),
    "statement_keys": ("statements", "id", _keys),
    "statement_chunks": ("statements", "chunk", _keys),
    "statement_predicates": ("statements", "predicate", _texts),
    "statement_confidences": ("statements", "confidence", _floats),
    "statement_sentences": ("statements", "sentence", _integers),
    "role_statements": ("roles", "source", _keys),
    "role_entities": ("roles", "target", _keys),
    "role_names": ("roles", "role", _texts),
    "edge_sources": ("chunk_edges", "source", _keys),
    "edge_targets": ("chunk_edges", "target", _keys),
    "edge_kinds": ("chunk_edges", "kind", _kinds),
    "edge_weights": ("chunk_edges", "weight", _floats),
    "link_chunks": ("links", "source", _keys),
    "link_documents": ("links", "target", _keys),
    "link_weights": ("links", "weight", _floats),
}
"""Where each column comes from: the table, its column there, and how it is read."""
