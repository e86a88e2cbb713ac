"""What the writer leaves in the tables: exactly the newest state of each document, however often a batch is applied."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from indexer.errors import IncompatibleGeneration
from indexer.generation_folders import Generation
from indexer.lance_connection import connect
from indexer.schema import StoredPosition
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from query_api.index.text.text_segments import Scope
from query_api.index.text.text_snapshot import TextReader
from schemas.ids import CANARY_COLLECTION, DocumentKey
from schemas.provenance import Retrieval, RetrievedHit
from tests.support.fakes.worker import InMemoryDocuments
from tests.support.fixtures.text_rows import DIMENSION, contents, document, expected_rows, stored_rows, story, tombstone


@pytest.fixture(params=["tables", "memory"])
def store(request: pytest.FixtureRequest, writer: LanceWriter) -> Any:
    """What a worker writes to, and its double in unit tests: both keep the same promises."""
    return writer if request.param == "tables" else InMemoryDocuments()


def assert_stored(generation: Generation, documents: list[IndexedRows]) -> None:
    assert stored_rows(generation) == {name: sorted(rows) for name, rows in expected_rows(documents).items()}


def test_an_update_replaces_a_document_exactly(generation: Generation, writer: LanceWriter) -> None:
    other = document("other", "It stays. As it is")
    writer.replace([document("a", "One. Two", "Three"), other])
    newer = document("a", "One. Two changed", "Four. Five. Six")
    writer.replace([newer])
    assert_stored(generation, [newer, other])


def test_a_chunk_that_survives_an_edit_keeps_its_id(generation: Generation, writer: LanceWriter) -> None:
    writer.replace([document("a", "One. Two")])
    newer = document("a", "One. Three")
    writer.replace([newer])
    kept = newer.prepared.chunked.chunks[0].id
    found = TextReader.open(generation).snapshot().chunks([kept])
    assert found[kept].text == "One"
    assert found[kept].revision == newer.row.revision


def test_a_delete_leaves_nothing_but_the_tombstone(generation: Generation, writer: LanceWriter) -> None:
    writer.replace([document("a", "One. Two"), document("b", "Three")])
    writer.replace([tombstone("a", offset=7), tombstone("never-there", offset=8)])
    assert_stored(generation, [document("b", "Three")])
    held = writer.stored_documents([DocumentKey("default", "a"), DocumentKey("default", "never-there")])
    assert {row.offset for row in held.values()} == {7, 8}
    assert not any(row.live for row in held.values())


def test_only_documents_equal_to_the_stored_ones_are_alike(generation: Generation, writer: LanceWriter) -> None:
    made = [document(name, "One. Two", "Three", offset=3) for name in "abcdefg"] + [tombstone("gone", offset=4)]
    writer.replace(made)
    keys = {key.document_id for key in writer.equal_to_stored([*made, tombstone("never-there", offset=5)])}
    assert keys == {*"abcdefg", "gone", "never-there"}
    tables = connect(generation.lance_dir)
    tables.open_table("chunks").delete("document_id = 'a' AND text = 'Two'")
    tables.open_table("passages").delete("document_id = 'b' AND text = 'Three'")
    tables.open_table("documents").delete("document_id = 'c'")
    tables.open_table("chunks").update("document_id = 'd' AND text = 'Two'", {"checksum": 7})
    twice = tables.open_table("chunks").search().where("document_id = 'f' AND text = 'One'").to_arrow()
    tables.open_table("chunks").add(twice)
    asked = [*made[:6], document("g", "One. Two", "Three", offset=2), document("gone", "One")]
    assert {key.document_id for key in writer.equal_to_stored(asked)} == {"e"}


def test_fields_of_compacted_records_do_not_make_rows_differ(store: Any) -> None:
    made = document("a", "One", offset=3)
    store.replace([replace(made, row=replace(made.row, version=5, other_partitions=(2,)))])
    assert store.equal_to_stored([made]) == {made.row.key}
    assert store.equal_to_stored([replace(made, row=replace(made.row, version=6))]) == set()


def test_partitions_that_a_tombstone_has_to_reach_are_remembered(generation: Generation, writer: LanceWriter) -> None:
    seen_twice = document("a", "One")
    writer.replace(
        [replace(seen_twice, row=replace(seen_twice.row, partition=2, other_partitions=(0, 3))), document("b", "Two")]
    )
    snapshot = TextReader.open(generation).snapshot()
    assert snapshot.partitions_of(DocumentKey("default", "a")) == {0, 2, 3}
    assert snapshot.partitions_of(DocumentKey("default", "b")) == {0}
    assert snapshot.partitions_of(DocumentKey("default", "unknown")) == set()
    assert snapshot.counts()["misplaced"] == 1


def test_canaries_are_not_among_the_deleted(generation: Generation, writer: LanceWriter) -> None:
    writer.replace([document("a", "One"), tombstone("b"), tombstone("0", CANARY_COLLECTION)])
    counts = TextReader.open(generation).snapshot().counts()
    assert (counts["documents"], counts["deleted"]) == (1, 1)


def test_batches_applied_twice_leave_the_last_state(generation: Generation, writer: LanceWriter) -> None:
    last = {document.row.key: document for batch in story() for document in batch}
    for batch in story():
        writer.replace(batch)
    assert_stored(generation, list(last.values()))
    once = contents(generation)
    for batch in story():
        writer.replace(batch)
        writer.replace(batch)
    assert contents(generation) == once


def test_an_unchanged_document_only_moves_its_row(generation: Generation, writer: LanceWriter) -> None:
    made = document("a", "One. Two")
    writer.replace([made])
    before = TextReader.open(generation).snapshot()
    writer.replace([IndexedRows(document("a", "One. Two", offset=99).row)])
    after = TextReader.open(generation).snapshot()
    assert_stored(generation, [made])
    assert after.documents([made.row.key])[made.row.key].offset == 99
    assert after.table_versions["chunks"] == before.table_versions["chunks"]
    assert after.table_versions["passages"] == before.table_versions["passages"]


def test_a_document_given_back_unchanged_loses_what_a_crash_left(
    generation: Generation, writer: LanceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.replace([document("a", "Old words")])
    newer = document("a", "New words")
    with monkeypatch.context() as patched:
        patched.setattr(LanceWriter, "_delete_stale", lambda *_: None)
        writer.replace([newer])
    writer.replace([IndexedRows(newer.row)])
    assert_stored(generation, [newer])


@pytest.mark.parametrize(
    "older", [document("a", "Second words"), tombstone("a"), IndexedRows(document("a", "First words").row)]
)
def test_delayed_writer_keeps_rows_it_did_not_read(
    generation: Generation, writer: LanceWriter, older: IndexedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.replace([document("a", "First words"), document("b", "First words")])
    other = LanceWriter.open(generation, DIMENSION)
    newer = [document("a", "Third words", "More"), document("b", "Third words")]
    upsert = LanceWriter._upsert

    def upsert_and_be_overtaken(delayed: LanceWriter, name: str, rows: pa.Table) -> None:
        upsert(delayed, name, rows)
        if delayed is writer:
            other.replace(newer)

    monkeypatch.setattr(LanceWriter, "_upsert", upsert_and_be_overtaken)
    writer.replace([older, document("b", "Second words")])
    other.close()
    assert_stored(generation, newer)


def test_a_document_without_any_chunk_is_there(generation: Generation, writer: LanceWriter) -> None:
    empty = IndexedRows(replace(document("empty", "x").row, chunks=0, passages=0))
    writer.replace([empty])
    assert contents(generation)["chunks"] == []
    assert [row["key"] for row in contents(generation)["documents"]] == ["default/empty"]


def test_two_events_of_one_document_in_a_batch_are_refused(writer: LanceWriter) -> None:
    with pytest.raises(ValueError, match="twice"):
        writer.replace([document("a", "One"), document("a", "Two")])


def test_names_that_look_like_filters_are_only_names(generation: Generation, writer: LanceWriter) -> None:
    names = ["t0' OR '1'='1", 'a"; DROP TABLE chunks; --', "back\\slash'", "%", "né 😀", "a/b/c"]
    documents = [
        document(name, f"Text {number}", collection=f"c' OR 'x'='x{number}") for number, name in enumerate(names)
    ]
    writer.replace(documents)
    writer.replace([tombstone(names[0], collection=documents[0].row.key.collection)])
    assert_stored(generation, documents[1:])
    snapshot = TextReader.open(generation).snapshot()
    assert snapshot.documents([DocumentKey("x", "t0' OR '1'='1")]) == {}
    assert snapshot.keyword_search("Text", 10, Scope("nowhere' OR '1'='1")) == []
    hits = snapshot.keyword_search("Text", 10, Scope(documents[1].row.key.collection))
    assert [hit.key for hit in hits] == [documents[1].row.key]


def test_positions_are_kept_by_partition(store: Any) -> None:
    assert store.positions() == {}
    store.store_positions({0: StoredPosition(5, 2), 3: StoredPosition(1, 0)})
    store.store_positions({0: StoredPosition(9, 4)})
    store.store_positions({})
    assert store.positions() == {0: StoredPosition(9, 4), 3: StoredPosition(1, 0)}


def test_vectors_are_known_by_the_hash_of_the_embedded_text(store: Any) -> None:
    made = document("a", "One. Two")
    store.replace([made, document("b", "Other")])
    known = store.known_vectors([made.hashes[1], "0" * 32])
    assert list(known) == [made.hashes[1]]
    np.testing.assert_array_equal(known[made.hashes[1]].vector, made.vectors[1])
    assert store.known_vectors([]) == {}


def test_a_retrieval_is_kept_once_and_as_it_came_first(generation: Generation, writer: LanceWriter) -> None:
    hit = RetrievedHit(rank=1, chunk_id="c", passage_id="p", document_id="d", collection="x", score=0.5)
    retrieval = Retrieval(
        retrieval_id="r1",
        query="what'?",
        collection=None,
        mode="hybrid",
        at_ms=1,
        snapshot={},
        parameters={"k": 3},
        hits=[hit],
    )
    writer.add_retrievals([("r1", retrieval)])
    writer.add_retrievals([("r1", retrieval), ("r2", retrieval)])
    snapshot = TextReader.open(generation).snapshot()
    assert snapshot.retrieval("r1") == retrieval
    assert snapshot.retrieval("r1' OR '1'='1") is None
    writer.add_retrievals([])


def test_writer_opened_with_another_dimension_is_refused(generation: Generation) -> None:
    made = document("a", "One. Two")
    LanceWriter.open(generation, DIMENSION).replace([made])
    again = LanceWriter.open(generation, DIMENSION)
    assert again.stored_documents([made.row.key]) == {made.row.key: made.row}
    with pytest.raises(IncompatibleGeneration, match="17 dimensions"):
        LanceWriter.open(generation, DIMENSION + 1)


def test_live_documents_are_found_with_their_records(store: Any) -> None:
    one, two = document("a", "One", offset=7), document("b", "Two", offset=8)
    store.replace([one, two])
    store.replace([IndexedRows(two.row.tombstone(9))])
    positions = {one.row.key: (one.row.partition, 7)}
    assert store.live_positions() == store.live_positions(one.row.key.collection) == positions
    assert store.live_positions("x' OR '1'='1") == {}
    assert store.live_keys(one.row.partition, 7) == [one.row.key]
    assert store.live_keys(one.row.partition, 6) == []
