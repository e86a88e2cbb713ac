"""The rows of the `chunks`, `passages`, `retrievals` and `feedback` tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indexer.chunking.sentences import language_of
from indexer.documents import Passage, PreparedDocument, repeats_title
from indexer.extraction.metadata import label_text
from indexer.schema import (
    FEEDBACK_SCHEMA,
    PASSAGES_SCHEMA,
    RETRIEVALS_SCHEMA,
    DocumentRow,
    chunks_schema,
    compress_body,
)
from indexer.text_analysis import terms_of
from schemas.ids import digest, sha256_hex
from schemas.provenance import Feedback, Retrieval, encode_feedback, encode_retrieval

HASH_DIGITS = 32


@dataclass(frozen=True)
class IndexedRows:
    """What one document's newest event stores.

    `prepared` is None for a tombstone (`row.deleted_at_ms` set) and for unchanged content: then only the document's row
    is written. `vectors`: (n_chunks, dimension) float32, L2-normalised. `hashes`: for each chunk 32 hex digits of the
    SHA-256 of the embedded text. `spans`: for each chunk the entities tagged in it, empty where no tagger looked.
    """

    row: DocumentRow
    prepared: PreparedDocument | None = None
    vectors: NDArray[np.float32] | None = None
    hashes: Sequence[str] = ()
    spans: Sequence[bytes | None] = ()

    def knowing(self, stored: DocumentRow) -> "IndexedRows":
        """The same, with what the stored row has of records that the log may no longer hold."""
        row = replace(self.row, version=stored.version, other_partitions=stored.other_partitions)
        return replace(self, row=row)


def chunks_table(documents: Iterable[IndexedRows], dimension: int) -> pa.Table:
    """The chunk rows of the documents with content. Raises ValueError for vectors or hashes that do not fit."""
    rows: list[dict[str, Any]] = []
    vectors: list[NDArray[np.float32]] = [np.empty((0, dimension), dtype=np.float32)]
    for document in documents:
        if document.prepared is None or not document.prepared.chunked.chunks:
            continue
        chunks = document.prepared.chunked.chunks
        shape = None if document.vectors is None else document.vectors.shape
        if shape != (len(chunks), dimension) or len(document.hashes) != len(chunks):
            raise ValueError(
                f"{document.row.key} has {len(chunks)} chunks, vectors of shape {shape} and "
                f"{len(document.hashes)} hashes; the vectors must be ({len(chunks)}, {dimension})."
            )
        if document.vectors is not None:
            vectors.append(document.vectors)
        common = _common(document.row, document.prepared.revision)
        passages = {passage.ordinal: passage.id for passage in document.prepared.chunked.passages}
        spans = document.spans or [None] * len(chunks)
        for chunk, content_hash, entities in zip(chunks, document.hashes, spans, strict=True):
            rows.append(
                common
                | {
                    "row": f"{chunk.id}:{document.prepared.revision}",
                    "id": chunk.id,
                    "ordinal": chunk.ordinal,
                    "passage_id": passages[chunk.passage],
                    "section": document.prepared.chunked.sections[chunk.section].headings,
                    "start": chunk.start,
                    "end": chunk.end,
                    "text": chunk.text,
                    "content_hash": content_hash,
                    "entities": entities,
                }
            )
    schema = chunks_schema(dimension)
    vector = schema.field("vector")
    table = pa.Table.from_pylist(rows, schema=schema.remove(schema.get_field_index("vector")))
    flat = pa.array(np.concatenate(vectors).astype(np.float32, copy=False).ravel())
    filled = table.append_column(vector, pa.FixedSizeListArray.from_arrays(flat, type=vector.type))
    return filled.select(schema.names)


def passages_table(documents: Iterable[IndexedRows]) -> pa.Table:
    """The passage rows of the documents with content."""
    rows: list[dict[str, Any]] = []
    for document in documents:
        if document.prepared is None:
            continue
        prepared = document.prepared
        common = _common(document.row, prepared.revision)
        for passage in prepared.chunked.passages:
            headings = prepared.chunked.sections[passage.section].headings
            search_text = _search_text(prepared, passage, headings)
            rows.append(
                common
                | {
                    "row": f"{passage.id}:{prepared.revision}",
                    "id": passage.id,
                    "ordinal": passage.ordinal,
                    "section": headings,
                    "start": passage.start,
                    "end": passage.end,
                    "title": prepared.title,
                    "text": passage.text,
                    "terms": terms_of(search_text, language_of(passage.text)),
                    "content_hash": sha256_hex(search_text.encode())[:HASH_DIGITS],
                }
            )
    return pa.Table.from_pylist(rows, schema=PASSAGES_SCHEMA)


def _search_text(prepared: PreparedDocument, passage: Passage, headings: Sequence[str]) -> str:
    """The text that a passage's terms come from: title, headings and text, each once.

    Only the first passage includes the labels of the metadata: on every passage they would lower the IDF of an author's
    name with the length of the documents, and fill the hits with one document.
    """
    parts = [prepared.title, *headings]
    if not repeats_title(passage.text, prepared.title):
        parts.append(passage.text)
    if passage.ordinal == 0:
        parts.append(label_text(prepared.metadata, passage.text))
    return "\n".join(text for text in dict.fromkeys(parts) if text)


def retrievals_table(retrievals: Iterable[tuple[str, Retrieval]]) -> pa.Table:
    """One row for each retrieval id; the last one given wins."""
    unique = dict(retrievals)
    return pa.Table.from_pylist(
        [
            {
                "retrieval_id": retrieval_id,
                "at_ms": retrieval.at_ms,
                "query": retrieval.query,
                "collection": retrieval.collection,
                "mode": retrieval.mode,
                "chunk_ids": [hit.chunk_id for hit in retrieval.hits],
                "body": compress_body(encode_retrieval(retrieval)),
                "ranks": [hit.rank for hit in retrieval.hits],
                "seconds": retrieval.seconds,
                "outcome": retrieval.outcome,
                "cached": retrieval.cached,
                "offset": retrieval.parameters.get("offset"),
                "best_confidence": max(
                    (hit.confidence for hit in retrieval.hits if hit.confidence is not None), default=None
                ),
                "counted": retrieval.counted,
            }
            for retrieval_id, retrieval in unique.items()
        ],
        schema=RETRIEVALS_SCHEMA,
    )


def feedback_table(records: Iterable[tuple[Feedback, int]]) -> pa.Table:
    """One row for each hit and caller, with the offset of its record; the highest offset wins."""
    newest: dict[str, tuple[Feedback, int]] = {}
    for feedback, offset in records:
        identifier = digest("feedback", feedback.retrieval_id, feedback.chunk_id, feedback.caller)[:HASH_DIGITS]
        if identifier not in newest or newest[identifier][1] <= offset:
            newest[identifier] = feedback, offset
    return pa.Table.from_pylist(
        [
            {
                "feedback_id": identifier,
                "retrieval_id": feedback.retrieval_id,
                "chunk_id": feedback.chunk_id,
                "rating": feedback.rating,
                "at_ms": feedback.at_ms,
                "log_offset": offset,
                "body": encode_feedback(feedback),
            }
            for identifier, (feedback, offset) in newest.items()
        ],
        schema=FEEDBACK_SCHEMA,
    )


def _common(row: DocumentRow, revision: str) -> dict[str, Any]:
    return {
        "collection": row.key.collection,
        "document_id": row.key.document_id,
        "key": str(row.key),
        "revision": revision,
    }
