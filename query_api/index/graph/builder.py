"""Segments made of the graph's tables: rows sorted into compressed sparse rows, ids into keys."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.graph.tables import GraphTables, id_keys, one_array
from query_api.index.graph.csr import (
    CompressedRows,
    Edges,
    EncodedStrings,
    Positions,
    SmallIntegers,
    WordEncodedStrings,
    row_pointers,
    smallest_integers,
)
from query_api.index.graph.identifiers import N_CANDIDATES, Identifiers, KeyIndex, Keys, candidate_keys, link_names_of
from query_api.index.graph.segment import Segment
from query_api.index.strings import StringLists, Strings
from schemas.graph_delta import ENTITY_TYPES
from schemas.ids import DocumentKey

CHUNK_EDGE_KINDS = ("next_chunk", "similar_to", "related_to")


class _Ordered(NamedTuple):
    """Rows of a table in the order of a segment: `rows` are the table's, `numbers` the segment's of each of them."""

    rows: Positions
    numbers: Positions

    @classmethod
    def by(cls, *keys: NDArray[np.generic]) -> "_Ordered":
        """By the first key, equal ones by the next."""
        rows = np.lexsort(keys[::-1])
        numbers = np.empty(len(rows), dtype=np.int64)
        numbers[rows] = np.arange(len(rows))
        return cls(rows, numbers)


def segment_of(tables: GraphTables) -> Segment:
    """Raises ValueError when a chunk edge's kind is unknown."""
    document_keys = id_keys(tables.documents["id"])
    documents = _Ordered.by(document_keys)
    titles = _texts(tables.documents["title"], documents.rows)

    passage_ids, passages = _ids(tables.chunks["passage_id"]), tables.chunks["passage"].to_numpy()
    chunk_documents = documents.numbers[tables.documents_of("chunks")]
    chunks = _Ordered.by(chunk_documents, passages, passage_ids[:, 0], tables.chunks["ordinal"].to_numpy())
    of_passage = passage_ids[chunks.rows]
    begins = np.ones(len(of_passage), dtype=bool)
    begins[1:] = (of_passage[1:] != of_passage[:-1]).any(axis=1)
    chunk_passages = np.cumsum(begins) - 1
    passage_documents = chunk_documents[chunks.rows][begins]
    n_documents, n_passages, n_chunks = len(documents.rows), len(passage_documents), len(chunks.rows)

    entity_keys = id_keys(tables.entities["id"])
    entities = _Ordered.by(entity_keys)
    n_entities = len(entities.rows)
    mentions = _Mentions.of(tables.mentions, pc.not_equal(tables.mentions["kind"], ""), entities, chunks)
    types = pc.index_in(tables.mentions["entity_type"].cast(pa.string()), value_set=pa.array(ENTITY_TYPES))
    typed = _Mentions.of(tables.mentions.append_column("type", types), pc.is_valid(types), entities, chunks)

    about_documents, about_entities = _ends(tables, "about", documents, entities)
    about = _Ordered.by(about_documents, about_entities).rows
    surfaces = _texts(tables.about["surface"], about)
    of_title = pc.equal(surfaces, titles.take(pa.array(about_documents[about])))

    statement_chunks = chunks.numbers[tables.rows_named("statements", "chunk")]
    statement_keys = id_keys(tables.statements["id"])
    statements = _Ordered.by(statement_chunks, statement_keys)
    role_statements, role_entities = _ends(tables, "roles", statements, entities)
    roles = _Ordered.by(role_statements, role_entities).rows

    sources, targets = _ends(tables, "chunk_edges", chunks, chunks)
    kinds = _kinds(tables.chunk_edges["kind"])
    edges = _Ordered.by(sources, targets, kinds).rows

    name_keys = id_keys(tables.document_names["id"])
    names = _Ordered.by(name_keys)
    link_chunks, link_names = _ends(tables, "links", chunks, names)
    links = _Ordered.by(link_chunks, link_names).rows

    return Segment(
        document_keys=document_keys[documents.rows],
        collections=_encoded(tables.documents["collection"], documents.rows),
        document_ids=Strings(_texts(tables.documents["document_id"], documents.rows)),
        titles=Strings(titles),
        document_names=KeyIndex(_link_names(tables.documents)[:, documents.rows].ravel()),
        document_passages=row_pointers(np.bincount(passage_documents, minlength=n_documents)),
        passage_ids=Identifiers(of_passage[begins]),
        passage_documents=passage_documents.astype(np.int32),
        passage_chunks=row_pointers(np.bincount(chunk_passages, minlength=n_passages)),
        chunk_ids=Identifiers(_ids(tables.chunks["id"])[chunks.rows]),
        chunk_passages=chunk_passages.astype(np.int32),
        entity_keys=entity_keys[entities.rows],
        entity_collections=_encoded(tables.entities["collection"], entities.rows),
        names=WordEncodedStrings.build(_texts(tables.entities["name"], entities.rows)),
        passage_frequencies=_passage_frequencies(mentions.edges, chunk_passages, n_entities),
        mentions=mentions.edges,
        typed=typed.edges,
        typed_types=typed.table["type"].to_numpy().astype(np.uint8),
        typed_confidences=typed.table["confidence"].to_numpy().astype(np.float16),
        typed_counts=smallest_integers(typed.table["count"].to_numpy()),
        typed_surfaces=_encoded(typed.table["surface"]),
        about=Edges.build(about_documents[about], about_entities[about], n_documents, n_entities),
        about_weights=tables.about["weight"].to_numpy()[about].astype(np.float32),
        about_surfaces=Strings(pc.if_else(of_title, pa.scalar("", pa.string()), surfaces)),
        statements=CompressedRows.build(statement_chunks[statements.rows], n_chunks),
        statement_keys=statement_keys[statements.rows],
        predicates=_encoded(tables.statements["predicate"], statements.rows),
        confidences=tables.statements["confidence"].to_numpy()[statements.rows].astype(np.float16),
        statement_sentences=smallest_integers(tables.statements["sentence"].to_numpy()[statements.rows] + 1),
        extractors=_encoded(tables.statements["extractor"], statements.rows),
        roles=Edges.build(role_statements[roles], role_entities[roles], len(statements.rows), n_entities),
        role_names=_encoded(tables.roles["role"], roles),
        role_surfaces=_encoded(tables.roles["surface"], roles),
        edges=Edges.build(sources[edges], targets[edges], n_chunks, n_chunks),
        edge_kinds=kinds[edges],
        edge_weights=tables.chunk_edges["weight"].to_numpy()[edges].astype(np.float16),
        linked_documents=name_keys[names.rows],
        linked_names=KeyIndex(_link_names(tables.document_names)[0, names.rows]),
        links=Edges.build(link_chunks[links], link_names[links], n_chunks, len(names.rows)),
        link_weights=tables.links["weight"].to_numpy()[links].astype(np.float16),
        **(_made(tables, documents) if tables.nodes.num_rows or tables.relations.num_rows else _nothing_made()),
    )


