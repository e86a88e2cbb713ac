"""Two generations compared, before one takes the other's place."""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow.compute as pc

from indexer.generations import Generation
from indexer.lance_connection import checkout_latest, connect, store_errors
from indexer.read.graph_snapshots import newest_intact_snapshot
from indexer.read.lance import stored_positions
from indexer.read.rows import rows_with
from indexer.schema import CHUNKS, DOCUMENTS, PASSAGES, POSITIONS, document_rows
from schemas.generations import GenerationComparison, StoreCounts

NAMED = 20


class _Document(NamedTuple):
    """Where the record stands that a document, or its tombstone, is from."""

    partition: int
    offset: int
    live: bool


class _Contents(NamedTuple):
    """`documents` holds tombstones too; `reached` is {partition: offset}."""

    counts: StoreCounts
    documents: Mapping[str, _Document]
    reached: Mapping[int, int]

    def has_read(self, document: _Document) -> bool:
        return document.offset <= self.reached.get(document.partition, -1)


def compare_generations(earlier: Generation, new: Generation) -> GenerationComparison:
    """By counts, and by which documents each shows. What stands in the log after the position that the other one has
    reached is not compared.

    Raises TransientStoreError when a store cannot be read.
    """
    before, after = _contents(earlier), _contents(new)
    missing = _only_in(before, after)
    unexpected = _only_in(after, before)
    return GenerationComparison(
        earlier=before.counts,
        new=after.counts,
        missing=tuple(missing[:NAMED]),
        missing_count=len(missing),
        unexpected=tuple(unexpected[:NAMED]),
        unexpected_count=len(unexpected),
    )


def _only_in(here: _Contents, there: _Contents) -> list[str]:
    """Documents that are live here, and by what both have read ought to be live there."""
    found = []
    for key, document in here.documents.items():
        if not document.live or not there.has_read(document):
            continue
        other = there.documents.get(key)
        if other is None or (not other.live and here.has_read(other)):
            found.append(key)
    return sorted(found)


def _contents(generation: Generation) -> _Contents:
    with store_errors(f"read the tables in {generation.lance_dir}"):
        connection = connect(generation.lance_dir)
        positions = stored_positions(connection.open_table(POSITIONS))
        documents = connection.open_table(DOCUMENTS)
        rows = documents.search().select(["key", "partition", "offset", "live", PASSAGES, CHUNKS]).to_arrow()
    known = dict(
        zip(
            rows["key"].to_pylist(),
            map(_Document, rows["partition"].to_pylist(), rows["offset"].to_pylist(), rows["live"].to_pylist()),
            strict=True,
        )
    )
    live = rows.filter(rows["live"])
    graph = newest_intact_snapshot(generation.snapshots_dir)
    counts = StoreCounts(
        documents=live.num_rows,
        passages=pc.sum(live[PASSAGES]).as_py() or 0,
        chunks=pc.sum(live[CHUNKS]).as_py() or 0,
        entities=graph.rows("entities") if graph else 0,
        statements=graph.rows("statements") if graph else 0,
    )
    return _Contents(counts, known, {partition: stored.offset for partition, stored in positions.items()})


class EarlierOutcomes:
    """What became of records in an earlier generation that is written to meanwhile."""

    def __init__(self, generation: Generation) -> None:
        with store_errors(f"open the tables in {generation.lance_dir}"):
            connection = connect(generation.lance_dir)
            self._positions = connection.open_table(POSITIONS)
            self._documents = connection.open_table(DOCUMENTS)

    def refused(self, partition: int, offset: int, key: bytes | None) -> bool:
        """Whether it has read the record and holds no document from it: it was refused there too, or superseded.

        Raises TransientStoreError.
        """
        checkout_latest(self._positions)
        reached = stored_positions(self._positions).get(partition)
        if reached is None or reached.offset < offset:
            return False
        checkout_latest(self._documents)
        name = (key or b"").decode("utf-8", "replace")
        rows = [row for table in rows_with(self._documents, "key", [name], None) for row in document_rows(table)]
        return not any((row.partition, row.offset) == (partition, offset) for row in rows)
