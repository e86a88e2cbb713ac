"""One consistent state of the text stores: search and look-ups on tables pinned to their versions."""

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from lancedb import DBConnection
from lancedb.expr import col, lit
from lancedb.query import LanceVectorQueryBuilder
from lancedb.table import Table
from numpy.typing import NDArray

from indexer.errors import DamagedStore
from indexer.integrity.row_checksums import require_intact
from indexer.read.cursors import read_cursor, write_cursor
from indexer.read.lookups import rows_in_spans, rows_with, vector_matrix
from indexer.read.resident.documents import DocumentIndex
from indexer.read.resident.layers import Layers
from indexer.read.resident.scope import EVERYTHING, Scope
from indexer.read.resident.texts import chunks_of
from indexer.read.resident.view import ResidentView
from indexer.read.resident.words import ComparedRows
from indexer.read.rows import (
    CHUNK_COLUMNS,
    PASSAGE_COLUMNS,
    ChunkRow,
    ChunkSpan,
    ContentRows,
    FoundChunk,
    FoundPassage,
    PassageRow,
    chunk_rows,
    passage_rows,
)
from indexer.read.usage import UsageTables
from indexer.schema import (
    CHUNKS,
    DOCUMENTS,
    FEEDBACK,
    PASSAGES,
    RETRIEVALS,
    DocumentRow,
    StoredPosition,
    document_rows,
    reading,
    store_errors,
    unpacked,
)
from indexer.text_analysis import terms_of, terms_of_question
from schemas.ids import DocumentKey
from schemas.provenance import Retrieval, decode_retrieval

SPARE_HITS = 20  # asked for beyond the limit, in case some are not current
LEAST_PROBES = 20  # partitions of the vector index; recall@50 is 1.0 from 5 on for 100,000 clustered vectors
HITS_A_PROBE = 25  # a partition holds at least 100 rows
CACHED_DOCUMENTS = 5_000
ROWS_AT_ONCE = 4_096
MOST_LISTED_DOCUMENTS = 2_000  # in a condition of the table; of more, hits are fetched until enough are in the scope

CONTENT_DOCUMENT_COLUMNS = [
    "key",
    "collection",
    "document_id",
    "version",
    "revision",
    "content_type",
    "title",
    "uri",
    "metadata",
    "chunks",
    "passages",
]
CONTENT_CHUNK_COLUMNS = ["row", "id", "key", "revision", "ordinal", "passage_id", "start", "end", "content_hash"]
CONTENT_PASSAGE_COLUMNS = ["row", "id", "key", "revision", "ordinal", "start", "end", "content_hash"]


Row = TypeVar("Row", PassageRow, ChunkRow)