def _made(tables: GraphTables, documents: _Ordered) -> dict[str, Any]:
    """The columns of what people made."""
    node_keys = id_keys(tables.nodes["id"])
    node_documents = documents.numbers[tables.rows_named("nodes", "document")]
    nodes = _Ordered.by(node_documents, node_keys).rows
    relation_documents = documents.numbers[tables.rows_named("relations", "document")]
    relations = _Ordered.by(relation_documents, id_keys(tables.relations["id"]))
    references = _Ordered.by(id_keys(tables.references["id"]))
    end_relations, end_references = _ends(tables, "ends", relations, references)
    ends = _Ordered.by(end_relations, end_references).rows
    return {
        "nodes": CompressedRows.build(node_documents[nodes], len(documents.rows)),
        "node_keys": KeyIndex(node_keys[nodes]),
        "node_names": Strings(_texts(tables.nodes["name"], nodes)),
        "node_labels": Strings(_texts(tables.nodes["label"], nodes)),
        "node_types": _encoded(tables.nodes["type"], nodes),
        "node_aliases": StringLists(one_array(tables.nodes["aliases"]).take(pa.array(nodes))),
        "node_attributes": Strings(_texts(tables.nodes["attributes"], nodes)),
        "relations": CompressedRows.build(relation_documents[relations.rows], len(documents.rows)),
        "relation_names": Strings(_texts(tables.relations["name"], relations.rows)),
        "relation_predicates": _encoded(tables.relations["predicate"], relations.rows),
        "relation_weights": tables.relations["weight"].to_numpy()[relations.rows],
        "relation_attributes": Strings(_texts(tables.relations["attributes"], relations.rows)),
        "ends": Edges.build(end_relations[ends], end_references[ends], len(relations.rows), len(references.rows)),
        "end_roles": _encoded(tables.ends["role"], ends),
        "reference_collections": _encoded(tables.references["collection"], references.rows),
        "reference_names": Strings(_texts(tables.references["name"], references.rows)),
        "reference_keys": KeyIndex(_candidate_keys(tables.references)[references.rows].ravel()),
    }


