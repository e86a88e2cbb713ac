"""Rows by the values of an indexed column."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
from lancedb.expr import col, lit
from lancedb.table import Table
from numpy.typing import NDArray

from indexer.read.rows import ChunkSpan
from indexer.tables import store_errors

IN_LIST = 500  # values of one `IN (…)`
SPANS = 50  # of one condition


def rows_with(table: Table, column: str, values: Iterable[str], columns: list[str] | None) -> list[pa.Table]:
    """The rows whose `column` is one of `values`, in several tables; all columns for None. Nothing for no values."""
    unique = list(dict.fromkeys(values))
    found = []
    with store_errors(f"look up {table.name}"):
        for start in range(0, len(unique), IN_LIST):
            query = table.search().where(col(column).isin(unique[start : start + IN_LIST]))
            found.append((query if columns is None else query.select(columns)).to_arrow())
    return found


def rows_in_spans(table: Table, spans: Iterable[ChunkSpan], columns: list[str]) -> list[pa.Table]:
    """The rows of these spans of chunks, in several tables; spans may overlap. Nothing for no spans."""
    unique = list(dict.fromkeys(spans))
    found = []
    with store_errors(f"look up {table.name}"):
        for start in range(0, len(unique), SPANS):
            conditions = [
                (col("key") == lit(str(span.key)))
                & (col("ordinal") >= lit(span.first))
                & (col("ordinal") <= lit(span.last))
                for span in unique[start : start + SPANS]
            ]
            found.append(table.search().where(reduce(or_, conditions)).select(columns).to_arrow())
    return found


def vector_matrix(table: pa.Table) -> NDArray[np.float32]:
    """The `vector` column as (rows, dimension) float32."""
    column = table["vector"].combine_chunks()
    matrix: NDArray[np.float32] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
    return matrix
