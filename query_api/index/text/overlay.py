"""The text tables with the rows of commits that they may not have yet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.changes import Commit, DocumentChange, Reached
from indexer.read.lance_reader import LanceSnapshot, NearestRow
from indexer.read.rows import ChunkRow, ChunkSpan, FoundChunk, PassageRow, chunk_rows, passage_rows, vector_matrix
from indexer.schema import (
    CHUNKS,
    DOCUMENTS_SCHEMA,
    PASSAGES,
    PASSAGES_SCHEMA,
    DocumentRow,
    StoredPosition,
    chunks_schema,
    document_rows,
    documents_table,
    newest_mark,
)
from schemas.ids import DocumentKey


class _Rows(NamedTuple):
    """Rows of a document that came with a commit up to `reached`."""

    table: pa.Table
    reached: Reached


Overlay = Mapping[DocumentKey, _Rows]


@dataclass(frozen=True)
class OverlaidTables:
    """Pinned tables, and over them what commits have changed since. Immutable; thread-safe.

    `offset` is that of the last mark whose commit is included. Rows of revisions that are not current may be there, and
    rows that the tables have by now may be there twice. Methods raise as those of LanceSnapshot do.
    """

    base: LanceSnapshot
    positions: Mapping[int, StoredPosition]
    offset: int
    opened_at: datetime
    _documents: Overlay = field(default_factory=dict)
    _contents: Mapping[str, Overlay] = field(default_factory=lambda: {PASSAGES: {}, CHUNKS: {}})

    @classmethod
    def of(cls, base: LanceSnapshot) -> Self:
        """What the tables have alone."""
        return cls(base, base.positions, newest_mark(base.positions), base.opened_at)

    def with_commits(self, commits: Sequence[Commit[Any]]) -> "OverlaidTables":
        """With what these commits changed, in the order of the log."""
        positions, documents = dict(self.positions), dict(self._documents)
        contents = {name: dict(rows) for name, rows in self._contents.items()}
        for commit in commits:
            for partition, (offset, timestamp_ms) in commit.reached.items():
                before = positions.get(partition, StoredPosition(-1, -1))
                if offset > before.offset:
                    before = StoredPosition(offset, before.mark, timestamp_ms)
                positions[partition] = before._replace(mark=commit.offset) if commit.in_graph else before
            for key, change in commit.changes.items():
                if change.row is not None:
                    documents[key] = _Rows(change.row, commit.reached)
                for name, table in contents_of(change).items():
                    contents[name][key] = _Rows(table, commit.reached)
        offset = max(self.offset, commits[-1].offset)
        return OverlaidTables(self.base, positions, offset, datetime.now(UTC), documents, contents)

    def with_base(self, base: LanceSnapshot) -> "OverlaidTables":
        """With newer tables under it; what they have is dropped."""

        def left(rows: Overlay) -> Overlay:
            return {key: each for key, each in rows.items() if not _covers(base.positions, each.reached)}

        newer = {
            partition: stored
            for partition, stored in base.positions.items()
            if stored.offset > self.positions.get(partition, StoredPosition(-1, -1)).offset
        }
        return replace(
            self,
            base=base,
            positions={**self.positions, **newer},
            offset=max(self.offset, newest_mark(base.positions)),
            opened_at=base.opened_at,
            _documents=left(self._documents),
            _contents={name: left(rows) for name, rows in self._contents.items()},
        )

    def documents(self, keys: Iterable[DocumentKey]) -> list[DocumentRow]:
        """The rows of the documents that are known, live or deleted."""
        wanted = list(keys)
        fresh = [self._documents[key].table for key in wanted if key in self._documents]
        stored = self.base.documents(key for key in wanted if key not in self._documents)
        return [*stored, *(row for table in fresh for row in document_rows(table))]

    def passages(self, ids: Iterable[str]) -> list[PassageRow]:
        wanted = list(ids)
        return [*self.base.passages(wanted), *passage_rows(_with(self._passages, "id", wanted))]

    def chunks(self, ids: Iterable[str]) -> list[ChunkRow]:
        wanted = list(ids)
        return [*self.base.chunks(wanted), *chunk_rows(_with(self._chunks, "id", wanted))]

    def chunks_of_passages(self, passage_ids: Iterable[str]) -> list[ChunkRow]:
        wanted = list(passage_ids)
        return [*self.base.chunks_of_passages(wanted), *chunk_rows(_with(self._chunks, "passage_id", wanted))]

    def chunks_in(self, spans: Iterable[ChunkSpan]) -> list[ChunkRow]:
        wanted = list(spans)
        fresh = chunk_rows(_with(self._chunks, "key", [str(span.key) for span in wanted]))
        within = [
            row
            for row in fresh
            if any(row.key == span.key and span.first <= row.ordinal <= span.last for span in wanted)
        ]
        return [*self.base.chunks_in(wanted), *within]

    def vectors(self, chunk_ids: Iterable[str]) -> list[tuple[ChunkRow, NDArray[np.float32]]]:
        """Chunks with their vectors; each (dimension,) float32, L2-normalised."""
        wanted = list(chunk_ids)
        fresh = _with(self._chunks, "id", wanted)
        return [*self.base.vectors(wanted), *zip(chunk_rows(fresh), vector_matrix(fresh), strict=True)]

    def nearest(
        self, vector: NDArray[np.float32], limit: int, collection: str | None, documents: Sequence[str] | None
    ) -> list[NearestRow]:
        """The `limit` rows of the tables with the highest cosine, by their index, and all that came since."""
        cosines = (vector_matrix(self._chunks) @ (vector / np.linalg.norm(vector))).tolist()
        revisions = self._chunks["revision"].to_pylist()
        fresh = [
            NearestRow(FoundChunk(row.id, row.passage_id, row.key, cosine), revision)
            for row, cosine, revision in zip(chunk_rows(self._chunks), cosines, revisions, strict=True)
        ]
        return [*self.base.nearest(vector, limit, collection, documents), *fresh]

    @cached_property
    def _passages(self) -> pa.Table:
        return _together((each.table for each in self._contents[PASSAGES].values()), PASSAGES_SCHEMA)

    @cached_property
    def _chunks(self) -> pa.Table:
        rows = (each.table for each in self._contents[CHUNKS].values())
        return _together(rows, chunks_schema(self.base.dimension))


class ChangedRows:
    """The rows of the documents that commits changed, for the state in memory."""

    def __init__(self, commits: Sequence[Commit[Any]], base: LanceSnapshot) -> None:
        self._base = base
        self._documents: dict[str, pa.Table] = {}
        self._contents: dict[str, dict[str, pa.Table]] = {PASSAGES: {}, CHUNKS: {}}
        for key, change in (each for commit in commits for each in commit.changes.items()):
            if change.row is not None:
                self._documents[str(key)] = change.row
            for name, table in contents_of(change).items():
                self._contents[name][str(key)] = table

    def changed_documents(self, _since: Mapping[int, StoredPosition], columns: Sequence[str]) -> pa.Table:
        rows = [*self._documents.values(), DOCUMENTS_SCHEMA.empty_table()]
        return pa.concat_tables(rows).select(list(columns))

    def rows_of_documents(
        self, name: str, columns: Sequence[str], revisions: Mapping[str, str], counts: Mapping[str, int]
    ) -> Iterator[pa.Table]:
        """As LanceSnapshot has them; also of a document whose row alone changed."""
        came = self._contents[name]
        fresh = [came[key].select(list(columns)) for key in sorted(revisions) if key in came and came[key].num_rows]
        if fresh:
            yield pa.concat_tables(fresh).combine_chunks()
        stored = {key: revision for key, revision in revisions.items() if key not in came}
        yield from self._base.rows_of_documents(name, columns, stored, counts)

    def count_chunks(self) -> int:
        return self._base.count_chunks() + sum(int(table.num_rows) for table in self._contents[CHUNKS].values())

    def count_characters(self) -> int:
        texts = (text for table in self._contents[PASSAGES].values() for text in table["text"].to_pylist())
        return self._base.count_characters() + sum(map(len, texts))


def contents_of(change: DocumentChange) -> dict[str, pa.Table]:
    """The rows of the document's revision, by table; none where they stay as they are."""
    found = {PASSAGES: change.passages, CHUNKS: change.chunks}
    return {name: table for name, table in found.items() if table is not None}


