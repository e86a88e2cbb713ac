"""Documents made up for the text stores: a text a line, one passage for each, one chunk for each sentence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.documents import Chunk, ChunkedDocument, Passage, PreparedDocument, Section
from indexer.generations import Generation
from indexer.schema import DocumentRow
from indexer.write.lance_rows import IndexedRows
from query_api.index.text.snapshot import TextReader
from schemas.ids import DocumentKey, chunk_id, digest, passage_id, sha256_hex

DIMENSION = 16


def generation_in(folder: Path) -> Generation:
    return Generation(folder, "g0001")


def vector_of(text: str, dimension: int = DIMENSION) -> NDArray[np.float32]:
    """(dimension,) float32 of length 1; the same for the same text."""
    seed = int(sha256_hex(text.encode())[:8], 16)
    vector = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def prepared(key: DocumentKey, passages: Sequence[str], title: str) -> PreparedDocument:
    sections = (Section((title, "Detail"), 0, sum(map(len, passages))),)
    made_passages: list[Passage] = []
    made_chunks: list[Chunk] = []
    begin = 0
    for text in passages:
        ordinal = len(made_passages)
        bounds = begin, begin + len(text)
        made_passages.append(Passage(passage_id(key, sections[0].headings, text, 0), ordinal, 0, *bounds, text))
        start = begin
        begin += len(text)
        for sentence in text.split(". "):
            occurrence = sum(chunk.text == sentence for chunk in made_chunks)
            identity = chunk_id(key, sections[0].headings, sentence, occurrence)
            end = start + len(sentence)
            made_chunks.append(Chunk(identity, len(made_chunks), ordinal, 0, start, end, sentence))
            start = end + len(". ")
    return PreparedDocument(
        key=key,
        revision=digest("revision", *key, title, *passages),
        title=title,
        uri=f"https://example.org/{key.document_id}",
        content_type="text/plain",
        metadata={"words": [1, 2.5, None, "é"]},
        chunked=ChunkedDocument(sections, tuple(made_passages), tuple(made_chunks)),
        embedding_texts=tuple(f"{title}. {chunk.text}" for chunk in made_chunks),
        about=(),
        mentions=(),
        statements=(),
        links=(),
    )


def document(
    name: str, *passages: str, collection: str = "default", title: str | None = None, offset: int = 0, **row: Any
) -> IndexedRows:
    """A document with these passages, as the worker would hand it to the writer."""
    key = DocumentKey(collection, name)
    made = prepared(key, passages, name if title is None else title)
    texts = made.embedding_texts
    return IndexedRows(
        row=DocumentRow(
            key=key,
            version=None,
            partition=0,
            offset=offset,
            timestamp_ms=1_700_000_000_000 + offset,
            revision=made.revision,
            content_type=made.content_type,
            title=made.title,
            uri=made.uri,
            metadata=made.metadata,
            chunks=len(made.chunked.chunks),
            passages=len(made.chunked.passages),
            **row,
        ),
        prepared=made,
        vectors=np.stack([vector_of(text) for text in texts]),
        hashes=[sha256_hex(text.encode())[:32] for text in texts],
    )


def tombstone(name: str, collection: str = "default", offset: int = 0) -> IndexedRows:
    key = DocumentKey(collection, name)
    return IndexedRows(
        row=DocumentRow(
            key=key, version=None, partition=0, offset=offset, timestamp_ms=0, deleted_at_ms=1_700_000_000_000
        )
    )


def story() -> list[list[IndexedRows]]:
    """Three batches: documents come, some change or go, some of those come back."""
    first = [
        document(f"d{number}", f"The river {number} runs. It floods", "Banks hold", offset=number)
        for number in range(8)
    ]
    second = [
        document("d0", "The river 0 runs. It dries up", offset=10),
        document("d1", "Nothing of the old text", "Nor of its banks", offset=11),
        tombstone("d2", offset=12),
        tombstone("d3", offset=13),
        document("d8", "A new river. It floods too", offset=14),
    ]
    third = [
        document("d0", "The river 0 runs. It floods", "Banks hold", offset=20),
        document("d2", "Back with other words", offset=21),
        tombstone("d8", offset=22),
    ]
    return [first, second, third]


def contents(generation: Generation) -> dict[str, list[dict[str, Any]]]:
    """Everything a reader can find in the tables, in a fixed order."""
    snapshot = TextReader.open(generation).snapshot()
    rows = snapshot.tables.content_rows()
    tables = {"documents": rows.documents, "passages": rows.passages, "chunks": rows.chunks}
    return {name: sorted(table.to_pylist(), key=repr) for name, table in tables.items()}


def expected_rows(documents: Sequence[IndexedRows]) -> dict[str, set[str]]:
    """The primary keys of the rows that these documents should leave, when nothing else is there."""
    live = [document.prepared for document in documents if document.prepared is not None]
    return {
        "documents": {str(made.key) for made in live},
        "passages": {f"{passage.id}:{made.revision}" for made in live for passage in made.chunked.passages},
        "chunks": {f"{chunk.id}:{made.revision}" for made in live for chunk in made.chunked.chunks},
    }


def stored_rows(generation: Generation) -> dict[str, list[str]]:
    """The primary keys of the rows that are there, sorted; of documents, the live ones."""
    names = {"documents": "key", "passages": "row", "chunks": "row"}
    return {table: sorted(row[names[table]] for row in rows) for table, rows in contents(generation).items()}
