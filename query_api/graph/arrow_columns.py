"""The tables of a graph snapshot as the columns that segments are built from."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.graph.columns import CHUNK_EDGE_KINDS, GraphColumns, Keys, halves

if TYPE_CHECKING:
    from indexer.read.graph import GraphTables


def columns_of_tables(tables: "GraphTables") -> GraphColumns:
    """Raises ValueError when an id is no id, or an edge's kind is unknown."""
    documents, chunks, entities = tables.documents, tables.chunks, tables.entities
    about, mentions, statements = tables.about, tables.mentions, tables.statements
    roles, edges, links = tables.roles, tables.chunk_edges, tables.links
    return GraphColumns(
        document_keys=_keys(documents["id"]),
        document_collections=_texts(documents["collection"]),
        document_ids=_texts(documents["document_id"]),
        document_titles=_texts(documents["title"]),
        chunk_ids=halves(_texts(chunks["id"])),
        chunk_documents=_keys(chunks["document"]),
        chunk_passage_ids=halves(_texts(chunks["passage_id"])),
        chunk_passages=_numbers(chunks["passage"], np.int32),
        chunk_ordinals=_numbers(chunks["ordinal"], np.int32),
        entity_keys=_keys(entities["id"]),
        entity_collections=_texts(entities["collection"]),
        entity_names=_texts(entities["name"]),
        mention_chunks=_keys(mentions["source"]),
        mention_entities=_keys(mentions["target"]),
        mention_counts=_numbers(mentions["count"], np.int32),
        mention_sentences=_first_values(mentions["sentences"]),
        about_documents=_keys(about["source"]),
        about_entities=_keys(about["target"]),
        about_weights=_numbers(about["weight"], np.float32),
        about_surfaces=_texts(about["surface"]),
        statement_keys=_keys(statements["id"]),
        statement_chunks=_keys(statements["chunk"]),
        statement_predicates=_texts(statements["predicate"]),
        statement_confidences=_numbers(statements["confidence"], np.float32),
        statement_sentences=_numbers(statements["sentence"], np.int32),
        role_statements=_keys(roles["source"]),
        role_entities=_keys(roles["target"]),
        role_names=_texts(roles["role"]),
        edge_sources=_keys(edges["source"]),
        edge_targets=_keys(edges["target"]),
        edge_kinds=_kinds(edges["kind"]),
        edge_weights=_numbers(edges["weight"], np.float32),
        link_chunks=_keys(links["source"]),
        link_documents=_keys(links["target"]),
        link_weights=_numbers(links["weight"], np.float32),
    )


def _array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return _array(column.cast(pa.string()))


def _keys(column: pa.ChunkedArray) -> Keys:
    return np.ascontiguousarray(halves(_texts(column))[:, 0])


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
