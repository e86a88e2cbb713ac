"""One consistent state of the text stores: searches in memory where they fit, in the tables where they do not."""

import heapq
import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Self, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from indexer.changes import Commit
from indexer.errors import DamagedStore
from indexer.generation_folders import Generation
from indexer.lance_connection import INDEX_CACHE_BYTES
from indexer.read.lance_reader import LanceReader
from indexer.read.rows import ChunkRow, ChunkSpan, PassageRow
from indexer.read.usage import UsageTables
from indexer.schema import CHUNKS, DOCUMENTS, PASSAGES, DocumentRow, StoredPosition
from indexer.text_analysis import query_terms, terms_of
from query_api.index.text.bm25_index import TermScores
from query_api.index.text.filter_evaluation import DocumentIndex
from query_api.index.text.in_memory import MAX_TEXT_BYTES, MAX_VECTORS, InMemoryIndex, chunks_of
from query_api.index.text.overlay import ChangedRows, OverlaidTables, stored_change
from query_api.index.text.text_segments import EVERYTHING, Candidate, Scope, Segments
from query_api.index.text.vectors import CosineSpread
from schemas.cursors import read_cursor, write_cursor
from schemas.events import media_type_in
from schemas.graph_documents import kind_of, may_be_made
from schemas.ids import DocumentKey
from schemas.provenance import Retrieval

SPARE_HITS = 20  # requested beyond the limit, in case some are not current
LEAST_REPEATS = 3  # documents that have a sentence word for word, from which it is none of their own
MOST_REPEATS = 12  # passages that are read to see whether they repeat a sentence
MAX_CACHED_PASSAGES = 8_192  # about 5 kB each with their chunks

Row = TypeVar("Row", PassageRow, ChunkRow)
T = TypeVar("T")


class TextCache:
    """The passages and the chunks of passages that were read last, by id, for all snapshots. Thread-safe.

    A passage's id is computed from its text, so only the revision of its document can make a cached row stale.
    """

    def __init__(self, passages: int = MAX_CACHED_PASSAGES) -> None:
        self.lock = threading.Lock()
        self.passages: LRUCache[str, PassageRow] = LRUCache(passages)
        self.chunks: LRUCache[str, list[ChunkRow]] = LRUCache(passages)


