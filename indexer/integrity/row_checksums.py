"""Checksums of rows: written with each row, and checked whenever a row is read to be shown.

They also reveal bytes that changed before the file's checksum was recorded, or before maintenance copied the row into
another file. Rows that are in no table yet have none.
"""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from indexer.errors import DamagedStore
from indexer.lance_connection import read_errors
from indexer.schema import CHUNKS, DOCUMENTS, FEEDBACK, PASSAGES, RETRIEVALS

_PASSAGE = ("id", "collection", "document_id", "revision", "ordinal")
_CHUNK = (*_PASSAGE, "passage_id", "start", "end")

CHECKED_COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    CHUNKS: {
        "checksum": (*_CHUNK, "section", "text"),
        "vector_checksum": (*_CHUNK, "content_hash", "vector"),
        "entities_checksum": ("id", "content_hash", "entities"),
    },
    PASSAGES: {
        "checksum": (*_PASSAGE, "section", "start", "end", "title", "text"),
        "terms_checksum": (*_PASSAGE, "terms"),
    },
    DOCUMENTS: {
        "checksum": (
            *("collection", "document_id", "version", "partition", "offset", "timestamp_ms", "revision"),
            *("content_type", "title", "uri", "metadata", "chunks", "passages", "deleted_at_ms", "live"),
        )
    },
    RETRIEVALS: {"checksum": ("retrieval_id", "body")},
    FEEDBACK: {"checksum": ("feedback_id", "body")},
}
"""{table: {checksum column: the columns that it covers}}"""


def with_checksums(table: str, rows: pa.Table) -> pa.Table:
    """The rows with their checksum columns filled."""
    for name, columns in CHECKED_COLUMNS[table].items():
        position = rows.schema.get_field_index(name)
        checksums = pa.array(_checksums(rows, columns), type=pa.uint64())
        rows = rows.set_column(position, rows.schema.field(position), checksums)
    return rows


def checkable(table: str, columns: Sequence[str]) -> list[str]:
    """`columns` with the table's checksum columns that cover them."""
    checksums = [name for name, checked in CHECKED_COLUMNS.get(table, {}).items() if set(checked) <= {*columns}]
    return [*columns, *(name for name in checksums if name not in columns)]


def require_intact(table: str, rows: pa.Table) -> None:
    """Raises DamagedStore for a row that does not match a checksum whose columns were all read."""
    for name, columns in CHECKED_COLUMNS.get(table, {}).items():
        if name not in rows.column_names or not set(columns) <= {*rows.column_names}:
            continue
        with read_errors(table):
            made = _checksums(rows, columns)
        for row, (stored, again) in enumerate(zip(rows[name].to_pylist(), made, strict=True)):
            if stored is not None and stored != again:
                raise DamagedStore.of_row(table, str(rows[columns[0]][row].as_py()), name)


def _checksums(rows: pa.Table, columns: Sequence[str]) -> list[int]:
    cells = zip(*(_cells(rows[name]) for name in columns), strict=True)
    encode, blake2b = msgspec.msgpack.Encoder().encode, hashlib.blake2b
    return [int.from_bytes(blake2b(encode(row), digest_size=8).digest(), "big") for row in cells]


def _cells(column: pa.ChunkedArray) -> list[Any]:
    """The column's values; lists of numbers as their bytes, which is faster."""
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)) or not pa.types.is_primitive(kind.value_type):
        values: list[Any] = column.to_pylist()
        return values
    whole = column.combine_chunks()
    numbers = whole.flatten().to_numpy(zero_copy_only=False)
    ends = np.cumsum(whole.value_lengths().to_numpy(zero_copy_only=False))
    data = np.ascontiguousarray(numbers).tobytes()
    width = numbers.dtype.itemsize
    bounds = (np.concatenate([[0], ends]) * width).astype(np.int64).tolist()
    return [data[start:end] for start, end in pairwise(bounds)]
