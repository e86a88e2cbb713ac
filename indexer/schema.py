"""The LanceDB tables of a generation: their columns, their rows as Python values, and how they are opened."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import lancedb
import msgspec
import pyarrow as pa
from lancedb.table import Table

from indexer.documents import page_at
from indexer.errors import DamagedStore, TransientStoreError
from schemas.ids import DocumentKey
from schemas.limits import PAGE_STARTS, RESERVED_METADATA, STATED_FIELDS

CHUNKS = "chunks"
PASSAGES = "passages"
DOCUMENTS = "documents"
POSITIONS = "positions"
RETRIEVALS = "retrievals"
FEEDBACK = "feedback"

MIB = 1024 * 1024
INDEX_CACHE_BYTES = 512 * MIB
METADATA_CACHE_BYTES = 64 * MIB

STRINGS = pa.list_(pa.string())


PRIMARY_KEYS = {
    CHUNKS: "row",
    PASSAGES: "row",
    DOCUMENTS: "key",
    POSITIONS: "partition",
    RETRIEVALS: "retrieval_id",
    FEEDBACK: "feedback_id",
}
PRIMARY_KEY_MARK = {"lance-schema:unenforced-primary-key:position": "1"}


def required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def primary_key(name: str, kind: pa.DataType) -> pa.Field:
    """Lance does not enforce it, but lets two writers that add the same key conflict instead of both adding it."""
    return pa.field(name, kind, nullable=False, metadata=PRIMARY_KEY_MARK)


def checksum(name: str) -> pa.Field:
    """Of other columns of the row, see `indexer.integrity.rows`; null in rows of earlier programs."""
    return pa.field(name, pa.uint64())


def chunks_schema(dimension: int) -> pa.Schema:
    """`row` is `<chunk id>:<revision>`: a chunk's id survives edits of other parts of its document."""
    return pa.schema(
        [
            primary_key("row", pa.string()),
            required("id", pa.string()),
            required("collection", pa.string()),
            required("document_id", pa.string()),
            required("key", pa.string()),
            required("revision", pa.string()),
            required("ordinal", pa.int32()),
            required("passage_id", pa.string()),
            required("section", STRINGS),
            required("start", pa.int64()),
            required("end", pa.int64()),
            required("text", pa.string()),
            required("vector", pa.list_(pa.float32(), dimension)),
            required("content_hash", pa.string()),
            checksum("checksum"),
            checksum("vector_checksum"),
        ]
    )


PASSAGES_SCHEMA = pa.schema(
    [
        primary_key("row", pa.string()),
        required("id", pa.string()),
        required("collection", pa.string()),
        required("document_id", pa.string()),
        required("key", pa.string()),
        required("revision", pa.string()),
        required("ordinal", pa.int32()),
        required("section", STRINGS),
        required("start", pa.int64()),
        required("end", pa.int64()),
        required("title", pa.string()),
        required("text", pa.string()),
        required("terms", pa.list_(pa.field("item", pa.uint32(), nullable=False))),
        required("content_hash", pa.string()),
        checksum("checksum"),
        checksum("terms_checksum"),
    ]
)

DOCUMENTS_SCHEMA = pa.schema(
    [
        primary_key("key", pa.string()),
        required("collection", pa.string()),
        required("document_id", pa.string()),
        pa.field("version", pa.int64()),
        required("partition", pa.int32()),
        required("offset", pa.int64()),
        required("timestamp_ms", pa.int64()),
        pa.field("revision", pa.string()),
        required("content_type", pa.string()),
        required("title", pa.string()),
        pa.field("uri", pa.string()),
        required("metadata", pa.string()),
        required("chunks", pa.int32()),
        required("passages", pa.int32()),
        pa.field("deleted_at_ms", pa.int64()),
        required("live", pa.bool_()),
        pa.field("elsewhere", pa.list_(pa.int32())),
        checksum("checksum"),
    ]
)  # `elsewhere` is null in most rows, and missing from those of earlier programs

POSITIONS_SCHEMA = pa.schema(
    [
        primary_key("partition", pa.int32()),
        required("offset", pa.int64()),
        required("graph_offset", pa.int64()),
        pa.field("timestamp_ms", pa.int64()),
    ]
)

RETRIEVALS_SCHEMA = pa.schema(
    [
        primary_key("retrieval_id", pa.string()),
        required("at_ms", pa.int64()),
        required("query", pa.string()),
        pa.field("collection", pa.string()),
        required("mode", pa.string()),
        required("chunk_ids", STRINGS),
        required("body", pa.binary()),
        pa.field("ranks", pa.list_(pa.int32())),
        pa.field("seconds", pa.float64()),
        pa.field("outcome", pa.string()),
        pa.field("cached", pa.bool_()),
        pa.field("offset", pa.int32()),
        checksum("checksum"),
    ]
)  # what may be null is missing from rows of earlier programs

FEEDBACK_SCHEMA = pa.schema(
    [
        primary_key("feedback_id", pa.string()),
        required("retrieval_id", pa.string()),
        required("chunk_id", pa.string()),
        required("rating", pa.float64()),
        required("at_ms", pa.int64()),
        required("log_offset", pa.int64()),
        required("body", pa.binary()),
        checksum("checksum"),
    ]
)


class StoredPosition(NamedTuple):
    """How far the text stores are: the last offset of a partition of the documents topic whose effects are in them, and
    the offset of the graph topic that a reader of the graph needs to see the same. `timestamp_ms` is the record's own,
    0 where an earlier program did not note it."""

    offset: int
    graph_offset: int
    timestamp_ms: int = 0


def compress_body(record: bytes) -> bytes:
    """A JSON record as a column keeps it: a third of its size."""
    return zlib.compress(record)


