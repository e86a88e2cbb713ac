"""Changes of documents encoded for the contributions topic."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from indexer.changes import CODEC, VECTOR, Columns, EncodedChange, Part, Void
from indexer.integrity.row_checksums import CHECKED_COLUMNS
from indexer.read.rows import vector_matrix
from indexer.schema import CHUNKS, DOCUMENTS, PASSAGES, documents_table
from indexer.write.lance_rows import IndexedRows, chunks_table, passages_table
from schemas.ids import DocumentKey

PART_BYTES = 512 * 1024
_CHECKSUMS = frozenset(name for table in (DOCUMENTS, PASSAGES, CHUNKS) for name in CHECKED_COLUMNS[table])
_OF_DOCUMENT = frozenset({"row", "key", "collection", "document_id", "revision"})  # follow from the document's row

Records = list[tuple[bytes, bytes]]
"""Keys and values."""


def encode_change(key: DocumentKey, rows: IndexedRows | None, contribution: bytes | None, *, in_graph: bool) -> Records:
    """What a document has now, a record for each part. Raises ValueError for rows that do not fit the tables."""
    encoded = EncodedChange(contribution=contribution, withdrawn=in_graph and contribution is None)
    if rows is not None:
        encoded = msgspec.structs.replace(encoded, row=_columns(documents_table([rows.row]), frozenset()))
    if rows is not None and rows.prepared is not None:
        dimension = rows.vectors.shape[1] if rows.vectors is not None and rows.prepared.chunked.chunks else 1
        chunks = chunks_table([rows], dimension)
        encoded = msgspec.structs.replace(
            encoded,
            passages=_columns(passages_table([rows]), _OF_DOCUMENT),
            chunks=_columns(chunks, _OF_DOCUMENT | {VECTOR}),
            vectors=vector_matrix(chunks).astype("<f4", copy=False).tobytes(),
        )
    body = msgspec.msgpack.encode(encoded)
    data = pa.compress(body, codec=CODEC, asbytes=True)
    slices = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    change = hashlib.sha256(data).digest()[:16]
    parts = [Part(change, number, len(slices), len(body), part) for number, part in enumerate(slices)]
    name = key.encoded()
    return [(name, msgspec.msgpack.encode(part)) for part in parts]


def encode_changes(rows: Sequence[IndexedRows], contributions: Mapping[DocumentKey, bytes | None]) -> Records:
    """What documents have now, in rows and in the graph. Raises ValueError for rows that do not fit the tables."""
    rows_of = {each.row.key: each for each in rows}
    return [
        record
        for key in dict.fromkeys([*rows_of, *contributions])
        for record in encode_change(key, rows_of.get(key), contributions.get(key), in_graph=key in contributions)
    ]


def encode_void() -> bytes:
    """The value that takes back what was sent of the document in the record's key."""
    return msgspec.msgpack.encode(Void())


def _columns(table: pa.Table, without: frozenset[str]) -> Columns:
    return {name: table[name].to_pylist() for name in table.column_names if name not in without | _CHECKSUMS}
