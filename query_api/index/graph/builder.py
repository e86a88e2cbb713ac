"""The columns that graph segments are built from: nodes and edges of documents' contributions, or of a snapshot."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.graph.contributions import tables_of
from indexer.graph.tables import GraphTables, one_array
from query_api.index.graph.identifiers import Keys, link_name_of
from schemas.graph_delta import ENTITY_TYPES, Contribution
from schemas.ids import DocumentKey

CHUNK_EDGE_KINDS = ("next_chunk", "similar_to", "related_to")


@dataclass(frozen=True)
class GraphColumns:
    """Nodes and edges as columns of equal length by prefix; strings are Arrow arrays.

    `chunk_ids` and `passage_ids` are (n, 2) uint64: the two halves of the 128-bit id; the first half is the key.
    `document_names` and `link_names` are keys too, of the names by which links find documents. `mention_*` are terms,
    `typed_*` mentions of entities, whose types index ENTITY_TYPES; their sentences are the first ones' numbers, -1 for
    none. Chunk edges' kinds index CHUNK_EDGE_KINDS.
    """

    document_keys: Keys
    document_collections: pa.Array
    document_ids: pa.Array
    document_titles: pa.Array
    document_names: Keys

    chunk_ids: Keys
    chunk_documents: Keys
    chunk_passage_ids: Keys
    chunk_passages: NDArray[np.int32]
    chunk_ordinals: NDArray[np.int32]

    entity_keys: Keys
    entity_collections: pa.Array
    entity_names: pa.Array

    mention_chunks: Keys
    mention_entities: Keys
    mention_counts: NDArray[np.int32]
    mention_sentences: NDArray[np.int32]

    typed_chunks: Keys
    typed_entities: Keys
    typed_types: NDArray[np.uint8]
    typed_confidences: NDArray[np.float32]
    typed_counts: NDArray[np.int32]
    typed_sentences: NDArray[np.int32]
    typed_surfaces: pa.Array

    about_documents: Keys
    about_entities: Keys
    about_weights: NDArray[np.float32]
    about_surfaces: pa.Array

    statement_keys: Keys
    statement_chunks: Keys
    statement_predicates: pa.Array
    statement_confidences: NDArray[np.float32]
    statement_sentences: NDArray[np.int32]
    statement_extractors: pa.Array

    role_statements: Keys
    role_entities: Keys
    role_names: pa.Array
    role_surfaces: pa.Array

    edge_sources: Keys
    edge_targets: Keys
    edge_kinds: NDArray[np.uint8]
    edge_weights: NDArray[np.float32]

    link_chunks: Keys
    link_documents: Keys
    link_names: Keys
    link_weights: NDArray[np.float32]


def concatenated(parts: Sequence[GraphColumns]) -> GraphColumns:
    """The rows of all parts. An entity of several parts is there several times; building a segment drops the copies."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {}
    for field in fields(GraphColumns):
        columns = [getattr(part, field.name) for part in parts]
        is_text = isinstance(columns[0], pa.Array)
        joined[field.name] = pa.concat_arrays(columns) if is_text else np.concatenate(columns)
    return GraphColumns(**joined)


def columns_of(contributions: Iterable[Contribution]) -> GraphColumns:
    """The columns of documents' contributions, one contribution a document."""
    return columns_of_tables(tables_of(contributions))


