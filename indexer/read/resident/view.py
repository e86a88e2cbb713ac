"""The resident view of the text tables: which documents are live, their passages' words, their chunks' vectors.

It goes from one state of the tables to the next by the documents that moved in between. Those are known by their
position: a document's row holds the partition and offset of the record that moved it last.
"""

from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from lancedb.expr import col, lit
from lancedb.table import Table

from indexer.errors import DamagedStore
from indexer.integrity.row_checksums import checkable, require_intact
from indexer.read.lookups import rows_with, vector_matrix
from indexer.read.resident.documents import RECORD_COLUMNS, DocumentIndex, Records
from indexer.read.resident.layers import Layer, Layers
from indexer.read.resident.texts import TEXT_COLUMNS, TextIndex, Texts
from indexer.read.resident.vector_index import VectorIndex
from indexer.read.resident.vectors import Vectors
from indexer.read.resident.words import Postings, WordIndex
from indexer.schema import CHUNKS, DOCUMENTS, MIB, PASSAGES, DocumentRow, StoredPosition, reading
from schemas.ids import DocumentKey

MOST_RESIDENT_CHUNKS = 400_000  # at 2 kB each, with 384 dimensions
MOST_TEXT_BYTES = 512 * MIB
BY_LOOK_UP = 2_000  # documents; more are found sooner by reading the tables from end to end
OVERLAY_SHARE = 8

_DOCUMENT_COLUMNS = ["collection", "revision", "deleted_at_ms", "live", *RECORD_COLUMNS]
_PASSAGE_COLUMNS = ["key", "collection", "document_id", "revision", "ordinal", "id", "terms"]
_CHUNK_COLUMNS = [
    "key",
    "collection",
    "document_id",
    "revision",
    "ordinal",
    "id",
    "passage_id",
    "start",
    "end",
    "content_hash",
    "vector",
]

Expected = Mapping[str, Mapping[str, int]]  # {table: {key of a document: how many rows it has there}}
Revisions = Mapping[DocumentKey, str]
Moved = dict[DocumentKey, str | None]  # the revision each moved document has now; None for one that is deleted


@dataclass(frozen=True)
class ResidentView:
    """One state of the tables. Immutable. `vectors` is None once there are more than `most_chunks` of them,
    `texts` once they take more than `most_text_bytes`."""

    revisions: Revisions
    documents: DocumentIndex
    words: WordIndex
    vectors: VectorIndex | None
    texts: TextIndex | None
    most_chunks: int
    most_text_bytes: int

    def revision(self, key: DocumentKey) -> str | None:
        """The revision a document is at; None where it is not, or no longer."""
        return self.revisions.get(key) or None

    def document(self, key: DocumentKey) -> DocumentRow | None:
        """What is known of a live document."""
        revision = self.revision(key)
        return None if revision is None else self.documents.row(key, revision)

    @classmethod
    def empty(cls, most_chunks: int = MOST_RESIDENT_CHUNKS, most_text_bytes: int = MOST_TEXT_BYTES) -> "ResidentView":
        return cls(
            {},
            DocumentIndex(Layers()),
            WordIndex(Layers()),
            VectorIndex(Layers()),
            TextIndex(Layers()),
            most_chunks,
            most_text_bytes,
        )

    def at(self, tables: Mapping[str, Table], since: Mapping[int, StoredPosition]) -> "ResidentView":
        """The view of these tables, pinned to versions that belong together; `since` are the positions of this view's
        own: a writer moves no document for a record at or before them. Raises TransientStoreError when they cannot be
        read."""
        behind = _behind(tables[DOCUMENTS], since)
        documents = self._documents(behind)
        moved = _moved(behind, self.revisions)
        if not moved:
            return self if documents is self.documents else replace(self, documents=documents)
        fresh: Revisions = {key: revision for key, revision in moved.items() if revision is not None}
        expected = _expected(behind)
        with ThreadPoolExecutor(1) as beside:
            vectors = beside.submit(self._vectors, tables[CHUNKS], moved, fresh, expected)
            words, texts = self._passages(tables[PASSAGES], moved, fresh, expected)
            return replace(
                self,
                revisions=self._revised(moved),
                documents=documents,
                words=words,
                vectors=vectors.result(),
                texts=texts,
            )

    def _documents(self, behind: pa.Table) -> DocumentIndex:
        """A record may change a document's time and version alone, so what counts here is the record's position."""
        keys = _keys(behind)
        positions = zip(behind["partition"].to_pylist(), behind["offset"].to_pylist(), strict=True)
        newest = {key: (row, position) for row, (key, position) in enumerate(zip(keys, positions, strict=True))}
        revisions = behind["revision"].to_pylist()
        changed = {
            key: row
            for key, (row, position) in newest.items()
            if self.documents.position(key) != (position if revisions[row] is not None else None)
        }
        if not changed:
            return self.documents
        layers = self.documents.layers.without(changed)
        live = sorted(row for row in changed.values() if revisions[row] is not None)
        if live:
            ids, records = [str(keys[row]) for row in live], Records.of(behind.take(live))
            layers = layers.with_layer(Layer.of(ids, [keys[row] for row in live], records))
        return DocumentIndex(layers).prepared()

    def _passages(
        self, passages: Table, moved: Moved, fresh: Revisions, expected: Expected
    ) -> tuple[WordIndex, TextIndex | None]:
        words = self.words.layers.without(moved)
        texts = None if self.texts is None else self.texts.layers.without(moved)
        if texts is not None and len(fresh) > BY_LOOK_UP and _characters(passages) > self.most_text_bytes:
            texts = None
        columns = _PASSAGE_COLUMNS if texts is None else [*dict.fromkeys([*_PASSAGE_COLUMNS, *TEXT_COLUMNS])]
        for rows in _rows(passages, columns, fresh, expected):
            layer = _word_layer(rows)
            words = words.with_layer(layer)
            if texts is not None:
                texts = texts.with_layer(Layer(layer.names, Texts.of(rows), layer.live))
        index = None if texts is None else TextIndex(texts)
        fits = index is not None and index.nbytes <= self.most_text_bytes
        return WordIndex(words).prepared_as(self.words), index if fits else None

    def _vectors(self, chunks: Table, moved: Moved, fresh: Revisions, expected: Expected) -> VectorIndex | None:
        if self.vectors is None or chunks.count_rows() > self.most_chunks:
            return None
        layers = self.vectors.layers.without(moved)
        for rows in _rows(chunks, _CHUNK_COLUMNS, fresh, expected):
            layers = layers.with_layer(_vector_layer(rows))
        return VectorIndex(layers).prepared_as(self.vectors)

    def _revised(self, moved: Moved) -> Revisions:
        """The newest revisions, as few above the many; "" stands for a document that is gone."""
        maps = self.revisions.maps if isinstance(self.revisions, ChainMap) else [dict(self.revisions)]
        above = {**(maps[0] if len(maps) > 1 else {}), **{key: revision or "" for key, revision in moved.items()}}
        below = maps[-1]
        if len(above) * OVERLAY_SHARE > len(below):
            return {key: revision for key, revision in {**below, **above}.items() if revision}
        return ChainMap(above, below)