@cache
def _nothing_made() -> dict[str, Any]:
    """They are the same for any documents: most segments hold none."""
    return _made(GraphTables.empty(), _Ordered(np.empty(0, np.int64), np.empty(0, np.int64)))


class _Mentions(NamedTuple):
    """Some of the mentions, entity → chunk, in the order of the edges."""

    table: pa.Table
    edges: Edges

    @classmethod
    def of(cls, mentions: pa.Table, chosen: pa.ChunkedArray, entities: _Ordered, chunks: _Ordered) -> "_Mentions":
        found = mentions.filter(chosen)
        sources, targets = entities.numbers[found["target"].to_numpy()], chunks.numbers[found["source"].to_numpy()]
        n_chunks = len(chunks.rows)
        order = np.argsort(sources * n_chunks + targets)
        ordered = found.take(pa.array(order))
        return cls(ordered, Edges.build(sources[order], targets[order], len(entities.rows), n_chunks))


def _ends(tables: GraphTables, name: str, sources: _Ordered, targets: _Ordered) -> tuple[Positions, Positions]:
    """The numbers of a table's edges' sources and targets."""
    return sources.numbers[tables.rows_named(name, "source")], targets.numbers[tables.rows_named(name, "target")]


def _passage_frequencies(mentions: Edges, chunk_passages: Positions, n_entities: int) -> SmallIntegers:
    """How many different passages mention each entity."""
    entities, chunks = mentions.ends()
    passages = chunk_passages[chunks]
    fresh = np.ones(len(entities), dtype=bool)  # mentions of an entity are in the order of chunks, so of passages
    fresh[1:] = (entities[1:] != entities[:-1]) | (passages[1:] != passages[:-1])
    return smallest_integers(np.bincount(entities[fresh], minlength=n_entities))


def _link_names(table: pa.Table) -> Keys:
    """(2, n) the keys of the names by which links find each row's document."""
    rows = zip(_texts(table["collection"]).to_pylist(), table["document_id"].to_pylist(), strict=True)
    return np.array([link_names_of(DocumentKey(*row)) for row in rows], dtype=np.uint64).reshape(-1, 2).T


def _candidate_keys(references: pa.Table) -> Keys:
    """(n, N_CANDIDATES) by which keys what each reference names may be there."""
    rows = zip(_texts(references["collection"]).to_pylist(), references["name"].to_pylist(), strict=True)
    keys = [key for row in rows for key in candidate_keys(*row)]
    return np.array(keys, dtype=np.uint64).reshape(-1, N_CANDIDATES)


def _texts(column: pa.ChunkedArray, order: Positions | None = None) -> pa.Array:
    texts = one_array(column.cast(pa.string()))
    return texts if order is None else texts.take(pa.array(order))


def _encoded(column: pa.ChunkedArray, order: Positions | None = None) -> EncodedStrings:
    return EncodedStrings.build(_texts(column), np.arange(len(column)) if order is None else order)


def _ids(column: pa.ChunkedArray) -> Keys:
    """(n, 2) uint64: both halves of ids of 16 bytes; the first half is the key."""
    parts = [_halves(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.uint64)


def _halves(ids: pa.Array) -> Keys:
    stored = np.frombuffer(ids.buffers()[1], dtype=">u8")
    return stored[2 * ids.offset : 2 * (ids.offset + len(ids))].astype(np.uint64).reshape(-1, 2)


def _kinds(column: pa.ChunkedArray) -> NDArray[np.uint8]:
    """Indices into CHUNK_EDGE_KINDS."""
    indices = pc.index_in(_texts(column), value_set=pa.array(CHUNK_EDGE_KINDS))
    if indices.null_count:
        unknown = pc.unique(pc.filter(_texts(column), pc.is_null(indices))).to_pylist()
        raise ValueError(f"Chunk edges of unknown kinds {unknown}; known are {', '.join(CHUNK_EDGE_KINDS)}.")
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.uint8)