class TextSnapshot:
    """Tables pinned to versions that belong together, and the state of them in memory.

    Immutable; thread-safe. Usable for as long as the writer keeps these versions. Rows of revisions that are not
    current are never returned; ids that are not there are left out. Every method raises TransientStoreError when the
    store cannot be read just now, DamagedStore for a row that is not what was written.
    """

    def __init__(self, tables: OverlaidTables, index: InMemoryIndex, cache: TextCache) -> None:
        """`index` is the state of these tables."""
        self.tables = tables
        self.index = index
        self._cache = cache

    @property
    def table_versions(self) -> Mapping[str, int]:
        return self.tables.base.table_versions

    @property
    def positions(self) -> Mapping[int, StoredPosition]:
        return self.tables.positions

    @property
    def offset(self) -> int:
        """That of the last mark on the contributions topic whose commit is included."""
        return self.tables.offset

    @property
    def opened_at(self) -> datetime:
        return self.tables.opened_at

    @property
    def usage(self) -> UsageTables:
        return self.tables.base.usage

    @property
    def fields(self) -> DocumentIndex:
        """The live documents' own fields, in memory."""
        return self.index.documents

    @property
    def in_memory(self) -> bool:
        """Whether texts and vectors are, so that no search that shows passages reads a table."""
        return self.index.texts is not None and self.index.vectors is not None

    def is_kept(self) -> bool:
        """Whether the writer still keeps the versions of these tables."""
        return self.tables.base.is_kept()

    def counts(self) -> dict[str, int]:
        """Rows by table; see LanceSnapshot."""
        return self.tables.base.counts()

    def retrieval(self, retrieval_id: str) -> Retrieval | None:
        """The record of a retrieval, from the newest state of the tables."""
        return self.tables.base.retrieval(retrieval_id)

    def vector_search(self, vector: NDArray[np.float32], limit: int, scope: Scope = EVERYTHING) -> list[Candidate]:
        """The `limit` chunks with the highest cosine, best first, ties by id.

        `vector` is (dimension,) float32. Exact where the vectors are in memory; else by an index that misses next to
        nothing.
        """
        if vector.shape != (self.tables.base.dimension,):
            raise ValueError(
                f"The query vector has shape {vector.shape}; this generation has ({self.tables.base.dimension},)."
            )
        if self.index.vectors is not None:
            return self.index.vectors.search(vector, limit, scope)
        return self._search_table(vector, limit, scope)

    def _search_table(self, vector: NDArray[np.float32], limit: int, scope: Scope) -> list[Candidate]:
        documents = None if scope.documents is None else [str(key) for key in sorted(scope.documents)]
        if limit < 1 or documents == []:
            return []
        most = limit + max(SPARE_HITS, limit // 4)
        while True:
            rows = self.tables.nearest(vector, most, scope.collection, documents)
            current = {
                chunk.chunk_id: chunk
                for chunk, revision in rows
                if scope.allows(chunk.key) and self.index.revision(chunk.key) == revision
            }
            if len(current) >= limit or len(rows) < most:
                break
            most *= 4
        finite = (chunk for chunk in current.values() if math.isfinite(chunk.score))
        best = sorted(finite, key=lambda chunk: (-chunk.score, chunk.chunk_id))[:limit]
        return [Candidate(chunk.passage_id, chunk.score, chunk.key, chunk.chunk_id) for chunk in best]

    def keyword_search(
        self, query: str, limit: int, scope: Scope = EVERYTHING, *, of_all: bool = False
    ) -> list[Candidate]:
        """The `limit` passages with the highest BM25 over title, headings, text and labels, best first, ties by id;
        `of_all` only those that hold all of its terms.

        `query` is text, never syntax; one of stop words and signs alone finds nothing, `of_all` any passage.
        """
        return self.index.postings.search(query_terms(query), limit, scope, of_all=of_all)

    def compare_words(self, query: str, passage_ids: Sequence[str], collection: str | None = None) -> TermScores:
        """The BM25 of these passages, as `keyword_search` gives it, which of the question's terms each holds, and the
        idf of those terms. Costs a fraction of a search."""
        return self.index.postings.compare(query_terms(query), passage_ids, collection)

    def known_words(self, words: Sequence[str]) -> list[str]:
        """Those of these single words that passages of any collection hold, but for words of the same hash."""
        terms = [(word, of[0]) for word in words if (of := terms_of(word))]
        known = self.index.postings.known(np.array([term for _, term in terms], dtype=np.uint32))
        return [word for (word, _), is_known in zip(terms, known.tolist(), strict=True) if is_known]

    def passages_holding(self, names: Sequence[str], collection: str | None = None) -> list[int]:
        """For each name, how many passages of the collection hold all its words, in any case and anywhere; 0 for one
        of stop words only."""
        return [self.index.postings.count_holding(terms_of(name), collection) for name in names]

    def repeats(self, sentence: str, collection: str | None = None) -> int:
        """How many documents of different titles have a sentence word for word, among the first passages that hold its
        words, at most MOST_REPEATS. Reads texts where there are LEAST_REPEATS. Raises TransientStoreError."""
        ids = self.index.postings.first_holding(terms_of(sentence), MOST_REPEATS, collection)
        if len(ids) < LEAST_REPEATS:
            return len(ids)
        words = " ".join(sentence.split())
        return len({row.title for row in self.passages(ids).values() if words in " ".join(row.text.split())})

    def bm25_of(
        self, queries: Sequence[str], passage_ids: Sequence[str], collection: str | None = None
    ) -> list[NDArray[np.float64]]:
        """For each query (n_passages,) the BM25 of these passages, as `compare_words` gives it."""
        return self.index.postings.bm25([query_terms(query) for query in queries], passage_ids, collection)

    def compare_vectors(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        """(n_passages,) the cosine of each passage's nearest chunk, as `vector_search` gives it; NaN where it is not
        known, as where there are too many vectors for memory."""
        if self.index.vectors is None:
            return np.full(len(passage_ids), np.nan)
        return self.index.vectors.cosines(vector, passage_ids)

    def cosine_spread(self, vector: NDArray[np.float32], collection: str | None = None) -> CosineSpread | None:
        """Of the vector to the collection's chunks; None where there are none, or too many vectors for memory."""
        return None if self.index.vectors is None else self.index.vectors.cosine_spread(vector, collection)

    def leads(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, str]:
        """The first passage of each document that has any; in memory."""
        return self.index.postings.first_rows(keys)

    def first_passage(self, key: DocumentKey) -> PassageRow | None:
        """Raises TransientStoreError."""
        return next(iter(self.passages(self.leads([key]).values()).values()), None)

    @property
    def knows_copies(self) -> bool:
        """Whether texts are in memory, where they are compared."""
        return self.index.texts is not None

    def copies(self, key: DocumentKey, scope: Scope) -> frozenset[DocumentKey]:
        """The other documents of the scope with the same text as one, all of it, but for blanks and the case of ASCII
        letters; none where that is not known."""
        return frozenset() if self.index.texts is None else self.index.texts.copies(key, scope)

    def revisions(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, str]:
        """The current revisions of the documents that are live; in memory."""
        found = {key: self.index.revision(key) for key in keys}
        return {key: revision for key, revision in found.items() if revision is not None}

    def holds(self, collection: str) -> bool:
        """Whether a live document is in the collection; in memory."""
        return self.index.postings.has_rows(collection)

    def partitions_of(self, key: DocumentKey) -> set[int]:
        """The partitions of the documents topic in which records of the document were seen; none for an unknown one."""
        rows = self.tables.documents([key])
        return {partition for row in rows for partition in (row.partition, *row.other_partitions)}

    def documents(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
        """The rows of the documents that are known, live or deleted."""
        wanted = list(dict.fromkeys(keys))
        in_memory = {key: self.index.document(key) for key in wanted}
        found = {key: row for key, row in in_memory.items() if row is not None}
        found |= {row.key: row for row in self.tables.documents(key for key in wanted if key not in found)}
        return {key: found[key] for key in wanted if key in found}

    def passages(self, ids: Iterable[str]) -> dict[str, PassageRow]:
        if self.index.texts is not None:
            return self.index.texts.passages(ids, self.index.revisions)
        return self._cached(self._cache.passages, ids, self._read_passages, lambda row: row)

    def chunks_of_passages(self, passage_ids: Iterable[str]) -> dict[str, list[ChunkRow]]:
        """The chunks of each passage that has any, in document order."""
        texts, vectors = self.index.texts, self.index.vectors
        if texts is not None and vectors is not None:
            passages = texts.passages(passage_ids, self.index.revisions)
            chunks = {name: chunks_of(row, vectors.chunks_of(name)) for name, row in passages.items()}
            return {name: rows for name, rows in chunks.items() if rows}
        return self._cached(self._cache.chunks, passage_ids, self._read_chunks_of_passages, lambda rows: rows[0])

    def chunks(self, ids: Iterable[str]) -> dict[str, ChunkRow]:
        wanted = list(ids)
        found = {row.id: row for row in self._current(self.tables.chunks(wanted))}
        if self.index.vectors is not None:
            _require_all(CHUNKS, wanted, found, self.index.vectors.segments)
        return found

    def chunks_in(self, spans: Iterable[ChunkSpan]) -> dict[DocumentKey, list[ChunkRow]]:
        """The chunks of these spans by document, each once, in document order."""
        wanted = list(spans)
        found = _grouped(self._current(self.tables.chunks_in(wanted)), lambda row: row.key)
        self._require_spans(wanted, found)
        return found

    def vectors(self, chunk_ids: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of the chunks that are there; each (dimension,) float32, L2-normalised. No answer of the service
        holds any."""
        wanted = list(chunk_ids)
        pairs = self.tables.vectors(wanted)
        found = {row.id: vector for row, vector in pairs if self._is_current(row)}
        if self.index.vectors is not None:
            _require_all(CHUNKS, wanted, found, self.index.vectors.segments)
        return found

    def list_documents(
        self, collection: str | None, cursor: str | None, limit: int, content_type: str | None = None
    ) -> tuple[list[DocumentRow], str | None]:
        """A page of live documents, ordered by collection and id, and the cursor of the next page if there is one: of a
        media type, else all but the nodes and edges that people made.

        Raises MalformedCursor.
        """
        after = None if cursor is None else read_cursor(cursor, DocumentKey, "a list of documents")
        live = (
            key
            for key, revision in self.index.revisions.items()
            if revision
            and (collection is None or key.collection == collection)
            and (after is None or key > after)
            and self._is_listed(key, content_type)
        )
        keys = heapq.nsmallest(limit + 1, live)
        found = self.documents(keys[:limit])
        return [found[key] for key in keys[:limit]], write_cursor(keys[limit - 1]) if len(keys) > limit else None

    def _is_listed(self, key: DocumentKey, content_type: str | None) -> bool:
        if content_type is None and not may_be_made(key.document_id):
            return True
        found = self.fields.content_type(key) or ""
        return kind_of(found) is None if content_type is None else media_type_in(found) == content_type

    def _cached(
        self,
        cache: LRUCache[str, T],
        ids: Iterable[str],
        read: Callable[[Sequence[str]], Mapping[str, T]],
        first_row: Callable[[T], PassageRow | ChunkRow],
    ) -> dict[str, T]:
        """The cached rows that are current here, and the others read and cached."""
        wanted = list(dict.fromkeys(ids))
        with self._cache.lock:
            found = {identifier: cache[identifier] for identifier in wanted if identifier in cache}
        found = {identifier: row for identifier, row in found.items() if self._is_current(first_row(row))}
        missing = [identifier for identifier in wanted if identifier not in found]
        if missing:
            fresh = read(missing)
            with self._cache.lock:
                cache.update(fresh)
            found.update(fresh)
        return found

    def _read_passages(self, ids: Sequence[str]) -> dict[str, PassageRow]:
        found = {row.id: row for row in self._current(self.tables.passages(ids))}
        _require_all(PASSAGES, ids, found, self.index.postings.segments)
        return found

    def _read_chunks_of_passages(self, passage_ids: Sequence[str]) -> dict[str, list[ChunkRow]]:
        return _grouped(self._current(self.tables.chunks_of_passages(passage_ids)), lambda row: row.passage_id)

    def _current(self, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if self._is_current(row)]

    def _is_current(self, row: PassageRow | ChunkRow) -> bool:
        return self.index.revision(row.key) == row.revision

    def _require_spans(self, spans: Sequence[ChunkSpan], found: Mapping[DocumentKey, Sequence[ChunkRow]]) -> None:
        """As `_require_all`, for spans of chunks."""
        if self.index.vectors is None:
            return
        for key in dict.fromkeys(span.key for span in spans):
            located = self.index.vectors.segments.find(key)
            if located is None:
                continue
            segment, start, end = located
            ordinals = segment.columns.bounds[start:end, 0].tolist()
            expected = sum(any(s.key == key and s.first <= at <= s.last for s in spans) for at in ordinals)
            if expected != len(found.get(key, ())):
                raise DamagedStore.of_document(CHUNKS, str(key), expected - len(found.get(key, ())))


class TextReader:
    """Keeps the newest consistent snapshot of a generation's text stores. Thread-safe."""

    def __init__(self, reader: LanceReader, index: InMemoryIndex) -> None:
        self._reader = reader
        self._cache = TextCache()
        self._refreshing = threading.Lock()
        tables = reader.snapshot()
        self._snapshot = TextSnapshot(OverlaidTables.of(tables), index.updated_to(tables, {}), self._cache)

    @classmethod
    def open(
        cls,
        generation: Generation,
        *,
        index_cache_bytes: int = INDEX_CACHE_BYTES,
        max_vectors: int = MAX_VECTORS,
        max_text_bytes: int = MAX_TEXT_BYTES,
    ) -> Self:
        """With more chunks than `max_vectors`, their vectors are searched in the table, by its index; with longer texts
        than `max_text_bytes`, these are read from it. Raises as LanceReader.open does."""
        reader = LanceReader.open(generation, index_cache_bytes=index_cache_bytes)
        return cls(reader, InMemoryIndex.empty(max_vectors, max_text_bytes))

    def snapshot(self) -> TextSnapshot:
        """The newest that `apply` and `refresh` have made."""
        return self._snapshot

    def apply(self, commits: Sequence[Commit[Any]]) -> None:
        """Show what these commits changed, in the order of the log. Those that the tables had are known already."""
        with self._refreshing:
            old = self._snapshot
            newer = [self._with_refused(commit) for commit in commits if commit.offset > old.tables.offset]
            if newer:
                index = old.index.updated_to(ChangedRows(newer, old.tables.base), old.positions)
                self._snapshot = TextSnapshot(old.tables.with_commits(newer), index, self._cache)

    def _with_refused(self, commit: Commit[Any]) -> Commit[Any]:
        """What the store refused becomes what the store has."""
        if not commit.void:
            return commit
        tables = self._reader.snapshot()
        return replace(commit, changes={**commit.changes, **{key: stored_change(tables, key) for key in commit.void}})

    def refresh(self, *, follows: bool = False) -> bool:
        """Look for newer versions of the tables; True if the snapshot changed. Where it `follows` the log by `apply`,
        tables that hold more than the log has shown here are left for the next time.

        Raises TransientStoreError when the tables cannot be read; the old snapshot stays.
        """
        with self._refreshing:
            old = self._snapshot
            base = self._reader.snapshot(old.tables.base)
            if base is old.tables.base:
                return False
            index = old.index
            if old.table_versions[DOCUMENTS] != base.table_versions[DOCUMENTS]:
                if follows and base.changed_documents(old.positions, ["key"]).num_rows:
                    return False
                index = old.index.updated_to(base, old.positions)
            self._snapshot = TextSnapshot(old.tables.with_base(base), index, self._cache)
            return True


K = TypeVar("K")


def _grouped(rows: Iterable[ChunkRow], name: Callable[[ChunkRow], K]) -> dict[K, list[ChunkRow]]:
    """Each row once, in document order."""
    found: dict[K, list[ChunkRow]] = {}
    for row in sorted({row.id: row for row in rows}.values(), key=lambda row: row.ordinal):
        found.setdefault(name(row), []).append(row)
    return found


def _require_all(table: str, wanted: Sequence[str], found: Collection[str], segments: Segments[Any]) -> None:
    """Raises DamagedStore where a look-up did not find a row that is known to be there: its index is damaged."""
    for identifier in wanted:
        if identifier not in found and segments.holds(identifier):
            raise DamagedStore.of_lost_row(table, identifier)