def columns_of_tables(tables: GraphTables) -> GraphColumns:
    """Raises ValueError when an edge's kind is unknown."""
    documents, chunks = _ids(tables.documents["id"]), _ids(tables.chunks["id"])
    document_keys, chunk_keys = documents[:, 0].copy(), chunks[:, 0].copy()
    entity_keys, statement_keys = _keys(tables.entities["id"]), _keys(tables.statements["id"])
    link_names = _link_names(tables.document_names)
    mentions = tables.mentions.filter(pc.not_equal(tables.mentions["kind"], ""))
    typed, types = _typed_mentions(tables.mentions)
    return GraphColumns(
        document_keys=document_keys,
        document_collections=_texts(tables.documents["collection"]),
        document_ids=_texts(tables.documents["document_id"]),
        document_titles=_texts(tables.documents["title"]),
        document_names=_link_names(tables.documents),
        chunk_ids=chunks,
        chunk_documents=document_keys[tables.documents_of("chunks")],
        chunk_passage_ids=_ids(tables.chunks["passage_id"]),
        chunk_passages=tables.chunks["passage"].to_numpy(),
        chunk_ordinals=tables.chunks["ordinal"].to_numpy(),
        entity_keys=entity_keys,
        entity_collections=_texts(tables.entities["collection"]),
        entity_names=_texts(tables.entities["name"]),
        mention_chunks=chunk_keys[mentions["source"].to_numpy()],
        mention_entities=entity_keys[mentions["target"].to_numpy()],
        mention_counts=mentions["count"].to_numpy(),
        mention_sentences=_first_values(mentions["sentences"]),
        typed_chunks=chunk_keys[typed["source"].to_numpy()],
        typed_entities=entity_keys[typed["target"].to_numpy()],
        typed_types=types,
        typed_confidences=_floats(typed["confidence"]),
        typed_counts=typed["count"].to_numpy(),
        typed_sentences=_first_values(typed["sentences"]),
        typed_surfaces=_texts(typed["surface"]),
        about_documents=document_keys[tables.rows_named("about", "source")],
        about_entities=entity_keys[tables.rows_named("about", "target")],
        about_weights=_floats(tables.about["weight"]),
        about_surfaces=_texts(tables.about["surface"]),
        statement_keys=statement_keys,
        statement_chunks=chunk_keys[tables.rows_named("statements", "chunk")],
        statement_predicates=_texts(tables.statements["predicate"]),
        statement_confidences=_floats(tables.statements["confidence"]),
        statement_sentences=tables.statements["sentence"].to_numpy(),
        statement_extractors=_texts(tables.statements["extractor"]),
        role_statements=statement_keys[tables.rows_named("roles", "source")],
        role_entities=entity_keys[tables.rows_named("roles", "target")],
        role_names=_texts(tables.roles["role"]),
        role_surfaces=_texts(tables.roles["surface"]),
        edge_sources=chunk_keys[tables.rows_named("chunk_edges", "source")],
        edge_targets=chunk_keys[tables.rows_named("chunk_edges", "target")],
        edge_kinds=_kinds(tables.chunk_edges["kind"]),
        edge_weights=_floats(tables.chunk_edges["weight"]),
        link_chunks=chunk_keys[tables.rows_named("links", "source")],
        link_documents=_keys(tables.document_names["id"])[tables.rows_named("links", "target")],
        link_names=link_names[tables.rows_named("links", "target")],
        link_weights=_floats(tables.links["weight"]),
    )


def _typed_mentions(mentions: pa.Table) -> tuple[pa.Table, NDArray[np.uint8]]:
    """Those of entities, and the index of each one's type in ENTITY_TYPES; types of newer programs are left out."""
    types = pc.index_in(mentions["entity_type"].cast(pa.string()), value_set=pa.array(ENTITY_TYPES))
    is_typed = pc.is_valid(types)
    numbers = one_array(pc.filter(types, is_typed)).to_numpy(zero_copy_only=False)
    return mentions.filter(is_typed), numbers.astype(np.uint8)


def _link_names(table: pa.Table) -> Keys:
    """The key of the name by which links find each row's document."""
    rows = zip(_texts(table["collection"]).to_pylist(), table["document_id"].to_pylist(), strict=True)
    return np.fromiter((link_name_of(DocumentKey(*row)) for row in rows), dtype=np.uint64, count=table.num_rows)


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return one_array(column.cast(pa.string()))


def _ids(column: pa.ChunkedArray) -> Keys:
    """(n, 2) uint64: both halves of ids of 16 bytes."""
    parts = [_halves(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.uint64)


def _halves(ids: pa.Array) -> Keys:
    stored = np.frombuffer(ids.buffers()[1], dtype=">u8")
    return stored[2 * ids.offset : 2 * (ids.offset + len(ids))].astype(np.uint64).reshape(-1, 2)


def _keys(column: pa.ChunkedArray) -> Keys:
    return np.ascontiguousarray(_ids(column)[:, 0])


def _floats(column: pa.ChunkedArray) -> NDArray[np.float32]:
    return np.asarray(column.to_numpy(), dtype=np.float32)


def _first_values(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """The first value of each list, -1 for an empty one."""
    lists = one_array(column)
    firsts = np.full(len(lists), -1, dtype=np.int32)
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    values = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
    firsts[lengths > 0] = values[(np.cumsum(lengths) - lengths)[lengths > 0]]
    return firsts


def _kinds(column: pa.ChunkedArray) -> NDArray[np.uint8]:
    """Indices into CHUNK_EDGE_KINDS."""
    indices = pc.index_in(_texts(column), value_set=pa.array(CHUNK_EDGE_KINDS))
    if indices.null_count:
        unknown = pc.unique(pc.filter(_texts(column), pc.is_null(indices))).to_pylist()
        raise ValueError(f"Chunk edges of unknown kinds {unknown}; known are {', '.join(CHUNK_EDGE_KINDS)}.")
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.uint8)
