"""Usage records: retrievals and feedback in their newest state, read in batches of a few columns."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
from lancedb import DBConnection
from lancedb.expr import col, lit

from indexer.lance_connection import read_errors, store_errors
from indexer.read.rows import rows_with
from indexer.schema import FEEDBACK, RETRIEVALS, decompress_body
from schemas.provenance import Feedback, Retrieval, decode_provenance, decode_retrieval

BATCH_ROWS = 4_096

TimePosition = tuple[int, str]  # (at_ms, retrieval_id), the sort key of retrievals


@dataclass(frozen=True, slots=True)
class ShownChunk:
    """A chunk among the hits of a batch of retrievals: `count` times, the sum of its ranks, and when it was last."""

    chunk_id: str
    count: int
    rank_sum: int
    last_ms: int


class LoggedSearch(NamedTuple):
    """`offset`: hits skipped by pagination; `best_confidence`: that of the surest hit, None where none has one."""

    query: str
    mode: str
    at_ms: int
    hits: int
    offset: int
    seconds: float
    outcome: str
    cached: bool
    best_confidence: float | None = None


class UsageTables:
    """Reads the `retrievals` and `feedback` tables, which are not part of a snapshot. `shown_chunks` and `searches` are
    of the retrievals that count as usage.

    Needs the memory of one batch, whatever the size of the tables. Thread-safe. All methods raise TransientStoreError.
    """

    def __init__(self, connection: DBConnection) -> None:
        self._connection = connection

    def newest(
        self,
        collection: str | None,
        since_ms: int | None,
        before: TimePosition | None,
        limit: int,
        *,
        only_counted: bool = False,
    ) -> list[Retrieval]:
        """The newest retrievals older than `before`, of one collection or (None) of all; newest first, ties by id."""
        newest: list[TimePosition] = []
        until_ms = before and before[0]
        for batch in self._retrievals(
            ["retrieval_id", "at_ms"], collection, since_ms, until_ms, only_counted=only_counted
        ):
            positions = zip(batch["at_ms"].to_pylist(), batch["retrieval_id"].to_pylist(), strict=True)
            newest = heapq.nlargest(limit, [*newest, *(each for each in positions if before is None or each < before)])
        with store_errors("read the retrievals"):
            table = self._connection.open_table(RETRIEVALS)
        rows = rows_with(table, "retrieval_id", [identifier for _, identifier in newest], ["retrieval_id", "body"])
        bodies = {row["retrieval_id"]: row["body"] for part in rows for row in part.to_pylist()}
        found = {identifier: decode_retrieval(decompress_body(body)) for identifier, body in bodies.items()}
        return [found[identifier] for _, identifier in newest if identifier in found]

    def shown_chunks(self, since_ms: int | None, chunk_id: str | None = None) -> Iterator[list[ShownChunk]]:
        """The chunks among the hits, batch by batch; with `chunk_id` that one only."""
        columns = ["chunk_ids", "ranks", "at_ms"]
        for batch in self._retrievals(columns, None, since_ms, None, chunk_id=chunk_id):
            yield _shown(batch, chunk_id)

    def searches(self, collection: str | None, since_ms: int | None) -> Iterator[list[LoggedSearch]]:
        """The searches in this collection, or all, batch by batch."""
        columns = ["query", "mode", "at_ms", "chunk_ids", "seconds", "outcome", "cached", "offset", "best_confidence"]
        for batch in self._retrievals(columns, collection, since_ms, None):
            counts = pa.compute.list_value_length(batch["chunk_ids"]).to_pylist()
            names = ("query", "mode", "at_ms", "offset", "seconds", "outcome", "cached", "best_confidence")
            rows = zip(*(batch[name].to_pylist() for name in names), counts, strict=True)
            yield [
                LoggedSearch(query, mode, at_ms, hits, offset or 0, seconds, outcome, cached, best)
                for query, mode, at_ms, offset, seconds, outcome, cached, best, hits in rows
            ]

    def feedback_on_retrieval(self, retrieval_id: str) -> list[Feedback]:
        """The feedback on its hits, by time."""
        return self._feedback("retrieval_id", [retrieval_id])

    def feedback_on_chunks(self, chunk_ids: Sequence[str]) -> list[Feedback]:
        """The feedback on these chunks, by time."""
        return self._feedback("chunk_id", chunk_ids)

    def _feedback(self, column: str, values: Iterable[str]) -> list[Feedback]:
        with store_errors("open the feedback"):
            table = self._connection.open_table(FEEDBACK)
        rows = rows_with(table, column, values, ["feedback_id", "body"])
        records = [decode_provenance(body) for part in rows for body in part["body"].to_pylist()]
        return sorted((each for each in records if isinstance(each, Feedback)), key=lambda each: each.at_ms)

    def _retrievals(
        self,
        columns: list[str],
        collection: str | None,
        since_ms: int | None,
        until_ms: int | None,
        *,
        chunk_id: str | None = None,
        only_counted: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The retrievals with `chunk_id` among their hits, if given; else those that match the other conditions."""
        conditions: list[Any] = []
        if since_ms is not None:
            conditions.append(col("at_ms") >= lit(since_ms))
        if until_ms is not None:
            conditions.append(col("at_ms") <= lit(until_ms))
        if collection is not None:
            conditions.append(col("collection") == lit(collection))
        with read_errors(RETRIEVALS):
            table = self._connection.open_table(RETRIEVALS)
            query = table.search()
            if chunk_id is not None:
                quoted = chunk_id.replace("'", "''")
                query = query.where(f"array_has(chunk_ids, '{quoted}')")
            elif conditions:
                query = query.where(reduce(and_, conditions))
            for batch in query.select([*columns, "counted"]).to_batches(batch_size=BATCH_ROWS):
                yield batch.filter(batch["counted"]) if only_counted else batch


def _shown(batch: pa.RecordBatch, chunk_id: str | None) -> list[ShownChunk]:
    chunk_ids = batch["chunk_ids"]
    parents = pa.compute.list_parent_indices(chunk_ids)
    flat = pa.table(
        {
            "chunk_id": pa.compute.list_flatten(chunk_ids),
            "rank": pa.compute.list_flatten(batch["ranks"]),
            "at_ms": batch["at_ms"].take(parents),
        }
    )
    if chunk_id is not None:
        flat = flat.filter(pa.compute.equal(flat["chunk_id"], chunk_id))
    grouped = flat.group_by("chunk_id").aggregate([("chunk_id", "count"), ("rank", "sum"), ("at_ms", "max")])
    names = ("chunk_id", "chunk_id_count", "rank_sum", "at_ms_max")
    return [ShownChunk(*row) for row in zip(*(grouped[name].to_pylist() for name in names), strict=True)]
