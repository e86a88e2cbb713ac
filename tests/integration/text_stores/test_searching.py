"""What readers find: by vector, by words, by id; and that no text of a person is ever taken for syntax."""

import numpy as np
import pytest

from indexer.generation_folders import Generation
from indexer.lance_connection import connect
from indexer.read.rows import ChunkSpan, DocumentLookup
from indexer.schema import DOCUMENTS
from indexer.write.lance_maintenance import MaintenanceParameters
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from query_api.index.text.text_segments import Scope
from query_api.index.text.text_snapshot import TextReader, TextSnapshot
from schemas.cursors import MalformedCursor
from schemas.ids import DocumentKey
from tests.support.fixtures.text_rows import DIMENSION, document, tombstone, vector_of


def snapshot_with(generation: Generation, writer: LanceWriter, *documents: IndexedRows) -> TextSnapshot:
    writer.replace(documents)
    return TextReader.open(generation).snapshot()


def test_empty_tables_answer_everything_with_nothing(generation: Generation, writer: LanceWriter) -> None:
    snapshot = snapshot_with(generation, writer)
    assert snapshot.vector_search(vector_of("x"), 5) == []
    assert snapshot.keyword_search("river", 5) == []
    assert snapshot.list_documents(None, None, 5) == ([], None)
    assert snapshot.passages(["x"]) == snapshot.chunks([]) == snapshot.vectors(["x"]) == {}
    assert snapshot.counts() == {"documents": 0, "deleted": 0, "passages": 0, "chunks": 0, "misplaced": 0}
    assert snapshot.positions == {}
    assert snapshot.retrieval("x") is None


def test_vector_search_ranks_by_cosine(generation: Generation, writer: LanceWriter) -> None:
    documents = [document(f"d{number}", f"Text {number}. More {number}") for number in range(30)]
    snapshot = snapshot_with(generation, writer, *documents)
    query = vector_of("d7. More 7")
    vectors = np.concatenate([made.vectors for made in documents])
    hits = snapshot.vector_search(query, 10)
    assert [hit.score for hit in hits] == pytest.approx(sorted(vectors @ query, reverse=True)[:10], abs=1e-5)
    assert hits[0].score == pytest.approx(1.0, abs=1e-6)
    assert hits[0].key == DocumentKey("default", "d7")
    assert hits[0].chunk_id == documents[7].prepared.chunked.chunks[1].id
    assert hits[0].passage_id == documents[7].prepared.chunked.passages[0].id


def test_search_keeps_to_a_collection(generation: Generation, writer: LanceWriter) -> None:
    snapshot = snapshot_with(
        generation, writer, document("a", "River", collection="wet"), document("a", "River", collection="dry")
    )
    for hits in (
        snapshot.vector_search(vector_of("a. River"), 5, Scope("dry")),
        snapshot.keyword_search("river", 5, Scope("dry")),
    ):
        assert [hit.key.collection for hit in hits] == ["dry"]


def test_keyword_search_reads_titles_headings_and_text(generation: Generation, writer: LanceWriter) -> None:
    snapshot = snapshot_with(
        generation,
        writer,
        document("text", "Three boats were sailing"),
        document("title", "Nothing here", title="A Sailor's café"),
        document("neither", "Mountains"),
    )
    assert {hit.key.document_id for hit in snapshot.keyword_search("sail", 5)} == {"text"}
    assert {hit.key.document_id for hit in snapshot.keyword_search("CAFE sails", 5)} == {"text", "title"}
    assert {hit.key.document_id for hit in snapshot.keyword_search("detail", 5)} == {"text", "title", "neither"}
    assert all(hit.score > 0 for hit in snapshot.keyword_search("sail", 5))


@pytest.mark.parametrize(
    "query",
    ["", "   ", "the of and", "\x00", "😀", "' OR '1'='1", "search_text:*", '+-&&||!(){}[]^"~*?:\\/', "a" * 10_000],
)
def test_query_of_signs_and_stop_words_finds_nothing(generation: Generation, writer: LanceWriter, query: str) -> None:
    assert snapshot_with(generation, writer, document("a", "The river and the sea")).keyword_search(query, 5) == []


