"""Rows as readers get them, stored or found by a search, and look-ups by the values of an indexed column."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from lancedb.expr import Expr, col, lit
from lancedb.table import Table
from numpy.typing import NDArray

from indexer.generation_folders import current_generation
from indexer.integrity.row_checksums import checkable, require_intact
from indexer.lance_connection import checkout_latest, connect, read_errors, store_errors
from indexer.schema import DOCUMENTS, DocumentRow, document_rows
from schemas.ids import DocumentKey

IN_LIST = 500  # values of one `IN (…)`
SPANS = 50  # of one condition
PASSAGE_COLUMNS = ["id", "collection", "document_id", "revision", "ordinal", "section", "start", "end", "title", "text"]
CHUNK_COLUMNS = [
    *("id", "collection", "document_id", "revision", "ordinal", "passage_id", "section", "start", "end", "text")
]


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A parent chunk; `section` holds the headings above it, outermost first; `start` and `end` count characters."""

    id: str
    key: DocumentKey
    revision: str
    ordinal: int
    section: list[str]
    start: int
    end: int
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A child chunk with its own text, without its vector."""

    id: str
    key: DocumentKey
    revision: str
    ordinal: int
    passage_id: str
    section: list[str]
    start: int
    end: int
    text: str


class ChunkSpan(NamedTuple):
    """The chunks `first` to `last` of a document, both included, by their ordinals."""

    key: DocumentKey
    first: int
    last: int


class FoundChunk(NamedTuple):
    """A chunk that vector search found; `score` is the cosine with the query, in [-1, 1]."""

    chunk_id: str
    passage_id: str
    key: DocumentKey
    score: float


@dataclass(frozen=True)
class ContentRows:
    """The content of the text stores without vectors, for comparing stores: all chunk and passage rows, current or not,
    and the rows of live documents, tombstones left out. Nothing is sorted."""

    documents: pa.Table
    chunks: pa.Table
    passages: pa.Table


def passage_rows(table: pa.Table) -> list[PassageRow]:
    """The rows of a query that selected PASSAGE_COLUMNS."""
    return [PassageRow(key=_pop_key(row), **row) for row in table.select(PASSAGE_COLUMNS).to_pylist()]


def chunk_rows(table: pa.Table) -> list[ChunkRow]:
    """The rows of a query that selected CHUNK_COLUMNS."""
    return [ChunkRow(key=_pop_key(row), **row) for row in table.select(CHUNK_COLUMNS).to_pylist()]


def _pop_key(row: dict[str, Any]) -> DocumentKey:
    return DocumentKey(row.pop("collection"), row.pop("document_id"))


def rows_with(table: Table, column: str, values: Iterable[str], columns: list[str] | None) -> list[pa.Table]:
    """The rows whose `column` is one of `values`, in several tables; all columns for None. Nothing for no values.

    Raises DamagedStore where a row is not what was written, as far as its checked columns are among those read."""
    unique = list(dict.fromkeys(values))
    parts = (unique[start : start + IN_LIST] for start in range(0, len(unique), IN_LIST))
    return _rows_where(table, (col(column).isin(part) for part in parts), columns)


def rows_in_spans(table: Table, spans: Iterable[ChunkSpan], columns: list[str]) -> list[pa.Table]:
    """The rows of these spans of chunks, in several tables; spans may overlap. Nothing for no spans.

    Raises DamagedStore as `rows_with` does."""
    unique = [
        (col("key") == lit(str(key))) & (col("ordinal") >= lit(first)) & (col("ordinal") <= lit(last))
        for key, first, last in dict.fromkeys(spans)
    ]
    parts = (unique[start : start + SPANS] for start in range(0, len(unique), SPANS))
    return _rows_where(table, (reduce(or_, part) for part in parts), columns)


def _rows_where(table: Table, conditions: Iterable[Expr], columns: list[str] | None) -> list[pa.Table]:
    found = []
    with read_errors(table.name):
        for condition in conditions:
            query = table.search().where(condition)
            found.append((query if columns is None else query.select(checkable(table.name, columns))).to_arrow())
    for rows in found:
        require_intact(table.name, rows)
    return found


def vector_matrix(table: pa.Table) -> NDArray[np.float32]:
    """The `vector` column as (rows, dimension) float32."""
    column = table["vector"].combine_chunks()
    matrix: NDArray[np.float32] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
    return matrix


class DocumentLookup:
    """Looks up documents one at a time in a data directory, for commands."""

    def __init__(self, documents: Table | None) -> None:
        self._documents = documents

    @classmethod
    def open(cls, data_dir: Path) -> Self:
        """Without stores every document is unknown. Raises TransientStoreError when they cannot be read."""
        generation = current_generation(data_dir)
        if generation is None or not generation.lance_dir.is_dir():
            return cls(None)
        with store_errors(f"open the tables in {generation.lance_dir}"):
            connection = connect(generation.lance_dir)
            made = DOCUMENTS in connection.list_tables().tables
            return cls(connection.open_table(DOCUMENTS) if made else None)

    def find(self, key: DocumentKey) -> DocumentRow | None:
        """The row of a document, or of its tombstone; None if unknown."""
        return next(iter(self._rows("key", str(key))), None)

    def collections_with(self, document_id: str) -> list[str]:
        """The collections in which a document of this id is live, ascending."""
        return sorted(row.key.collection for row in self._rows("document_id", document_id) if row.live)

    def in_collection(self, collection: str) -> list[DocumentRow]:
        """The rows of its live documents."""
        return [row for row in self._rows("collection", collection) if row.live]

    def _rows(self, column: str, value: str) -> list[DocumentRow]:
        if self._documents is None:
            return []
        checkout_latest(self._documents)
        tables = rows_with(self._documents, column, [value], None)
        return [row for table in tables for row in document_rows(table)]


def joined_text(passages: Iterable[PassageRow]) -> str:
    """The passages' texts in order, without what one repeats of the one before; a blank line where text is left out."""
    pieces: list[str] = []
    reached = 0
    for passage in passages:
        repeated = max(0, reached - passage.start)
        if repeated < len(passage.text):
            if pieces and passage.start > reached:
                pieces.append("\n\n")
            pieces.append(passage.text[repeated:])
        reached = max(reached, passage.end)
    return "".join(pieces)