class VectorSnapshot:
    """Tables pinned to versions that belong together: every live document is there with all of its rows.

    Immutable. Any number of threads may use one at once, also after newer ones have been made, for as long as the
    writer keeps old versions: `is_kept` tells (MaintenanceParameters says how long that is). Rows of revisions that are
    not current are never returned, except by `content_rows`. Every method raises TransientStoreError when the store
    cannot be read just now, DamagedStore for a row that is not what was written.
    """

    def __init__(
        self,
        connection: DBConnection,
        tables: Mapping[str, Table],
        positions: Mapping[int, StoredPosition],
        opened_at: datetime,
        resident: ResidentView,
        known_documents: dict[DocumentKey, DocumentRow | None],
    ) -> None:
        """`resident` is the view of these tables. `known_documents` caches rows of this very version of `documents`;
        snapshots of one version may share it."""
        self._connection = connection
        self._tables = tables
        self.usage = UsageTables(connection)
        self.resident = resident
        self.known_documents = known_documents
        self._dimension: int = tables[CHUNKS].schema.field("vector").type.list_size
        self.table_versions = {name: table.version for name, table in tables.items()}
        self.positions = dict(positions)
        self.opened_at = opened_at

    def is_kept(self) -> bool:
        """Whether the writer still keeps the versions of these tables; for a while after the next ones it does."""
        for name in (DOCUMENTS, PASSAGES, CHUNKS):
            with store_errors(f"look for the version of {name}"):
                newest = self._connection.open_table(name)
                try:
                    newest.checkout(self.table_versions[name])
                except ValueError:
                    return False
        return True

    def vector_search(self, vector: NDArray[np.float32], limit: int, scope: Scope = EVERYTHING) -> list[FoundChunk]:
        """The `limit` chunks with the highest cosine, best first, ties by id.

        `vector` is (dimension,) float32. Exact where the vectors are in memory; else by an index that misses next to
        nothing.
        """
        if vector.shape != (self._dimension,):
            raise ValueError(f"The query vector has shape {vector.shape}; this generation has ({self._dimension},).")
        vectors = self.resident.vectors
        if vectors is not None:
            near = vectors.search(vector, limit, scope)
            return [FoundChunk(chunk.id, chunk.passage_id, chunk.key, chunk.score) for chunk in near]
        few = None if scope.documents is None else [str(key) for key in sorted(scope.documents)]
        if few is not None and len(few) > MOST_LISTED_DOCUMENTS:
            few = None
        if few == []:
            return []
        wanted = ["id", "passage_id", "collection", "document_id", "revision", "_distance"]

        def fetch(count: int) -> list[dict[str, Any]]:
            nearest = self._tables[CHUNKS].search(
                np.asarray(vector, dtype=np.float32), vector_column_name="vector", query_type="vector"
            )
            query = (
                cast("LanceVectorQueryBuilder", nearest)
                .distance_type("cosine")
                .minimum_nprobes(LEAST_PROBES + count // HITS_A_PROBE)
                .maximum_nprobes(0)
            )
            if few:
                query = query.where(col("key").isin(few))
            elif scope.collection is not None:
                query = query.where(col("collection") == lit(scope.collection))
            with reading(CHUNKS):
                return _dicts(query.select(wanted).limit(count).to_arrow())

        found = [
            FoundChunk(row["id"], row["passage_id"], key, 1.0 - row["_distance"])
            for row, key in self._current_hits(limit, fetch, scope)
            if math.isfinite(row["_distance"])
        ]
        return sorted(found, key=lambda hit: (-hit.score, hit.chunk_id))[:limit]

    def keyword_search(self, query: str, limit: int, scope: Scope = EVERYTHING) -> list[FoundPassage]:
        """The `limit` passages with the highest BM25 over title, headings, text and labels, best first, ties by id.

        `query` is text, never syntax; one of stop words and signs alone finds nothing.
        """
        found = self.resident.words.search(terms_of_question(query), limit, scope)
        return [FoundPassage(row.id, row.key, row.score) for row in found]

    @property
    def fields(self) -> DocumentIndex:
        """What the live documents say of themselves, in memory."""
        return self.resident.documents

    def leads(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, str]:
        """The first passage of each document that has any. Costs nothing."""
        return self.resident.words.leads(keys)

    def compare_words(self, query: str, passage_ids: Sequence[str], collection: str | None = None) -> ComparedRows:
        """The BM25 of these passages, as `keyword_search` gives it, which of the question's terms each holds, and the
        idf of those terms. Costs a fraction of a search."""
        return self.resident.words.compare(terms_of_question(query), passage_ids, collection)

    def passages_holding(self, names: Sequence[str], collection: str | None = None) -> list[int]:
        """For each name, how many passages of the collection hold all its words, in any case and anywhere; 0 for one
        of stop words only."""
        return [self.resident.words.holding(terms_of(name), collection) for name in names]

    def bm25_of(
        self, queries: Sequence[str], passage_ids: Sequence[str], collection: str | None = None
    ) -> list[NDArray[np.float64]]:
        """For each query (n_passages,) the BM25 of these passages, as `compare_words` gives it."""
        return self.resident.words.bm25([terms_of_question(query) for query in queries], passage_ids, collection)

    def compare_vectors(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        """(n_passages,) the cosine of each passage's nearest chunk, as `vector_search` gives it; NaN where it is not
        known, as in an index of too many chunks to be kept in memory."""
        if self.resident.vectors is None:
            return np.full(len(passage_ids), np.nan)
        return self.resident.vectors.cosines(vector, passage_ids)

    def revisions(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, str]:
        """The revisions of the documents that are live. Costs nothing."""
        found = {key: self.resident.revision(key) for key in keys}
        return {key: revision for key, revision in found.items() if revision is not None}

    def holds(self, collection: str) -> bool:
        """Whether a live document is in the collection. Costs nothing."""
        return self.resident.words.holds(collection)

    def partitions_of(self, key: DocumentKey) -> set[int]:
        """The partitions of the documents topic in which records of the document were seen; none for an unknown one."""
        rows = [row for table in self._in(DOCUMENTS, "key", [str(key)], None) for row in document_rows(table)]
        return {partition for row in rows for partition in (row.partition, *row.elsewhere)}

    def documents(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
        """The rows of the documents that are known, live or deleted."""
        wanted = dict.fromkeys(keys)
        live = {key: self.resident.document(key) for key in wanted if key not in self.known_documents}
        fresh: dict[DocumentKey, DocumentRow | None] = dict(live)
        unread = [key for key, row in live.items() if row is None]
        for table in self._in(DOCUMENTS, "key", [str(key) for key in unread], None):
            fresh |= {row.key: row for row in document_rows(table)}
        if len(self.known_documents) + len(fresh) <= CACHED_DOCUMENTS:
            self.known_documents.update(fresh)
        rows = {key: fresh[key] if key in fresh else self.known_documents[key] for key in wanted}
        return {key: row for key, row in rows.items() if row is not None}

    @property
    def holds_texts(self) -> bool:
        """Whether texts are in memory, so that reading them costs next to nothing."""
        return self.resident.texts is not None and self.resident.vectors is not None

    def passages(self, ids: Iterable[str]) -> dict[str, PassageRow]:
        if self.resident.texts is not None:
            return self.resident.texts.passages(ids, self.resident.revisions)
        wanted = list(ids)
        rows = [row for table in self._in(PASSAGES, "id", wanted, PASSAGE_COLUMNS) for row in passage_rows(table)]
        found = {row.id: row for row in self._current(rows)}
        _require_all(PASSAGES, wanted, found, self.resident.words.layers)
        return found

    def chunks(self, ids: Iterable[str]) -> dict[str, ChunkRow]:
        wanted = list(ids)
        rows = [row for table in self._in(CHUNKS, "id", wanted, CHUNK_COLUMNS) for row in chunk_rows(table)]
        found = {row.id: row for row in self._current(rows)}
        if self.resident.vectors is not None:
            _require_all(CHUNKS, wanted, found, self.resident.vectors.layers)
        return found

    def chunks_of_passages(self, passage_ids: Iterable[str]) -> dict[str, list[ChunkRow]]:
        """The chunks of each passage that has any, in document order."""
        texts, vectors = self.resident.texts, self.resident.vectors
        if texts is not None and vectors is not None:
            held = texts.passages(passage_ids, self.resident.revisions)
            of_each = {name: chunks_of(row, vectors.chunks_of(name)) for name, row in held.items()}
            return {name: chunks for name, chunks in of_each.items() if chunks}
        tables = self._in(CHUNKS, "passage_id", passage_ids, CHUNK_COLUMNS)
        unique = {row.id: row for row in self._current([row for table in tables for row in chunk_rows(table)])}
        found: dict[str, list[ChunkRow]] = {}
        for row in sorted(unique.values(), key=lambda row: row.ordinal):
            found.setdefault(row.passage_id, []).append(row)
        return found

    def chunks_in(self, spans: Iterable[ChunkSpan]) -> dict[DocumentKey, list[ChunkRow]]:
        """The chunks of these spans by document, each once, in document order."""
        wanted = list(spans)
        tables = rows_in_spans(self._tables[CHUNKS], wanted, CHUNK_COLUMNS)
        unique = {row.id: row for row in self._current([row for table in tables for row in chunk_rows(table)])}
        found: dict[DocumentKey, list[ChunkRow]] = {}
        for row in sorted(unique.values(), key=lambda row: row.ordinal):
            found.setdefault(row.key, []).append(row)
        self._require_spans(wanted, found)
        return found

    def vectors(self, chunk_ids: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of the chunks that are there; each (dimension,) float32, L2-normalised."""
        found: dict[str, NDArray[np.float32]] = {}
        wanted = list(chunk_ids)
        for table in self._in(CHUNKS, "id", wanted, [*CHUNK_COLUMNS, "content_hash", "vector"]):
            current = {(row.id, row.revision) for row in self._current(chunk_rows(table))}
            matrix = vector_matrix(table)
            names = zip(table["id"].to_pylist(), table["revision"].to_pylist(), strict=True)
            found |= {name[0]: matrix[index] for index, name in enumerate(names) if name in current}
        if self.resident.vectors is not None:
            _require_all(CHUNKS, wanted, found, self.resident.vectors.layers)
        return found

    def list_documents(
        self, collection: str | None, cursor: str | None, limit: int
    ) -> tuple[list[DocumentRow], str | None]:
        """A page of live documents, ordered by collection and id, and the cursor of the next page if there is one.

        Raises MalformedCursor.
        """
        after = None if cursor is None else read_cursor(cursor)
        live = (
            key
            for key, revision in self.resident.revisions.items()
            if revision and (collection is None or key.collection == collection) and (after is None or key > after)
        )
        keys = heapq.nsmallest(limit + 1, live)
        found = self.documents(keys[:limit])
        return [found[key] for key in keys[:limit]], write_cursor(keys[limit - 1]) if len(keys) > limit else None

    def counts(self) -> dict[str, int]:
        """Rows by table: live `documents`, `deleted` ones, `passages` and `chunks` (for moments with stale ones), and
        `misplaced` documents: live ones of which a tombstone has to reach more than one partition."""
        with reading(DOCUMENTS):
            documents = self._tables[DOCUMENTS]
            told = "elsewhere" in documents.schema.names  # not in tables that no newer worker has opened yet
            deleted = documents.search().where(col("live") == lit(False)).select(["partition"]).to_arrow().num_rows
            return {
                "documents": documents.count_rows() - deleted,
                "deleted": deleted,
                "passages": self._tables[PASSAGES].count_rows(),
                "chunks": self._tables[CHUNKS].count_rows(),
                "misplaced": documents.count_rows("live AND elsewhere IS NOT NULL") if told else 0,
            }

    def retrieval(self, retrieval_id: str) -> Retrieval | None:
        """The record of a retrieval, from the newest state: it comes later than the snapshot it was made on."""
        with store_errors("look up a retrieval"):
            table = self._connection.open_table(RETRIEVALS)
        for found in rows_with(table, "retrieval_id", [retrieval_id], ["retrieval_id", "body"]):
            if found.num_rows:
                return decode_retrieval(unpacked(found["body"][0].as_py()))
        return None

    def content_rows(self) -> ContentRows:
        """Everything but texts and vectors, for comparing stores."""
        with reading(CHUNKS):
            return ContentRows(
                documents=self._tables[DOCUMENTS]
                .search()
                .where(col("live") == lit(True))
                .select(CONTENT_DOCUMENT_COLUMNS)
                .to_arrow(),
                chunks=self._tables[CHUNKS].search().select(CONTENT_CHUNK_COLUMNS).to_arrow(),
                passages=self._tables[PASSAGES].search().select(CONTENT_PASSAGE_COLUMNS).to_arrow(),
            )

    def require_intact_rows(self) -> None:
        """Read all rows of all tables, and hold each against its checksums. Raises DamagedStore for the first that is
        not what was written."""
        tables = dict(self._tables)
        with store_errors("open the tables"):
            held = self._connection.list_tables().tables
            tables |= {name: self._connection.open_table(name) for name in (RETRIEVALS, FEEDBACK) if name in held}
        for name, table in tables.items():
            with reading(name):
                for batch in table.search().to_batches(batch_size=ROWS_AT_ONCE):
                    require_intact(name, pa.Table.from_batches([batch]))

    def _in(self, name: str, column: str, values: Iterable[str], columns: list[str] | None) -> list[pa.Table]:
        return rows_with(self._tables[name], column, values, columns)

    def _current(self, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if self.resident.revision(row.key) == row.revision]

    def _require_spans(self, spans: Sequence[ChunkSpan], found: Mapping[DocumentKey, Sequence[ChunkRow]]) -> None:
        """As `_require_all`, for spans of chunks."""
        if self.resident.vectors is None:
            return
        for key in dict.fromkeys(span.key for span in spans):
            held = self.resident.vectors.layers.span(key)
            if held is None:
                continue
            layer, start, end = held
            ordinals = layer.content.bounds[start:end, 0].tolist()
            asked = sum(any(s.key == key and s.first <= at <= s.last for s in spans) for at in ordinals)
            if asked != len(found.get(key, ())):
                raise DamagedStore.of_document(CHUNKS, str(key), asked - len(found.get(key, ())))

    def _current_hits(
        self, limit: int, fetch: Callable[[int], list[dict[str, Any]]], scope: Scope
    ) -> list[tuple[dict[str, Any], DocumentKey]]:
        """Hits of current revisions in the scope, with their documents: at least `limit`, if there are that many."""
        if limit < 1:
            return []
        asked = limit + max(SPARE_HITS, limit // 4)
        while True:
            rows = fetch(asked)
            current: dict[str, tuple[dict[str, Any], DocumentKey]] = {}
            for row in rows:
                key = DocumentKey(row["collection"], row["document_id"])
                if scope.allows(key) and self.resident.revision(key) == row["revision"]:
                    current.setdefault(row["id"], (row, key))
            if len(current) >= limit or len(rows) < asked:
                return list(current.values())
            asked *= 4


def _require_all(table: str, wanted: Sequence[str], found: Collection[str], held: Layers[Any]) -> None:
    """Raises DamagedStore where a look-up did not find a row that is known to be there: its index is damaged."""
    for identifier in wanted:
        if identifier not in found and held.holds(identifier):
            raise DamagedStore.of_lost_row(table, identifier)


def _dicts(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
