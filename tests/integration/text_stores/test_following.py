"""A reader that follows the tables from state to state finds, at each, what one opened fresh finds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.generation_folders import Generation
from indexer.schema import DOCUMENTS, StoredPosition, document_rows
from indexer.write.lance_maintenance import MaintenanceParameters
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from query_api.index.text.text_segments import Scope
from query_api.index.text.text_snapshot import TextReader, TextSnapshot
from schemas.filters import parse_condition
from tests.support.fixtures.text_rows import DIMENSION, document, generation_in, story, tombstone, vector_of

COLLECTIONS = (None, "default", "other", "none")
BUSY = MaintenanceParameters(commits=3, vector_index_rows=1_000, busy_share=1e9, kept_version_seconds=0.001)
WORDS = ("River", "Sea", "Banks", "Hill")


def moved_to(made: IndexedRows, partition: int, offset: int) -> IndexedRows:
    return replace(made, row=replace(made.row, partition=partition, offset=offset))


def found(snapshot: TextSnapshot) -> dict[str, Any]:
    """Everything a search can tell, and which documents there are."""
    queries = [vector_of(text) for text in ("d0. River 0", "other")]
    live, _ = snapshot.list_documents(None, None, 1_000)
    return {
        "words": [
            [
                (hit.passage_id, hit.key, round(hit.score, 9))
                for hit in snapshot.keyword_search(query, 200, Scope(collection))
            ]
            for collection in COLLECTIONS
            for query in ("river floods", "sea banks hill river", "absent")
        ],
        "vectors": [
            [(hit.chunk_id, hit.passage_id, hit.key, round(hit.score, 5)) for hit in hits]
            for collection in COLLECTIONS
            for query in queries
            for hits in [snapshot.vector_search(query, 200, Scope(collection))]
        ],
        "filtered": [
            snapshot.fields.scope(collection, [parse_condition(each)])
            for collection in COLLECTIONS
            for each in ("title=d0|d1", "updated>=2023-11-14T22:13:20.003Z", "words=2.5", "version=7", "document!=d2")
            if live
        ],
        "leads": snapshot.leads([row.key for row in live]),
        "documents": [row.key for row in live],
        "revisions": snapshot.revisions([row.key for row in live]),
        "positions": snapshot.positions,
    }


def assert_like_fresh(generation: Generation, reader: TextReader) -> TextSnapshot:
    reader.refresh()
    snapshot = reader.snapshot()
    assert found(snapshot) == found(TextReader.open(generation).snapshot())
    return snapshot


@pytest.mark.parametrize("limit", [0, 3])
def test_beyond_the_limit_the_tables_index_finds_the_same(
    generation: Generation, writer: LanceWriter, limit: int
) -> None:
    reader = TextReader.open(generation, max_vectors=limit)
    for number in range(6):
        writer.replace([document(f"d{number}", f"River {number}", offset=number)])
        writer.store_positions({0: StoredPosition(number, 0)})
        snapshot = assert_like_fresh(generation, reader)
        assert (snapshot.index.vectors is None) == (number >= limit)
    writer.replace([tombstone(f"d{number}", offset=10 + number) for number in range(5)])
    assert_like_fresh(generation, reader)


@pytest.mark.parametrize("most_bytes", [0, 400, 10_000])
def test_texts_in_memory_are_those_of_the_tables(generation: Generation, writer: LanceWriter, most_bytes: int) -> None:
    """At every state of a story, whether they fit into memory, do so at first, or never did."""
    reader = TextReader.open(generation, max_text_bytes=most_bytes)
    offset = 0
    for batch in story():
        writer.replace(batch)
        offset = max(rows.row.offset for rows in batch)
        reader.refresh()
        held, told = reader.snapshot(), TextReader.open(generation, max_text_bytes=0).snapshot()
        assert not told.in_memory
        assert held.in_memory == (most_bytes == 10_000)
        ids = held.tables.base.content_rows().passages["id"].to_pylist()
        assert held.passages(ids) == told.passages(ids) != {}
        assert held.chunks_of_passages(ids) == told.chunks_of_passages(ids) != {}
        keys = [rows.row.key for rows in batch]
        stored = {row.key: row for row in document_rows(held.tables.base._tables[DOCUMENTS].to_arrow())}
        assert held.documents(keys) == {key: stored[key] for key in keys if key in stored}
        writer.store_positions({0: StoredPosition(offset, 0)})


def test_many_documents_changed_at_once_are_read_in_full(
    generation: Generation, writer: LanceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.read.lance_reader.MAX_LOOKUPS", 3)
    reader = TextReader.open(generation)
    for turn in range(3):
        writer.replace([document(f"d{number}", f"River {turn}. Sea {number}") for number in range(turn, 9)])
        assert_like_fresh(generation, reader)


def test_record_that_changes_only_time_and_version_is_followed(generation: Generation, writer: LanceWriter) -> None:
    reader = TextReader.open(generation)
    made = document("a", "River")
    for offset, version in ((3, 1), (4, 2), (5, 7)):
        row = replace(made.row, offset=offset, version=version, timestamp_ms=made.row.timestamp_ms + offset)
        writer.replace([replace(made, row=row)])
        snapshot = assert_like_fresh(generation, reader)
        scope = snapshot.fields.scope("default", [parse_condition(f"version={version}")])
        assert scope.documents == {made.row.key}
        writer.store_positions({0: StoredPosition(offset, 0)})


@pytest.mark.parametrize("listed", [0, 3, 2_000])
@pytest.mark.parametrize("resident", [0, 1_000])
def test_filtered_search_finds_all_wherever_vectors_are(
    generation: Generation, writer: LanceWriter, monkeypatch: pytest.MonkeyPatch, listed: int, resident: int
) -> None:
    """Also where the documents let through are the farthest of all, and too many to be listed in a condition."""
    monkeypatch.setattr("indexer.read.lance_reader.MAX_LISTED_DOCUMENTS", listed)
    writer.replace([document(f"d{number:03}", f"River {number}", offset=number) for number in range(120)])
    snapshot = TextReader.open(generation, max_vectors=resident).snapshot()
    query = vector_of("d000. River 0")
    order = [hit.key for hit in snapshot.vector_search(query, 1_000)]
    farthest = order[-5:]
    scope = snapshot.fields.scope(
        "default", [parse_condition("document=" + "|".join(key.document_id for key in farthest))]
    )
    assert [hit.key for hit in snapshot.vector_search(query, 3, scope)] == farthest[:3]
    assert [hit.key for hit in snapshot.vector_search(query, 50, scope)] == farthest
    assert {hit.key for hit in snapshot.keyword_search("river", 50, scope)} == set(farthest)
    nobody = snapshot.fields.scope("default", [parse_condition("title=nobody")])
    assert snapshot.vector_search(query, 5, nobody) == snapshot.keyword_search("river", 5, nobody) == []


class Stop(Exception):
    """The writer goes no further than this commit."""


class StoppingCommits:
    """Stands where the writer says that it commits; lets so many commits through."""

    def __init__(self, allowed: int) -> None:
        self._left = allowed

    @contextmanager
    def committing(self, _table: str) -> Iterator[None]:
        self._left -= 1
        if self._left < 0:
            raise Stop
        yield


@pytest.mark.parametrize("commits", range(6))
def test_documents_are_whole_between_the_steps_of_a_commit(
    generation: Generation, writer: LanceWriter, commits: int
) -> None:
    reader = TextReader.open(generation)
    first, second, third = story()
    writer.replace(first)
    writer.store_positions({0: StoredPosition(7, 7)})
    before = found(assert_like_fresh(generation, reader))
    kept, writer.maintainer = writer.maintainer, StoppingCommits(commits)
    try:
        writer.replace(second)
    except Stop:
        assert commits < 5
    writer.maintainer = kept
    between = assert_like_fresh(generation, reader)
    assert (found(between)["words"] == before["words"]) == (commits < 3)
    _assert_whole(between)
    writer.replace(second)
    _assert_whole(assert_like_fresh(generation, reader))
    writer.replace(third)
    assert_like_fresh(generation, reader)


def _assert_whole(snapshot: TextSnapshot) -> None:
    made = {each.row.revision: each.prepared for batch in story() for each in batch if each.prepared is not None}
    live, _ = snapshot.list_documents(None, None, 100)
    chunks = {chunk.id for row in live for chunk in made[row.revision].chunked.chunks}
    passages = {passage.id for row in live for passage in made[row.revision].chunked.passages}
    assert {hit.chunk_id for hit in snapshot.vector_search(vector_of("x"), 1_000)} == chunks
    assert {hit.passage_id for hit in snapshot.keyword_search("river runs banks text new words", 1_000)} <= passages
    assert snapshot.chunks(chunks).keys() == chunks
    assert snapshot.passages(passages).keys() == passages


NAMES = [("default", "d0"), ("default", "d1"), ("other", "d0"), ("other", "d2"), ("default", "d3")]


def batches() -> st.SearchStrategy[list[dict[tuple[str, str], tuple[str, ...]]]]:
    texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
    passages = st.lists(texts, max_size=3, unique=True).map(tuple)
    return st.lists(st.dictionaries(st.sampled_from(NAMES), passages, min_size=1, max_size=4), max_size=7)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(batches(), st.data())
def test_any_history_is_followed(history: list[dict[tuple[str, str], tuple[str, ...]]], data: st.DataObject) -> None:
    """Documents come, change, go, change partition; positions lag; records come again; tables are maintained."""
    with TemporaryDirectory() as folder:
        generation = generation_in(Path(folder))
        writer = LanceWriter.open(generation, DIMENSION, BUSY)
        reader = TextReader.open(generation)
        offsets = [0, 0, 0]
        reached: dict[int, StoredPosition] = {}
        for batch in history:
            rows = []
            for (collection, name), passages in batch.items():
                partition = data.draw(st.integers(0, 2))
                offsets[partition] += 1
                made = document(name, *passages, collection=collection) if passages else tombstone(name, collection)
                rows.append(moved_to(made, partition, offsets[partition]))
            writer.replace(rows)
            what = data.draw(st.sampled_from(["nothing", "positions", "again", "maintain", "refresh"]))
            if what == "again":
                writer.replace(rows)
            if what == "maintain":
                writer.maintain()
            if what == "refresh":
                assert_like_fresh(generation, reader)
            if what == "positions" or data.draw(st.booleans()):
                partition = data.draw(st.integers(0, 2))
                reached[partition] = StoredPosition(offsets[partition], 0)
                writer.store_positions({partition: reached[partition]})
        assert_like_fresh(generation, reader)
