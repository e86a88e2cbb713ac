"""The text tables, read-only: pinned to versions that belong together, and replaced by newer ones."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lancedb import DBConnection
from lancedb.expr import col, lit
from lancedb.query import LanceVectorQueryBuilder
from lancedb.table import Table
from numpy.typing import NDArray

from indexer.errors import DamagedStore, TransientStoreError
from indexer.generation_folders import Generation
from indexer.integrity.files import require_intact_tables
from indexer.integrity.row_checksums import checkable, require_intact
from indexer.lance_connection import INDEX_CACHE_BYTES, connect, open_table, read_errors, store_errors
from indexer.read.rows import (
    CHUNK_COLUMNS,
    PASSAGE_COLUMNS,
    ChunkRow,
    ChunkSpan,
    ContentRows,
    FoundChunk,
    PassageRow,
    chunk_rows,
    passage_rows,
    rows_in_spans,
    rows_with,
    vector_matrix,
)
from indexer.read.usage import UsageTables
from indexer.schema import (
    CHUNKS,
    DOCUMENTS,
    FEEDBACK,
    PASSAGES,
    POSITIONS,
    RETRIEVALS,
    DocumentRow,
    StoredPosition,
    decompress_body,
    document_rows,
)
from schemas.ids import CANARY_COLLECTION, DocumentKey
from schemas.provenance import Retrieval, decode_retrieval

Row = TypeVar("Row")

INDEX_TABLES = (POSITIONS, DOCUMENTS, PASSAGES, CHUNKS)
MAX_ATTEMPTS = 50
MIN_PROBES = 20  # partitions of the vector index; recall@50 is 1.0 from 5 on for 100,000 clustered vectors
HITS_PER_PROBE = 25  # a partition holds at least 100 rows
BATCH_ROWS = 4_096
MAX_LISTED_DOCUMENTS = 2_000  # in a condition of a table
MAX_LOOKUPS = 2_000  # documents; the rows of more are found sooner by scanning the table

VECTOR_COLUMNS = [*CHUNK_COLUMNS, "content_hash", "vector"]
CONTENT_DOCUMENT_COLUMNS = [
    *("key", "collection", "document_id", "version", "revision", "content_type", "title", "uri", "metadata"),
    *("chunks", "passages"),
]
CONTENT_CHUNK_COLUMNS = ["row", "id", "key", "revision", "ordinal", "passage_id", "start", "end", "content_hash"]
CONTENT_PASSAGE_COLUMNS = ["row", "id", "key", "revision", "ordinal", "start", "end", "content_hash"]


SOURCE_COLUMNS = [
    *("collection", "document_id", "version", "partition", "offset", "timestamp_ms", "revision", "deleted_at_ms"),
    "elsewhere",
]


class NearestRow(NamedTuple):
    """A chunk that the table's vector index found, and the revision it is of."""

    chunk: FoundChunk
    revision: str


