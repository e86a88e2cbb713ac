"""Records of the contributions topic: what a commit of the worker changes, and the mark that ends the commit.

A change is all that a document has in the tables and in the graph. It comes in parts, and nobody acts on it before the
mark: so a commit, and a document in parts, appear as a whole or not at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Protocol, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from indexer.schema import DOCUMENTS_SCHEMA, PASSAGES_SCHEMA, chunks_schema
from schemas.errors import MalformedEvent
from schemas.graph_delta import Contribution, decode_contribution
from schemas.ids import DocumentKey

CODEC = "zstd"
MAX_CHANGE_BYTES = 2**31 - 1
VECTOR = "vector"

Columns = dict[str, list[Any]]
Reached = Mapping[int, tuple[int, int]]
"""By partition of the documents topic: the offset of the last record, and its time in ms."""


class Part(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    """A slice of an encoded change. `change` is a digest of the whole, `size` its bytes before compression."""

    change: bytes
    number: int
    of: int
    size: Annotated[int, msgspec.Meta(ge=0, le=MAX_CHANGE_BYTES)]
    data: bytes


class Mark(msgspec.Struct, frozen=True, array_like=True, tag="mark"):
    """The end of a commit of all records up to these."""

    reached: dict[int, tuple[int, int]]


class Void(msgspec.Struct, frozen=True, array_like=True, tag="void"):
    """The store refused what was sent of the document before: it stays as the tables have it, and leaves the graph."""


class EncodedChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tables by column; `vectors` are little-endian float32, one after the other."""

    row: Columns | None = None
    passages: Columns | None = None
    chunks: Columns | None = None
    vectors: bytes = b""
    contribution: bytes | None = None
    withdrawn: bool = False


@dataclass(frozen=True)
class DocumentChange:
    """What a document has now: its row in `documents`; the rows of its revision in the other tables; and, where it is
    `in_graph`, its contribution, None for one that leaves the graph. A table that is None has what it had.

    Tables have all columns; checksums are null.
    """

    key: DocumentKey
    row: pa.Table | None = None
    passages: pa.Table | None = None
    chunks: pa.Table | None = None
    in_graph: bool = False
    contribution: Contribution | None = None


class LogRecord(Protocol):
    """A record of the contributions topic."""

    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


Record = TypeVar("Record", bound=LogRecord)


@dataclass(frozen=True)
class Commit(Generic[Record]):
    """The last change of each document in a commit of all records up to `reached`; `void` are documents that the store
    refused. `offset` is that of the mark, `records` have the last record of each document."""

    offset: int
    reached: Reached
    changes: Mapping[DocumentKey, DocumentChange]
    void: frozenset[DocumentKey]
    records: Mapping[DocumentKey, Record]

    @property
    def in_graph(self) -> list[tuple[DocumentKey, Contribution | None]]:
        """What changes in the graph."""
        changed = [(key, each.contribution) for key, each in self.changes.items() if each.in_graph]
        return [*changed, *((key, None) for key in self.void)]


def encode_mark(reached: Reached) -> bytes:
    return msgspec.msgpack.encode(Mark(dict(reached)))


def decode_change(key: DocumentKey, body: bytes) -> DocumentChange:
    """Raises MalformedEvent for what is not an EncodedChange of this document."""
    try:
        encoded = msgspec.msgpack.decode(body, type=EncodedChange)
        contribution = None if encoded.contribution is None else decode_contribution(encoded.contribution)
        row = None if encoded.row is None else _table(encoded.row, DOCUMENTS_SCHEMA, {})
        passages = chunks = None
        if row is not None and encoded.passages is not None and encoded.chunks is not None:
            revision = row["revision"][0].as_py()
            passages = _contents(encoded.passages, PASSAGES_SCHEMA, key, revision)
            chunks = _chunks(encoded.chunks, encoded.vectors, key, revision)
    except (ValueError, TypeError, LookupError, pa.ArrowException) as error:
        raise MalformedEvent("bad_contribution", f"The record is not a change of a document: {error}.") from error
    named = [] if contribution is None else [(contribution.collection, contribution.document_id)]
    named += [] if row is None else zip(row["collection"].to_pylist(), row["document_id"].to_pylist(), strict=True)
    if any(name != key for name in named):
        raise MalformedEvent("key_mismatch", "The change is not that of the document in the record's key.")
    in_graph = encoded.withdrawn or contribution is not None
    return DocumentChange(key, row, passages, chunks, in_graph, contribution)


