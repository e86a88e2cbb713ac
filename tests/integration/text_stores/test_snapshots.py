"""Readers beside a writer: each snapshot is whole, stays as it is, and is found again when the writer has gone on."""

import random
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from indexer.errors import TransientStoreError
from indexer.generation_folders import Generation
from indexer.schema import StoredPosition
from indexer.write.lance_maintenance import MaintenanceParameters
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from query_api.index.text.text_snapshot import TextReader, TextSnapshot
from schemas.ids import DocumentKey
from tests.support.fixtures.text_rows import DIMENSION, document, expected_rows, stored_rows, tombstone, vector_of

BUSY = MaintenanceParameters(commits=6, unindexed_rows=60, vector_index_rows=200, busy_share=1.0)


def test_there_is_nothing_to_open_before_the_writer_was_there(generation: Generation) -> None:
    with pytest.raises(FileNotFoundError, match="start the worker"):
        TextReader.open(generation)
    generation.lance_dir.mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="start the worker"):
        TextReader.open(generation)


def test_a_snapshot_stays_as_it_is_and_refresh_finds_what_came(generation: Generation, writer: LanceWriter) -> None:
    reader = TextReader.open(generation)
    before = reader.snapshot()
    assert not reader.refresh()
    assert reader.snapshot() is before
    writer.replace([document("a", "River")])
    writer.store_positions({1: StoredPosition(4, 2)})
    assert before.keyword_search("river", 5) == []
    assert reader.snapshot() is before
    assert reader.refresh()
    after = reader.snapshot()
    assert len(after.keyword_search("river", 5)) == 1
    assert after.positions == {1: StoredPosition(4, 2)}
    assert after.opened_at >= before.opened_at
    assert before.positions == {}
    assert before.vector_search(vector_of("a. River"), 5) == []
    assert all(after.table_versions[name] > version for name, version in before.table_versions.items())


def test_a_snapshot_outlives_updates_deletes_and_maintenance(generation: Generation) -> None:
    writer = LanceWriter.open(generation, DIMENSION, BUSY)
    writer.replace([document(f"d{number}", f"River {number}. Old") for number in range(150)])
    snapshot = TextReader.open(generation).snapshot()
    query = vector_of("d3. Old")
    seen = snapshot.vector_search(query, 400), snapshot.keyword_search("river old", 400)
    optimised: Counter[str] = Counter()
    for turn in range(12):
        writer.replace([document(f"d{number}", f"Sea {turn} {number}. New") for number in range(turn, 150, 7)])
        writer.replace([tombstone(f"d{149 - turn}")])
        report = writer.maintain()
        optimised.update(report.optimised + report.indexed)
    assert optimised["chunks"] >= 2
    assert optimised["passages"] >= 1
    assert (snapshot.vector_search(query, 400), snapshot.keyword_search("river old", 400)) == seen
    assert len(snapshot.vectors(hit.chunk_id for hit in seen[0])) == 300


def test_removed_generation_is_a_transient_error(generation: Generation, writer: LanceWriter) -> None:
    reader = TextReader.open(generation)
    generation.lance_dir.rename(generation.root / "removed")
    with pytest.raises(TransientStoreError, match="removed"):
        reader.refresh()
    assert isinstance(reader.snapshot(), TextSnapshot)
    with pytest.raises(TransientStoreError):
        writer.replace([document("a", "River")])


def test_no_reader_ever_sees_a_document_without_all_of_its_rows(generation: Generation) -> None:
    writer = LanceWriter.open(generation, DIMENSION, BUSY)
    reader = TextReader.open(generation)
    done = threading.Event()
    faults: list[str] = []
    looks: Counter[str] = Counter()

    def watch(look: Callable[[TextSnapshot], list[str]]) -> None:
        while not done.is_set():
            reader.refresh()
            faults.extend(look(reader.snapshot()))
            looks[look.__name__] += 1

    def maintain() -> None:
        while not done.is_set():
            writer.maintain()
            looks["maintain"] += 1

    watchers = [threading.Thread(target=watch, args=(look,)) for look in (count_rows, search_and_look_up)]
    watchers.append(threading.Thread(target=maintain))
    for thread in watchers:
        thread.start()
    try:
        final = write_at_random(writer, batches=60)
    finally:
        done.set()
        for thread in watchers:
            thread.join()
    assert faults == []
    assert min(looks["count_rows"], looks["search_and_look_up"], looks["maintain"]) >= 3
    assert stored_rows(generation) == {name: sorted(rows) for name, rows in expected_rows(final).items()}


def write_at_random(writer: LanceWriter, batches: int) -> list[IndexedRows]:
    """Write documents again and again, some deletes among them; gives the last state of each."""
    chance = random.Random(7)
    final: dict[DocumentKey, IndexedRows] = {}
    offset = 0
    for _ in range(batches):
        batch: dict[DocumentKey, IndexedRows] = {}
        for _ in range(chance.choice([1, 2, 20])):
            offset += 1
            name = f"d{chance.randrange(60)}"
            passages = [f"River {chance.random()}. Sea" for _ in range(chance.randrange(1, 4))]
            gone = chance.random() < 0.15
            made = tombstone(name, offset=offset) if gone else document(name, *passages, offset=offset)
            batch[made.row.key] = made
        writer.replace(list(batch.values()))
        writer.store_positions({0: StoredPosition(offset, offset)})
        final |= batch
    return list(final.values())


def count_rows(snapshot: TextSnapshot) -> list[str]:
    """Every live document has as many rows of its revision as it says, and none is older than the positions."""
    rows = snapshot.tables.base.content_rows()
    held = {
        name: Counter(zip(table["key"].to_pylist(), table["revision"].to_pylist(), strict=True))
        for name, table in (("chunks", rows.chunks), ("passages", rows.passages))
    }
    return [
        f"{row['key']} has {held[name][row['key'], row['revision']]} of {row[name]} {name}"
        for row in rows.documents.to_pylist()
        for name in held
        if held[name][row["key"], row["revision"]] != row[name]
    ]


def search_and_look_up(snapshot: TextSnapshot) -> list[str]:
    """What a search finds, the look-ups of the same snapshot find as well."""
    found = snapshot.vector_search(vector_of("d1. Sea"), 20)
    words = snapshot.keyword_search("river", 20)
    passages = snapshot.passages([hit.passage_id for hit in found] + [hit.passage_id for hit in words])
    chunks = snapshot.chunks(hit.chunk_id for hit in found)
    missing = [f"chunk {hit.chunk_id}" for hit in found if hit.chunk_id not in chunks]
    missing += [f"passage {hit.passage_id}" for hit in [*found, *words] if hit.passage_id not in passages]
    live, _ = snapshot.list_documents(None, None, 1_000)
    if len(found) < min(20, sum(row.chunks for row in live)):
        missing.append(f"{len(found)} hits of {sum(row.chunks for row in live)} chunks")
    return missing
