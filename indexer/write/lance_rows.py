"""The rows that batches put into the `chunks`, `passages`, `retrievals` and `feedback` tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
    """What one document's newest event leaves in the text stores.

    `prepared` is None for a tombstone (`row.deleted_at_ms` set), and for a document whose content is as held: then
    only its row moves. `vectors` are (n_chunks, dimension) float32, L2-normalised; `hashes` one for each chunk: 32 hex
    digits of the SHA-256 of the text that was embedded.
    """

    row: DocumentRow
    prepared: PreparedDocument | None = None
    vectors: NDArray[np.float32] | None = None
    hashes: Sequence[str] = ()


def chunks_table(documents: Iterable[IndexedRows], dimension: int) -> pa.Table:
    """All chunk rows of the documents that have content. Raises ValueError when vectors or hashes do not fit them."""
    rows: list[dict[str, Any]] = []
    vectors: list[NDArray[np.float32]] = [np.empty((0, dimension), dtype=np.float32)]
    for document in documents:
        if document.prepared is None:
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
        for chunk, content_hash in zip(chunks, document.hashes, strict=True):
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
                }
            )
    schema = chunks_schema(dimension)
    vector = schema.field("vector")
    table = pa.Table.from_pylist(rows, schema=schema.remove(schema.get_field_index("vector")))
    flat = pa.array(np.concatenate(vectors).astype(np.float32, copy=False).ravel())
    filled = table.append_column(vector, pa.FixedSizeListArray.from_arrays(flat, type=vector.type))
    return filled.select(schema.names)


def passages_table(documents: Iterable[IndexedRows]) -> pa.Table:
    """All passage rows of the documents that have content."""
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
                    "terms": terms_of(search_text),
                    "content_hash": sha256_hex(search_text.encode())[:HASH_DIGITS],
                }
            )
    return pa.Table.from_pylist(rows, schema=PASSAGES_SCHEMA)


def _search_text(prepared: PreparedDocument, passage: Passage, headings: Sequence[str]) -> str:
    """What the words of a passage are taken from: title, headings and text, each once.

    The first passage has the labels of the metadata too. On every passage they would make an author's name the more
    common, and so the less telling, the longer the documents are, and fill a list of hits with one document.
    """
    said = [prepared.title, *headings]
    if not repeats_title(passage.text, prepared.title):
        said.append(passage.text)
    if passage.ordinal == 0:
        said.append(label_text(prepared.metadata, passage.text))
    return "\n".join(text for text in dict.fromkeys(said) if text)


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
            }
            for retrieval_id, retrieval in unique.items()
        ],
        schema=RETRIEVALS_SCHEMA,
    )


def feedback_table(said: Iterable[tuple[Feedback, int]]) -> pa.Table:
    """One row for each hit and caller, with the offset of its record in the partition of its retrieval; the one with
    the highest offset wins."""
    newest: dict[str, tuple[Feedback, int]] = {}
    for feedback, offset in said:
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
