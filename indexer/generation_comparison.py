"""Two generations compared, before one takes the other's place."""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow.compute as pc

from indexer.generation_folders import Generation
from indexer.graph.snapshots import newest_intact_snapshot
from indexer.lance_connection import checkout_latest, connect, open_table, store_errors
from indexer.read.lance_reader import LanceReader, LanceSnapshot, stored_positions
from indexer.read.rows import rows_with, vector_matrix
from indexer.schema import CHUNKS, DOCUMENTS, PASSAGES, POSITIONS, document_rows
from schemas.generations import GenerationComparison, QuestionComparison, StoreCounts
from schemas.ids import DocumentKey

NAMED = 20
SEED = 17
QUESTIONS = 50
TOP = 10
FOUND_CHUNKS = 100  # of which several may be of one document
LEAST = 0.5
LEAST_NAMED = 5


class _Document(NamedTuple):
    """The position of the record that a document, or its tombstone, is from."""

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
    """By counts, and by which documents each shows. What is in the log after the position that the other one has
    reached is not compared.

    Raises TransientStoreError when a store cannot be read.
    """
    before, after = _contents(earlier), _contents(new)
    shared = [key for key, document in before.documents.items() if document.live and _is_live(after, key)]
    missing = _only_in(before, after)
    unexpected = _only_in(after, before)
    return GenerationComparison(
        earlier=before.counts,
        new=after.counts,
        missing=tuple(missing[:NAMED]),
        missing_count=len(missing),
        unexpected=tuple(unexpected[:NAMED]),
        unexpected_count=len(unexpected),
        questions=compare_questions(earlier, new, sorted(shared)),
    )


def compare_questions(earlier: Generation, new: Generation, shared: Sequence[str]) -> QuestionComparison | None:
    """By the documents that are nearest to the same sample of the `shared` ones. Nothing is encoded: a document's
    question is its first chunk, with the vector that each generation has of it."""
    sample = [DocumentKey.parse(key) for key in random.Random(SEED).sample(shared, min(QUESTIONS, len(shared)))]
    found = [_nearest_documents(LanceReader(connect(each.lance_dir)).snapshot(), sample) for each in (earlier, new)]
    overlaps = {}
    for key in sample:
        before, after = (each.get(key, set()) for each in found)
        if before or after:
            overlaps[str(key)] = len(before & after) / max(len(before), len(after))
    if not overlaps:
        return None
    least = sorted((overlap, key) for key, overlap in overlaps.items() if overlap < LEAST)
    return QuestionComparison(
        questions=len(overlaps),
        overlap=round(sum(overlaps.values()) / len(overlaps), 3),
        least=tuple(key for _, key in least[:LEAST_NAMED]),
    )


def _nearest_documents(snapshot: LanceSnapshot, sample: Sequence[DocumentKey]) -> dict[DocumentKey, set[DocumentKey]]:
    """For each, the nearest other documents of its collection by its first chunk, at most ten."""
    rows = [row for row in snapshot.documents(sample) if row.revision is not None and row.chunks]
    revisions = {str(row.key): row.revision or "" for row in rows}
    counts = {str(row.key): row.chunks for row in rows}
    nearest: dict[DocumentKey, set[DocumentKey]] = {}
    for table in snapshot.rows_of_documents(CHUNKS, ["key", "id", "revision", "ordinal", "vector"], revisions, counts):
        for name, ordinal, vector in zip(
            table["key"].to_pylist(), table["ordinal"].to_pylist(), vector_matrix(table), strict=True
        ):
            if ordinal == 0:
                key = DocumentKey.parse(name)
                chunks = [each.chunk for each in snapshot.nearest(vector, FOUND_CHUNKS, key.collection, None)]
                chunks.sort(key=lambda chunk: -chunk.score)
                others = dict.fromkeys(chunk.key for chunk in chunks if chunk.key != key)
                nearest[key] = set(list(others)[:TOP])
    return nearest


def _is_live(contents: _Contents, key: str) -> bool:
    document = contents.documents.get(key)
    return document is not None and document.live


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
        positions = stored_positions(open_table(connection, POSITIONS))
        documents = open_table(connection, DOCUMENTS)
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
        """Whether it has read the record, and holds no document from it or from a later record: it was refused there
        too. A later one may have replaced it before it was looked at.

        Raises TransientStoreError.
        """
        checkout_latest(self._positions)
        reached = stored_positions(self._positions).get(partition)
        if reached is None or reached.offset < offset:
            return False
        checkout_latest(self._documents)
        name = (key or b"").decode("utf-8", "replace")
        rows = [row for table in rows_with(self._documents, "key", [name], None) for row in document_rows(table)]
        return not any(row.partition == partition and row.offset >= offset for row in rows)
