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


def required(kind: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=False) for name in names]


def nullable(kind: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, kind) for name in names]


def primary_key(name: str, kind: pa.DataType) -> pa.Field:
    """Lance does not enforce it, but makes two writers that add the same key conflict."""
    return pa.field(name, kind, nullable=False, metadata=PRIMARY_KEY_MARK)


def checksums(*names: str) -> list[pa.Field]:
    """Of other columns, see `indexer.integrity.row_checksums`; null in rows that are in no table yet."""
    return nullable(pa.uint64(), *names)


_OF_DOCUMENT = [
    primary_key("row", pa.string()),
    *required(pa.string(), "id", "collection", "document_id", "key", "revision"),
    *required(pa.int32(), "ordinal"),
]
_PLACE = [*required(STRINGS, "section"), *required(pa.int64(), "start", "end")]


def chunks_schema(dimension: int) -> pa.Schema:
    """`row` is `<chunk id>:<revision>`: a chunk's id survives edits of other parts of its document. `entities` are the
    spans that the tagger found in the embedded text; null where there is none for the encoder."""
    return pa.schema(
        [
            *_OF_DOCUMENT,
            *required(pa.string(), "passage_id"),
            *_PLACE,
            *required(pa.string(), "text"),
            *required(pa.list_(pa.float32(), dimension), "vector"),
            *required(pa.string(), "content_hash"),
            *checksums("checksum", "vector_checksum"),
            *nullable(pa.binary(), "entities"),
            *checksums("entities_checksum"),
        ]
    )


PASSAGES_SCHEMA = pa.schema(
    [
        *_OF_DOCUMENT,
        *_PLACE,
        *required(pa.string(), "title", "text"),
        *required(pa.list_(pa.field("item", pa.uint32(), nullable=False)), "terms"),
        *required(pa.string(), "content_hash"),
        *checksums("checksum", "terms_checksum"),
    ]
)

DOCUMENTS_SCHEMA = pa.schema(
    [
        primary_key("key", pa.string()),
        *required(pa.string(), "collection", "document_id"),
        *nullable(pa.int64(), "version"),
        *required(pa.int32(), "partition"),
        *required(pa.int64(), "offset", "timestamp_ms"),
        *nullable(pa.string(), "revision"),
        *required(pa.string(), "content_type", "title"),
        *nullable(pa.string(), "uri"),
        *required(pa.string(), "metadata"),
        *required(pa.int32(), "chunks", "passages"),
        *nullable(pa.int64(), "deleted_at_ms"),
        *required(pa.bool_(), "live"),
        *nullable(pa.list_(pa.int32()), "elsewhere"),
        *checksums("checksum"),
    ]
)

POSITIONS_SCHEMA = pa.schema(
    [primary_key("partition", pa.int32()), *required(pa.int64(), "offset", "mark", "timestamp_ms")]
)

RETRIEVALS_SCHEMA = pa.schema(
    [
        primary_key("retrieval_id", pa.string()),
        *required(pa.int64(), "at_ms"),
        *required(pa.string(), "query"),
        *nullable(pa.string(), "collection"),
        *required(pa.string(), "mode"),
        *required(STRINGS, "chunk_ids"),
        *required(pa.binary(), "body"),
        *nullable(pa.list_(pa.int32()), "ranks"),
        *nullable(pa.float64(), "seconds"),
        *nullable(pa.string(), "outcome"),
        *nullable(pa.bool_(), "cached"),
        *nullable(pa.int32(), "offset"),
        *nullable(pa.float64(), "best_confidence"),
        *nullable(pa.bool_(), "counted"),
        *checksums("checksum"),
    ]
)

FEEDBACK_SCHEMA = pa.schema(
    [
        primary_key("feedback_id", pa.string()),
        *required(pa.string(), "retrieval_id", "chunk_id"),
        *required(pa.float64(), "rating"),
        *required(pa.int64(), "at_ms", "log_offset"),
        *required(pa.binary(), "body"),
        *checksums("checksum"),
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