def decompress_body(body: bytes) -> bytes:
    """What was packed; a body from an earlier program is JSON as it is."""
    return body if body.startswith(b"{") else zlib.decompress(body)


@dataclass(frozen=True)
class DocumentRow:
    """What is known of a document: live, or a tombstone (`deleted_at_ms` set, no revision, no content).

    `version` is the producer's, if it gave one; `partition`, `offset` and `timestamp_ms` are those of the record.
    `elsewhere` are the other partitions that a tombstone has to reach: where records of the document were seen, and
    where its key belongs.
    """

    key: DocumentKey
    version: int | None
    partition: int
    offset: int
    timestamp_ms: int
    revision: str | None = None
    content_type: str = ""
    title: str = ""
    uri: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    chunks: int = 0
    passages: int = 0
    deleted_at_ms: int | None = None
    elsewhere: tuple[int, ...] = ()

    @property
    def live(self) -> bool:
        return self.deleted_at_ms is None

    @property
    def own_metadata(self) -> dict[str, Any]:
        """What the producer sent and the document states of itself, without what the parser put beside it."""
        return {name: value for name, value in self.metadata.items() if name not in RESERVED_METADATA}

    @property
    def stated_fields(self) -> list[str]:
        """The names in `own_metadata` that the document states of itself; the others its producer sent."""
        return list(self.metadata.get(STATED_FIELDS, ()))

    def page_at(self, offset: int) -> int | None:
        """The page, counted from 1, of the character at an offset; None in a format without pages."""
        return page_at(self.metadata.get(PAGE_STARTS, ()), offset)


def documents_table(rows: Iterable[DocumentRow]) -> pa.Table:
    """Rows for the `documents` table."""
    return pa.Table.from_pylist(
        [
            {
                "key": str(row.key),
                "collection": row.key.collection,
                "document_id": row.key.document_id,
                "version": row.version,
                "partition": row.partition,
                "offset": row.offset,
                "timestamp_ms": row.timestamp_ms,
                "revision": row.revision,
                "content_type": row.content_type,
                "title": row.title,
                "uri": row.uri,
                "metadata": msgspec.json.encode(row.metadata).decode(),
                "chunks": row.chunks,
                "passages": row.passages,
                "deleted_at_ms": row.deleted_at_ms,
                "live": row.live,
                "elsewhere": row.elsewhere or None,
            }
            for row in rows
        ],
        schema=DOCUMENTS_SCHEMA,
    )


def document_rows(table: pa.Table) -> list[DocumentRow]:
    """The rows of a query on `documents` that selected all columns."""
    return [
        DocumentRow(
            key=DocumentKey(row["collection"], row["document_id"]),
            version=row["version"],
            partition=row["partition"],
            offset=row["offset"],
            timestamp_ms=row["timestamp_ms"],
            revision=row["revision"],
            content_type=row["content_type"],
            title=row["title"],
            uri=row["uri"],
            metadata=msgspec.json.decode(row["metadata"]),
            chunks=row["chunks"],
            passages=row["passages"],
            deleted_at_ms=row["deleted_at_ms"],
            elsewhere=tuple(row.get("elsewhere") or ()),
        )
        for row in table.to_pylist()
    ]


def connect(lance_dir: Path, *, index_cache_bytes: int = INDEX_CACHE_BYTES) -> lancedb.DBConnection:
    """A connection whose caches are bounded; handles it opens stay at the version they were opened at."""
    session = lancedb.Session(index_cache_size_bytes=index_cache_bytes, metadata_cache_size_bytes=METADATA_CACHE_BYTES)
    return lancedb.connect(lance_dir, session=session)


def open_fresh_tables(lance_dir: Path, names: Iterable[str]) -> dict[str, Table]:
    """Handles of the tables with caches of their own, some 50 ms.

    A writer does this now and then: each commit and each optimising leaves files and indexes in the caches that nobody
    asks for again, which pushed a worker up by 25 MB in 20 minutes, towards bounds that are meant for large indexes.
    """
    connection = connect(lance_dir)
    return {name: connection.open_table(name) for name in names}


def checkout_latest(table: Table) -> None:
    """Let a handle see what others have written since it was opened."""
    table.checkout_latest()  # type: ignore[no-untyped-call]


PANICS = {"PanicException", "RustPanic"}  # of Lance's Rust code, in threads of ours and of its own


@contextmanager
def read_errors(table: str) -> Iterator[None]:
    """Around a read whose question is known to be a good one: what cannot be decoded is damage. Else as
    `store_errors`."""
    try:
        with store_errors(f"read {table}"):
            yield
    except (ValueError, OverflowError) as error:  # such as ArrowInvalid, UnicodeDecodeError
        raise DamagedStore.of_table(table, error) from error
    except TransientStoreError as error:
        if type(error.__cause__).__name__ not in PANICS:
            raise
        raise DamagedStore.of_table(table, error) from error


@contextmanager
def store_errors(doing: str) -> Iterator[None]:
    """Turn what LanceDB raises for I/O errors, full disks and commit conflicts into TransientStoreError.

    `doing` finishes the sentence "Could not …". Bad arguments (ValueError, TypeError) pass through.
    """
    try:
        yield
    except OSError as error:
        raise TransientStoreError(f"Could not {doing}: {error}") from error
    except RuntimeError as error:
        if type(error) is not RuntimeError:  # NotImplementedError, RecursionError: faults of the program
            raise
        raise TransientStoreError(f"Could not {doing}: {error}") from error
    except BaseException as error:
        if type(error).__name__ not in PANICS:
            raise
        raise TransientStoreError(f"Could not {doing}: {error}") from error