class LanceSnapshot:
    """Tables pinned to versions that belong together: every live document is there with all of its rows. Rows of
    other revisions may be there too.

    Immutable. Any number of threads may use one at once, also after newer ones have been made, for as long as the
    writer keeps old versions: see `is_kept` (MaintenanceParameters: how long that is). Every method raises
    TransientStoreError when the store cannot be read just now, DamagedStore for a row that is not what was written.
    """

    def __init__(
        self,
        connection: DBConnection,
        tables: Mapping[str, Table],
        positions: Mapping[int, StoredPosition],
        opened_at: datetime,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self.usage = UsageTables(connection)
        self.dimension: int = tables[CHUNKS].schema.field("vector").type.list_size
        self.table_versions = {name: table.version for name, table in tables.items()}
        self.positions = dict(positions)
        self.opened_at = opened_at

    def is_kept(self) -> bool:
        """Whether the writer still keeps the versions of these tables, for a while after the next ones; False where the
        tables are gone with their generation."""
        for name in (DOCUMENTS, PASSAGES, CHUNKS):
            with store_errors(f"look for the version of {name}"):
                try:
                    self._connection.open_table(name).checkout(self.table_versions[name])
                except ValueError:
                    return False
        return True

    def nearest(
        self, vector: NDArray[np.float32], limit: int, collection: str | None, documents: Sequence[str] | None
    ) -> list[NearestRow]:
        """The `limit` rows with the highest cosine, in no order, by an index that misses next to nothing; of one
        collection, or of some documents where these are few enough to be listed."""
        builder = self._tables[CHUNKS].search(
            np.asarray(vector, dtype=np.float32), vector_column_name="vector", query_type="vector"
        )
        query = (
            cast("LanceVectorQueryBuilder", builder)
            .distance_type("cosine")
            .minimum_nprobes(MIN_PROBES + limit // HITS_PER_PROBE)
            .maximum_nprobes(0)
        )
        if documents is not None and len(documents) <= MAX_LISTED_DOCUMENTS:
            query = query.where(col("key").isin(documents))
        elif collection is not None:
            query = query.where(col("collection") == lit(collection))
        wanted = ["id", "passage_id", "collection", "document_id", "revision", "_distance"]
        with read_errors(CHUNKS):
            rows = query.select(wanted).limit(limit).to_arrow().to_pylist()
        return [
            NearestRow(
                FoundChunk(
                    row["id"],
                    row["passage_id"],
                    DocumentKey(row["collection"], row["document_id"]),
                    1.0 - row["_distance"] if math.isfinite(row["_distance"]) else math.nan,
                ),
                row["revision"],
            )
            for row in rows
        ]

    def documents(self, keys: Iterable[DocumentKey]) -> list[DocumentRow]:
        """The rows of the documents that are known, live or deleted."""
        return _joined(document_rows, self._rows_with(DOCUMENTS, "key", map(str, keys), None))

    def passages(self, ids: Iterable[str]) -> list[PassageRow]:
        return _joined(passage_rows, self._rows_with(PASSAGES, "id", ids, PASSAGE_COLUMNS))

    def chunks(self, ids: Iterable[str]) -> list[ChunkRow]:
        return _joined(chunk_rows, self._rows_with(CHUNKS, "id", ids, CHUNK_COLUMNS))

    def chunks_of_passages(self, passage_ids: Iterable[str]) -> list[ChunkRow]:
        return _joined(chunk_rows, self._rows_with(CHUNKS, "passage_id", passage_ids, CHUNK_COLUMNS))

    def chunks_in(self, spans: Iterable[ChunkSpan]) -> list[ChunkRow]:
        return _joined(chunk_rows, rows_in_spans(self._tables[CHUNKS], spans, CHUNK_COLUMNS))

    def vectors(self, chunk_ids: Iterable[str]) -> list[tuple[ChunkRow, NDArray[np.float32]]]:
        """Chunks with their vectors; each (dimension,) float32, L2-normalised."""
        tables = self._rows_with(CHUNKS, "id", chunk_ids, VECTOR_COLUMNS)
        return [pair for table in tables for pair in zip(chunk_rows(table), vector_matrix(table), strict=True)]

    def counts(self) -> dict[str, int]:
        """Rows by table: live `documents`, `deleted` ones (not canaries), `passages` and `chunks` (for moments with
        stale ones), and `misplaced` documents: live ones of which a tombstone has to reach more than one partition."""
        with read_errors(DOCUMENTS):
            documents = self._tables[DOCUMENTS]
            dead = documents.search().where(col("live") == lit(False)).select(["collection"]).to_arrow()
            canaries = pc.sum(pc.equal(dead["collection"], CANARY_COLLECTION)).as_py() or 0
            return {
                "documents": documents.count_rows() - dead.num_rows,
                "deleted": dead.num_rows - canaries,
                "passages": self._tables[PASSAGES].count_rows(),
                "chunks": self._tables[CHUNKS].count_rows(),
                "misplaced": documents.count_rows("live AND elsewhere IS NOT NULL"),
            }

    def count_chunks(self) -> int:
        with read_errors(CHUNKS):
            return int(self._tables[CHUNKS].count_rows())

    def count_characters(self) -> int:
        """Of the texts of all passages."""
        with read_errors(PASSAGES):
            bounds = self._tables[PASSAGES].search().select(["start", "end"]).to_arrow()
        return int(bounds["end"].to_numpy().sum() - bounds["start"].to_numpy().sum())

    def retrieval(self, retrieval_id: str) -> Retrieval | None:
        """The record of a retrieval, from the newest state: it comes later than the snapshot it was made on."""
        with store_errors("look up a retrieval"):
            table = self._connection.open_table(RETRIEVALS)
        for found in rows_with(table, "retrieval_id", [retrieval_id], ["retrieval_id", "body"]):
            if found.num_rows:
                return decode_retrieval(decompress_body(found["body"][0].as_py()))
        return None

    def changed_documents(self, since: Mapping[int, StoredPosition], columns: Sequence[str]) -> pa.Table:
        """The rows of the documents that records after `since` have changed."""
        documents = self._tables[DOCUMENTS]
        query = documents.search()
        if since:
            condition = ~col("partition").isin(list(since))
            for partition, position in since.items():
                condition = condition | ((col("partition") == lit(partition)) & (col("offset") > lit(position.offset)))
            query = query.where(condition)
        with read_errors(DOCUMENTS):
            rows = query.select(checkable(DOCUMENTS, list(columns))).to_arrow()
        require_intact(DOCUMENTS, rows)
        return rows

    def known_documents(self) -> list[DocumentRow]:
        """The row of every document, tombstones included, by where it comes from: no title, address or metadata."""
        with read_errors(DOCUMENTS):
            found = self._tables[DOCUMENTS].search().select(SOURCE_COLUMNS).to_batches(batch_size=BATCH_ROWS)
            return [row for batch in found for row in document_rows(pa.Table.from_batches([batch]))]

    def rows_of_documents(
        self, name: str, columns: Sequence[str], revisions: Mapping[str, str], counts: Mapping[str, int]
    ) -> Iterator[pa.Table]:
        """The rows of these revisions (document key → revision), whole documents together, in document order;
        `columns` hold `key`, `revision`, `ordinal` and `id`.

        Raises DamagedStore for rows that are not what was written, and for a document without its count of rows."""
        if not revisions:
            return
        table = self._tables[name]
        if len(revisions) <= MAX_LOOKUPS:
            found = rows_with(table, "key", revisions, list(columns))
        else:
            with read_errors(name):
                found = [table.search().select(checkable(name, list(columns))).to_arrow()]
            require_intact(name, found[0])
        missing = Counter({key: counts[key] for key in revisions})
        for rows in found:
            owners = zip(rows["key"].to_pylist(), rows["revision"].to_pylist(), strict=True)
            is_current = pa.array([revisions.get(key) == revision for key, revision in owners], type=pa.bool_())
            current = rows.filter(is_current)
            if current.num_rows:
                unique = _without_duplicates(current.sort_by([("key", "ascending"), ("ordinal", "ascending")]))
                missing.subtract(unique["key"].to_pylist())
                yield unique
        for key, count in missing.items():
            if count:
                raise DamagedStore.of_document(name, key, count)

    def content_rows(self) -> ContentRows:
        """Everything but texts and vectors, for comparing stores."""
        with read_errors(CHUNKS):
            documents = self._tables[DOCUMENTS].search().where(col("live") == lit(True))
            return ContentRows(
                documents=documents.select(CONTENT_DOCUMENT_COLUMNS).to_arrow(),
                chunks=self._tables[CHUNKS].search().select(CONTENT_CHUNK_COLUMNS).to_arrow(),
                passages=self._tables[PASSAGES].search().select(CONTENT_PASSAGE_COLUMNS).to_arrow(),
            )

    def uncommitted_documents(self) -> int:
        """Rows of documents after the stored positions: of a commit under way, which the graph may not know of yet."""
        with read_errors(DOCUMENTS):
            rows = self._tables[DOCUMENTS].search().select(["partition", "offset"]).to_arrow()
        partitions, offsets = rows["partition"].to_numpy(), rows["offset"].to_numpy()
        stored = {partition: each.offset for partition, each in self.positions.items()}
        return sum(int(np.sum(offsets[partitions == number] > stored.get(number, -1))) for number in set(partitions))

    def require_intact_rows(self) -> None:
        """Check all rows of all tables against their checksums, and that every live document has all of its rows.
        Raises DamagedStore for the first that is not what was written."""
        tables = dict(self._tables)
        with store_errors("open the tables"):
            there = self._connection.list_tables().tables
            tables |= {name: self._connection.open_table(name) for name in (RETRIEVALS, FEEDBACK) if name in there}
        for name, table in tables.items():
            with read_errors(name):
                for batch in table.search().to_batches(batch_size=BATCH_ROWS):
                    require_intact(name, pa.Table.from_batches([batch]))
        rows = self.changed_documents({}, ["key", "revision", PASSAGES, CHUNKS]).to_pylist()
        live = [row for row in rows if row["revision"] is not None]
        revisions = {row["key"]: row["revision"] for row in live}
        for name in (PASSAGES, CHUNKS):
            counts = {row["key"]: row[name] for row in live}
            for _ in self.rows_of_documents(name, ["key", "revision", "ordinal", "id"], revisions, counts):
                pass

    def _rows_with(self, name: str, column: str, values: Iterable[str], columns: list[str] | None) -> list[pa.Table]:
        return rows_with(self._tables[name], column, values, columns)


class LanceReader:
    """Opens the tables of a generation. Thread-safe; any number of readers and one writer may share the tables."""

    def __init__(self, connection: DBConnection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, generation: Generation, *, index_cache_bytes: int = INDEX_CACHE_BYTES) -> Self:
        """Raises FileNotFoundError while the writer has not made them yet, TransientStoreError when they cannot be
        read, DamagedStore where a file, a row or a table of the index is not what was written."""
        require_intact_tables(generation, INDEX_TABLES)
        missing = f"Generation {generation.name} has no tables in {generation.lance_dir} yet: start the worker."
        if not generation.lance_dir.is_dir():
            raise FileNotFoundError(missing)
        with store_errors(f"open the tables in {generation.lance_dir}"):
            connection = connect(generation.lance_dir, index_cache_bytes=index_cache_bytes)
            made = DOCUMENTS in connection.list_tables().tables  # the writer makes it last
        if not made:
            raise FileNotFoundError(missing)
        return cls(connection)

    def snapshot(self, before: LanceSnapshot | None = None) -> LanceSnapshot:
        """The newest versions that belong together; `before` itself where nothing has changed since.

        The writer adds rows, then moves documents, then deletes stale rows, then moves positions. Read the other way
        round (positions, documents, then rows) and with documents unmoved meanwhile, the tables belong together.
        Raises TransientStoreError when they cannot be read.
        """
        with store_errors("open the newest versions"):
            for _ in range(MAX_ATTEMPTS):
                opened = {name: self._open_table(name) for name in INDEX_TABLES}
                if self._open_table(DOCUMENTS).version == opened[DOCUMENTS].version:
                    break
            else:
                raise TransientStoreError(
                    f"The documents table moved {MAX_ATTEMPTS} times while a snapshot was opened."
                )
            versions = {name: table.version for name, table in opened.items()}
            if before is not None and before.table_versions == versions:
                return before
            moved = before is None or before.table_versions[POSITIONS] != versions[POSITIONS]
            positions = stored_positions(opened[POSITIONS]) if before is None or moved else before.positions
            return LanceSnapshot(self._connection, opened, positions, datetime.now(UTC))

    def _open_table(self, name: str) -> Table:
        try:
            return open_table(self._connection, name)
        except ValueError as error:
            raise TransientStoreError(f"The table {name} is gone: {error}. Has the generation been removed?") from error


def stored_positions(table: Table) -> dict[int, StoredPosition]:
    """The rows of `positions` by partition."""
    with read_errors(POSITIONS):
        rows: list[dict[str, Any]] = table.to_arrow().to_pylist()
    return {row["partition"]: StoredPosition(row["offset"], row["mark"], row["timestamp_ms"]) for row in rows}


def _joined(rows_of: Callable[[pa.Table], list[Row]], tables: Iterable[pa.Table]) -> list[Row]:
    return [row for table in tables for row in rows_of(table)]


def _without_duplicates(rows: pa.Table) -> pa.Table:
    """Without the second rows that a write repeated after a crash may have left."""
    ids = rows["id"].to_pylist()
    if len(set(ids)) == len(ids):
        return rows
    seen: set[str] = set()
    first = [not (identifier in seen or seen.add(identifier)) for identifier in ids]  # type: ignore[func-returns-value]
    return rows.filter(pa.array(first, type=pa.bool_()))