def _table(columns: Columns, schema: pa.Schema, same: Mapping[str, Any]) -> pa.Table:
    """`same` are the values that all rows have; columns that are nowhere are null."""
    rows = len(next(iter(columns.values()), []))
    values = [columns.get(field.name) or [same.get(field.name)] * rows for field in schema]
    return pa.table([pa.array(each, field.type) for each, field in zip(values, schema, strict=True)], schema=schema)


def _contents(columns: Columns, schema: pa.Schema, key: DocumentKey, revision: str) -> pa.Table:
    names = [f"{identifier}:{revision}" for identifier in columns["id"]]
    same = {"key": str(key), "collection": key.collection, "document_id": key.document_id, "revision": revision}
    return _table(columns | {"row": names}, schema, same)


def _chunks(columns: Columns, vectors: bytes, key: DocumentKey, revision: str) -> pa.Table:
    flat = np.frombuffer(vectors, "<f4")
    rows = len(columns["id"])
    dimension = len(flat) // rows if rows else 1
    schema = chunks_schema(dimension)
    place = schema.get_field_index(VECTOR)
    field = schema.field(place)
    table = _contents(columns, schema.remove(place), key, revision)
    return table.add_column(place, field, pa.FixedSizeListArray.from_arrays(pa.array(flat), type=field.type))


class CommitReader(Generic[Record]):
    """Puts records of the topic together, in their order. What a mark does not follow yet is held back.

    `on_broken` is called with each record other than part, mark or void, and with the last part of a change that is not
    whole, or not of the document in its key; the commit is given without it.
    """

    def __init__(self, on_broken: Callable[[Record, MalformedEvent], None]) -> None:
        self._on_broken = on_broken
        self._parts: dict[bytes, dict[int, Part]] = {}
        self._last: dict[bytes, Record] = {}  # of each change that is not whole
        self._changes: dict[DocumentKey, DocumentChange] = {}
        self._void: set[DocumentKey] = set()
        self._records: dict[DocumentKey, Record] = {}

    def add(self, record: Record) -> Commit[Record] | None:
        """The commit that the record ends."""
        try:
            decoded = _decoder.decode(record.value or b"")
            if isinstance(decoded, Mark):
                return self._commit(record.offset, decoded)
            key = DocumentKey.parse((record.key or b"").decode("utf-8", "surrogatepass"))
            self._records[key] = record
            if isinstance(decoded, Void):
                self._changes.pop(key, None)
                self._void.add(key)
            else:
                self._add_part(record, key, decoded)
        except MalformedEvent as error:
            self._on_broken(record, error)
        except (ValueError, LookupError, ArithmeticError, OSError) as error:
            self._on_broken(record, MalformedEvent("bad_contribution", f"The record is not a contribution: {error}."))
        return None

    def _add_part(self, record: Record, key: DocumentKey, part: Part) -> None:
        """Parts may come twice, and in another order."""
        parts = self._parts.setdefault(part.change, {})
        parts[part.number] = part
        self._last[part.change] = record
        if len(parts) < part.of:
            return
        del self._parts[part.change], self._last[part.change]
        data = b"".join(parts[number].data for number in range(part.of))
        body = pa.decompress(data, decompressed_size=part.size, codec=CODEC, asbytes=True)
        self._changes[key] = decode_change(key, body)
        self._void.discard(key)

    def _commit(self, offset: int, mark: Mark) -> Commit[Record]:
        for record in self._last.values():
            self._on_broken(record, MalformedEvent("bad_contribution", "Parts of the document's change are missing."))
        made = Commit(offset, mark.reached, self._changes, frozenset(self._void), self._records)
        self._parts, self._last, self._changes, self._void, self._records = {}, {}, {}, set(), {}
        return made


_decoder = msgspec.msgpack.Decoder(Part | Mark | Void)