def stored_change(tables: LanceSnapshot, key: DocumentKey) -> DocumentChange:
    """The document as the tables have it; deleted where they do not."""
    row = next(iter(tables.documents([key])), None)
    row = row or DocumentRow(key, None, partition=0, offset=-1, timestamp_ms=0, deleted_at_ms=0)
    if row.revision is None:
        return DocumentChange(key, documents_table([row]))
    passages, chunks = (
        _together(tables.rows_of_documents(name, schema.names, {str(key): row.revision}, {str(key): rows}), schema)
        for name, schema, rows in (
            (PASSAGES, PASSAGES_SCHEMA, row.passages),
            (CHUNKS, chunks_schema(tables.dimension), row.chunks),
        )
    )
    return DocumentChange(key, documents_table([row]), passages, chunks)


def _covers(positions: Mapping[int, StoredPosition], reached: Reached) -> bool:
    return all(at in positions and positions[at].offset >= offset for at, (offset, _) in reached.items())


def _together(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    rows = [table.select(schema.names) for table in tables if table.num_rows]
    return pa.concat_tables([*rows, schema.empty_table()]).combine_chunks()


def _with(table: pa.Table, column: str, values: Sequence[str]) -> pa.Table:
    return table.filter(pc.is_in(table[column], pa.array(values, pa.string()))) if table.num_rows else table
