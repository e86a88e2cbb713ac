"""The LanceDB tables of a generation: schemas, and rows as Python values."""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import msgspec
import pyarrow as pa

from indexer.documents import PreparedDocument, page_at
from schemas.ids import DocumentKey
from schemas.limits import PAGE_STARTS, RESERVED_METADATA, STATED_FIELDS

CHUNKS = "chunks"
PASSAGES = "passages"
DOCUMENTS = "documents"
POSITIONS = "positions"
RETRIEVALS = "retrievals"
FEEDBACK = "feedback"

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
    """Lance does not enforce it, but makes two writers that add the same key conflict."""
    return pa.field(name, kind, nullable=False, metadata=PRIMARY_KEY_MARK)


def checksum(name: str) -> pa.Field:
    """A checksum of other columns, see `indexer.integrity.row_checksums`; null in rows that are in no table yet."""
    return pa.field(name, pa.uint64())


def chunks_schema(dimension: int) -> pa.Schema:
    """`row` is `<chunk id>:<revision>`: a chunk's id survives edits of other parts of its document. `entities` are the
    spans that the tagger found in the embedded text; null where there is none for the encoder."""
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
            pa.field("entities", pa.binary()),
            checksum("entities_checksum"),
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
)

POSITIONS_SCHEMA = pa.schema(
    [
        primary_key("partition", pa.int32()),
        required("offset", pa.int64()),
        required("mark", pa.int64()),
        required("timestamp_ms", pa.int64()),
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
        pa.field("best_confidence", pa.float64()),
        pa.field("counted", pa.bool_()),
        checksum("checksum"),
    ]
)

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
    """The last offset of a partition of the documents topic that the text stores include.

    `mark` is the offset of the mark on the contributions topic that ends what they include, -1 for none; `timestamp_ms`
    the record's own.
    """

    offset: int
    mark: int
    timestamp_ms: int = 0


def newest_mark(positions: Mapping[int, StoredPosition]) -> int:
    """The offset of the contributions topic that who has the content of the tables has reached; -1 for none."""
    return max((stored.mark for stored in positions.values()), default=-1)


def compress_body(record: bytes) -> bytes:
    """Compress a JSON record to a third of its size."""
    return zlib.compress(record)


def decompress_body(body: bytes) -> bytes:
    """The JSON record."""
    return zlib.decompress(body)


@dataclass(frozen=True)
class DocumentRow:
    """A row of `documents`: a live document, or a tombstone (`deleted_at_ms` set, no revision, no content).

    `version` is the producer's, if any; `partition`, `offset` and `timestamp_ms` are those of the record.
    `other_partitions`, the column `elsewhere`, are those that a tombstone has to reach besides: where records of the
    document were seen, and where its key belongs.
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
    other_partitions: tuple[int, ...] = ()

    @classmethod
    def from_prepared(
        cls,
        prepared: PreparedDocument,
        *,
        version: int | None,
        partition: int,
        offset: int,
        timestamp_ms: int,
        other_partitions: tuple[int, ...] = (),
    ) -> Self:
        """That of a live document, from a record."""
        return cls(
            key=prepared.key,
            version=version,
            partition=partition,
            offset=offset,
            timestamp_ms=timestamp_ms,
            revision=prepared.revision,
            content_type=prepared.content_type,
            title=prepared.title,
            uri=prepared.uri,
            metadata=prepared.metadata,
            chunks=len(prepared.chunked.chunks),
            passages=len(prepared.chunked.passages),
            other_partitions=other_partitions,
        )

    @property
    def live(self) -> bool:
        return self.deleted_at_ms is None

    def tombstone(self, now_ms: int) -> "DocumentRow":
        """What is left where the document is deleted without a record that says so."""
        return DocumentRow(
            key=self.key,
            version=self.version,
            partition=self.partition,
            offset=self.offset,
            timestamp_ms=self.timestamp_ms,
            other_partitions=self.other_partitions,
            deleted_at_ms=now_ms,
        )

    @property
    def own_metadata(self) -> dict[str, Any]:
        """The producer's and the document's own metadata, without what the parser added."""
        return {name: value for name, value in self.metadata.items() if name not in RESERVED_METADATA}

    @property
    def stated_fields(self) -> list[str]:
        """The names in `own_metadata` that come from the document itself, not from its producer."""
        return list(self.metadata.get(STATED_FIELDS, ()))

    def page_at(self, offset: int) -> int | None:
        return page_at(self.metadata.get(PAGE_STARTS, ()), offset)


_AS_STORED = (
    *("version", "partition", "offset", "timestamp_ms", "revision", "content_type", "title", "uri"),
    *("chunks", "passages", "deleted_at_ms"),
)


def documents_table(rows: Iterable[DocumentRow]) -> pa.Table:
    """Rows for the `documents` table."""
    return pa.Table.from_pylist(
        [
            {
                "key": str(row.key),
                **row.key._asdict(),
                **{name: getattr(row, name) for name in _AS_STORED},
                "metadata": msgspec.json.encode(row.metadata).decode(),
                "live": row.live,
                "elsewhere": row.other_partitions or None,
            }
            for row in rows
        ],
        schema=DOCUMENTS_SCHEMA,
    )


def document_rows(table: pa.Table) -> list[DocumentRow]:
    """The rows of a query on `documents`; columns that it did not select are empty."""
    return [
        DocumentRow(
            key=DocumentKey(row["collection"], row["document_id"]),
            metadata=msgspec.json.decode(row.get("metadata") or "{}"),
            other_partitions=tuple(row["elsewhere"] or ()),
            **{name: row[name] for name in _AS_STORED if name in row},
        )
        for row in table.to_pylist()
    ]