@pytest.mark.parametrize(
    "query", ["river\x00sea", '"river', "river' OR '1'='1", "+river -sea", "river " * 1_600, "riv😀er river"]
)
def test_signs_in_a_query_are_not_syntax(generation: Generation, writer: LanceWriter, query: str) -> None:
    snapshot = snapshot_with(generation, writer, document("a", "The river and the sea"), document("b", "Mountains"))
    assert [hit.key.document_id for hit in snapshot.keyword_search(query, 5)] == ["a"]


def test_rows_of_old_revisions_are_never_found(
    generation: Generation, writer: LanceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [document(f"d{number}", *[f"River {number} {part}" for part in range(30)]) for number in range(5)]
    writer.replace(old)
    monkeypatch.setattr(LanceWriter, "_delete_stale", lambda *_: None)  # as if it had not come to it yet
    snapshot = snapshot_with(
        generation,
        writer,
        *[document(f"d{number}", "Mountain") for number in range(4)],
        tombstone("d4"),
        document("new", "A river"),
    )
    assert [hit.key.document_id for hit in snapshot.keyword_search("river", 3)] == ["new"]
    nearest = snapshot.vector_search(vector_of("d0. River 0 0"), 5)
    assert len(nearest) == 5
    assert snapshot.chunks(hit.chunk_id for hit in nearest).keys() == {hit.chunk_id for hit in nearest}
    assert "d4" not in {hit.key.document_id for hit in nearest}
    assert snapshot.chunks(chunk.id for chunk in old[0].prepared.chunked.chunks) == {}
    assert snapshot.passages(passage.id for passage in old[4].prepared.chunked.passages) == {}
    assert [row.key.document_id for row in snapshot.list_documents(None, None, 10)[0]] == [
        "d0",
        "d1",
        "d2",
        "d3",
        "new",
    ]


def test_rows_are_found_by_id(generation: Generation, writer: LanceWriter) -> None:
    made = document("a", "One. Two", "Three", title="Numbers")
    snapshot = snapshot_with(generation, writer, made, document("b", "Other"))
    first, second = made.prepared.chunked.passages
    passages = snapshot.passages([second.id, "no such"])
    assert list(passages) == [second.id]
    assert (passages[second.id].text, passages[second.id].title) == ("Three", "Numbers")
    assert passages[second.id].section == ["Numbers", "Detail"]
    chunks = snapshot.chunks_of_passages([first.id, second.id, "no such"])
    assert {passage: [chunk.text for chunk in found] for passage, found in chunks.items()} == {
        first.id: ["One", "Two"],
        second.id: ["Three"],
    }
    ids = [chunk.id for chunk in made.prepared.chunked.chunks]
    assert [snapshot.chunks(ids)[chunk].ordinal for chunk in ids] == [0, 1, 2]
    vectors = snapshot.vectors(ids)
    np.testing.assert_array_equal(np.stack([vectors[chunk] for chunk in ids]), made.vectors)


def test_document_pages_are_ordered_and_skip_deleted_ones(generation: Generation, writer: LanceWriter) -> None:
    names = [("a-b", "x"), ("a", "z"), ("a", "b/c"), ("a", "b"), ("ü", "1")]
    documents = [document(name, "Text", collection=collection) for collection, name in names]
    snapshot = snapshot_with(generation, writer, *documents, tombstone("gone", collection="a"))
    seen, cursor = [], None
    while True:
        page, cursor = snapshot.list_documents(None, cursor, 2)
        seen += [row.key for row in page]
        if cursor is None:
            break
    assert seen == sorted(DocumentKey(*name) for name in names)
    only, cursor = snapshot.list_documents("a", None, 10)
    assert [row.key.document_id for row in only] == ["b", "b/c", "z"]
    assert cursor is None
    with pytest.raises(MalformedCursor):
        snapshot.list_documents(None, "not a cursor", 2)


def test_document_in_several_collections_is_found_in_each(generation: Generation, writer: LanceWriter) -> None:
    names = [("b", "index.md"), ("a", "index.md"), ("a", "other.md")]
    documents = [document(name, "Text", collection=collection) for collection, name in names]
    writer.replace([*documents, tombstone("index.md", collection="gone")])
    lookup = DocumentLookup(connect(generation.lance_dir).open_table(DOCUMENTS))
    assert lookup.collections_with("index.md") == ["a", "b"]
    assert lookup.collections_with("o'her.md") == []


def test_vector_of_another_dimension_is_refused(generation: Generation, writer: LanceWriter) -> None:
    snapshot = snapshot_with(generation, writer, document("a", "One"))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        snapshot.vector_search(np.ones(3, dtype=np.float32), 5)
    assert snapshot.vector_search(np.zeros(DIMENSION, dtype=np.float32), 5) == []
    assert snapshot.vector_search(vector_of("x"), 0) == []


def test_the_indexes_find_what_the_scan_found(generation: Generation) -> None:
    parameters = MaintenanceParameters(commits=2, vector_index_rows=400, busy_share=1e9)
    writer = LanceWriter.open(generation, DIMENSION, parameters)
    for part in range(3):
        numbers = range(part * 50, part * 50 + 50)
        writer.replace([document(f"d{number}", f"Word{number} river. Sea", "Hill. Dale") for number in numbers])
    scanned = TextReader.open(generation).snapshot()
    while (report := writer.maintain()).optimised or report.indexed:
        pass
    writer.replace([document("d0", "Word0 lake. Sea", "Hill. Dale"), tombstone("d1")])
    indexed = TextReader.open(generation, max_vectors=0).snapshot()
    query = vector_of("d20. Sea")
    assert [hit.chunk_id for hit in indexed.vector_search(query, 20)][:5] == [
        hit.chunk_id for hit in scanned.vector_search(query, 20) if hit.key.document_id not in {"d0", "d1"}
    ][:5]
    assert len(indexed.vector_search(query, 1_000)) == 149 * 4
    assert indexed.keyword_search("lake", 3) == TextReader.open(generation).snapshot().keyword_search("lake", 3)


def test_chunks_come_by_where_they_stand_in_their_documents(generation: Generation, writer: LanceWriter) -> None:
    sentences = ". ".join(f"Sentence {number}" for number in range(10))
    snapshot = snapshot_with(generation, writer, document("it's", sentences), document("b", "One. Two", "Three"))
    quoted, other = DocumentKey("default", "it's"), DocumentKey("default", "b")
    found = snapshot.chunks_in([ChunkSpan(quoted, 2, 4), ChunkSpan(quoted, 4, 5), ChunkSpan(other, 1, 99)])
    assert {key: [chunk.ordinal for chunk in chunks] for key, chunks in found.items()} == {
        quoted: [2, 3, 4, 5],
        other: [1, 2],
    }
    many = snapshot.chunks_in([ChunkSpan(quoted, at % 10, at % 10) for at in range(120)])
    assert [chunk.ordinal for chunk in many[quoted]] == list(range(10))
    assert snapshot.chunks_in([]) == {}


def test_chunks_of_an_earlier_revision_stand_around_nothing(generation: Generation, writer: LanceWriter) -> None:
    snapshot = snapshot_with(generation, writer, document("a", "Old one. Old two", offset=1))
    key = DocumentKey("default", "a")
    assert len(snapshot.chunks_in([ChunkSpan(key, 0, 9)])[key]) == 2
    later = snapshot_with(generation, writer, document("a", "New", offset=2))
    assert [chunk.text for chunk in later.chunks_in([ChunkSpan(key, 0, 9)])[key]] == ["New"]
