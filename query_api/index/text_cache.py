"""Texts that searches have read, kept from one snapshot to the next.

A passage's id is computed from its text, so only the revision its document is at can make a kept row wrong; that is
checked against the snapshot at hand.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.scope import Scope
from query_api.index.snapshot import Reached, TextSnapshot
from schemas.ids import DocumentKey

if TYPE_CHECKING:
    from indexer.read.resident.documents import DocumentIndex
    from indexer.read.resident.words import ComparedRows
    from indexer.read.rows import ChunkRow, ChunkSpan, FoundChunk, FoundPassage, PassageRow
    from indexer.schema import DocumentRow

KEPT_PASSAGES = 8_192  # about 5 kB each with their chunks

Row = TypeVar("Row")


class _Kept(Generic[Row]):
    """The rows used last, by passage id, with the document and revision they belong to."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: OrderedDict[str, tuple[DocumentKey, str, Row]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ids: Iterable[str]) -> dict[str, tuple[DocumentKey, str, Row]]:
        found = {}
        with self._lock:
            for identifier in ids:
                held = self._rows.get(identifier)
                if held is not None:
                    self._rows.move_to_end(identifier)
                    found[identifier] = held
        return found

    def put(self, rows: Mapping[str, tuple[DocumentKey, str, Row]]) -> None:
        with self._lock:
            for identifier, row in rows.items():
                self._rows[identifier] = row
                self._rows.move_to_end(identifier)
            while len(self._rows) > self._size:
                self._rows.popitem(last=False)


class TextCache:
    """One for all searches of a process. Thread-safe."""

    def __init__(self, passages: int = KEPT_PASSAGES) -> None:
        self.passages: _Kept[PassageRow] = _Kept(passages)
        self.chunks: _Kept[list[ChunkRow]] = _Kept(passages)


class CachedText:
    """A snapshot of the text stores that answers from the cache where it can; the same answers, sooner."""

    def __init__(self, text: TextSnapshot, cache: TextCache) -> None:
        self._text = text
        self._cache = cache

    @property
    def table_versions(self) -> Mapping[str, int]:
        return self._text.table_versions

    @property
    def positions(self) -> Mapping[int, Reached]:
        return self._text.positions

    @property
    def opened_at(self) -> datetime:
        return self._text.opened_at

    @property
    def fields(self) -> "DocumentIndex":
        return self._text.fields

    def leads(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, str]:
        return self._text.leads(keys)

    def vector_search(self, vector: NDArray[np.float32], limit: int, scope: Scope) -> "Sequence[FoundChunk]":
        return self._text.vector_search(vector, limit, scope)

    def keyword_search(self, query: str, limit: int, scope: Scope) -> "Sequence[FoundPassage]":
        return self._text.keyword_search(query, limit, scope)

    def compare_words(self, query: str, passage_ids: Sequence[str], collection: str | None) -> "ComparedRows":
        return self._text.compare_words(query, passage_ids, collection)

    def passages_holding(self, names: Sequence[str], collection: str | None) -> Sequence[int]:
        return self._text.passages_holding(names, collection)

    def bm25_of(
        self, queries: Sequence[str], passage_ids: Sequence[str], collection: str | None
    ) -> Sequence[NDArray[np.float64]]:
        return self._text.bm25_of(queries, passage_ids, collection)

    def compare_vectors(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        return self._text.compare_vectors(vector, passage_ids)

    def revisions(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, str]:
        return self._text.revisions(keys)

    def documents(self, keys: Sequence[DocumentKey]) -> "Mapping[DocumentKey, DocumentRow]":
        return self._text.documents(keys)

    def chunks_in(self, spans: "Sequence[ChunkSpan]") -> "Mapping[DocumentKey, Sequence[ChunkRow]]":
        return self._text.chunks_in(spans)

    def vectors(self, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        return self._text.vectors(chunk_ids)

    def passages(self, ids: Sequence[str]) -> "dict[str, PassageRow]":
        return self._through(self._cache.passages, ids, self._text.passages, lambda row: (row.key, row.revision, row))

    def chunks_of_passages(self, passage_ids: Sequence[str]) -> "dict[str, list[ChunkRow]]":
        def read(ids: Sequence[str]) -> "dict[str, list[ChunkRow]]":
            return {identifier: list(rows) for identifier, rows in self._text.chunks_of_passages(ids).items()}

        return self._through(self._cache.chunks, passage_ids, read, lambda rows: (rows[0].key, rows[0].revision, rows))

    def _through(
        self,
        kept: _Kept[Row],
        ids: Sequence[str],
        read: Callable[[Sequence[str]], Mapping[str, Row]],
        labelled: Callable[[Row], tuple[DocumentKey, str, Row]],
    ) -> dict[str, Row]:
        """The kept rows that are current in this snapshot, and the others read and kept."""
        held = kept.get(ids)
        current = self._text.revisions(list({key for key, _, _ in held.values()}))
        rows = {identifier: row for identifier, (key, revision, row) in held.items() if current.get(key) == revision}
        missing = [identifier for identifier in dict.fromkeys(ids) if identifier not in rows]
        if missing:
            fresh = read(missing)
            kept.put({identifier: labelled(row) for identifier, row in fresh.items()})
            rows |= fresh
        return rows