def _behind(documents: Table, since: Mapping[int, StoredPosition]) -> pa.Table:
    """The rows of the documents moved by records behind `since`."""
    query = documents.search()
    if since:
        condition = ~col("partition").isin(list(since))
        for partition, position in since.items():
            condition = condition | ((col("partition") == lit(partition)) & (col("offset") > lit(position.offset)))
        query = query.where(condition)
    with reading(DOCUMENTS):
        rows = query.select(checkable(DOCUMENTS, _DOCUMENT_COLUMNS, documents.schema.names)).to_arrow()
    require_intact(DOCUMENTS, rows)
    return rows


def _moved(behind: pa.Table, known: Revisions) -> Moved:
    """The documents whose revision is not the known one."""
    newest = dict(zip(_keys(behind), behind["revision"].to_pylist(), strict=True))
    return {key: revision for key, revision in newest.items() if (known.get(key) or None) != revision}


def _expected(behind: pa.Table) -> Expected:
    """How many rows of each table belong to each live document."""
    keys = [str(key) for key in _keys(behind)]
    return {name: dict(zip(keys, behind[name].to_pylist(), strict=True)) for name in (PASSAGES, CHUNKS)}


def _rows(table: Table, columns: list[str], wanted: Revisions, expected: Expected) -> Iterator[pa.Table]:
    """The rows of these revisions, whole documents together, in document order.

    Raises DamagedStore for rows that are not what was written, and where any of them is not there."""
    if not wanted:
        return
    if len(wanted) <= BY_LOOK_UP:
        found = rows_with(table, "key", [str(key) for key in wanted], columns)
    else:
        with reading(table.name):
            found = [table.search().select(checkable(table.name, columns, table.schema.names)).to_arrow()]
        require_intact(table.name, found[0])
    revisions = {str(key): revision for key, revision in wanted.items()}
    missing = Counter({key: expected[table.name][key] for key in revisions})
    for rows in found:
        owners = zip(rows["key"].to_pylist(), rows["revision"].to_pylist(), strict=True)
        current = rows.filter(pa.array([revisions.get(key) == revision for key, revision in owners], type=pa.bool_()))
        if current.num_rows:
            each_once = _each_once(current.sort_by([("key", "ascending"), ("ordinal", "ascending")]))
            missing.subtract(each_once["key"].to_pylist())
            yield each_once
    for key, count in missing.items():
        if count:
            raise DamagedStore.of_document(table.name, key, count)


def _characters(passages: Table) -> int:
    """Of all passages, to know before their texts are read."""
    with reading(PASSAGES):
        bounds = passages.search().select(["start", "end"]).to_arrow()
    return int(bounds["end"].to_numpy().sum() - bounds["start"].to_numpy().sum())


def _each_once(rows: pa.Table) -> pa.Table:
    """Without the doubles that a write repeated after a crash may have left."""
    ids = rows["id"].to_pylist()
    if len(set(ids)) == len(ids):
        return rows
    seen: set[str] = set()
    first = [not (identifier in seen or seen.add(identifier)) for identifier in ids]  # type: ignore[func-returns-value]
    return rows.filter(pa.array(first, type=pa.bool_()))


def _keys(rows: pa.Table) -> list[DocumentKey]:
    """The document of each row; rows of one document share one object."""
    made: dict[tuple[str, str], DocumentKey] = {}
    pairs = zip(rows["collection"].to_pylist(), rows["document_id"].to_pylist(), strict=True)
    return [made.setdefault(pair, DocumentKey(*pair)) for pair in pairs]


def _word_layer(rows: pa.Table) -> Layer[Postings]:
    column = rows["terms"].combine_chunks()
    lengths = np.diff(column.offsets.to_numpy()).astype(np.int32)
    terms = column.flatten().to_numpy(zero_copy_only=False)
    return Layer.of(rows["id"].to_pylist(), _keys(rows), Postings.of(terms, lengths))


def _vector_layer(rows: pa.Table) -> Layer[Vectors]:
    passage_ids = np.array(rows["passage_id"].to_pylist(), dtype=np.object_)
    bounds = np.stack([rows[name].to_numpy() for name in ("ordinal", "start", "end")], axis=1).astype(np.int32)
    return Layer.of(rows["id"].to_pylist(), _keys(rows), Vectors.of(vector_matrix(rows), passage_ids, bounds))
