"""The rows a batch puts into the tables."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from indexer.schema import PASSAGES_SCHEMA, chunks_schema, decompress_body
from indexer.text_analysis import terms_of
from indexer.write.lance_rows import IndexedRows, chunks_table, passages_table, retrievals_table
from schemas.provenance import Retrieval, RetrievedHit, decode_retrieval, encode_retrieval
from tests.support.fixtures.text_rows import DIMENSION, document, tombstone


def test_each_chunk_is_a_row_with_its_vector_and_hash() -> None:
    made = document("a", "One. Two", "Three", title="Numbers", collection="c")
    table = chunks_table([tombstone("gone"), made, IndexedRows(made.row)], DIMENSION)
    assert table.schema.equals(chunks_schema(DIMENSION), check_metadata=True)
    rows = table.to_pylist()
    assert [row["text"] for row in rows] == ["One", "Two", "Three"]
    assert [row["row"] for row in rows] == [f"{chunk.id}:{made.row.revision}" for chunk in made.prepared.chunked.chunks]
    assert [row["passage_id"] for row in rows] == [made.prepared.chunked.passages[number].id for number in (0, 0, 1)]
    assert {row["key"] for row in rows} == {"c/a"}
    assert [row["content_hash"] for row in rows] == list(made.hashes)
    np.testing.assert_array_equal(np.array([row["vector"] for row in rows], dtype=np.float32), made.vectors)


def test_a_passage_is_searched_by_title_headings_and_text_each_once() -> None:
    table = passages_table([document("a", "One. Two", title="Numbers")])
    assert table.schema.equals(PASSAGES_SCHEMA, check_metadata=True)
    [row] = table.to_pylist()
    assert row["terms"] == terms_of("Numbers Detail One two é")
    assert (row["title"], row["section"], row["text"]) == ("Numbers", ["Numbers", "Detail"], "One. Two")


def test_a_text_that_is_the_title_is_searched_once() -> None:
    [row] = passages_table([document("a", "Numbers", title="Numbers")]).to_pylist()
    assert row["terms"] == terms_of("Numbers Detail é")


def test_the_labels_of_the_metadata_are_searched_with_the_first_passage() -> None:
    plain = document("a", "One", "Two", title="Numbers")
    assert plain.prepared is not None
    labels = {"year": 1958, "authors": ["Prieve, B. G."], "published": "May 1975", "status": "draft"}
    described = replace(plain, prepared=msgspec.structs.replace(plain.prepared, metadata=labels))
    first, second = passages_table([described]).to_pylist()
    assert first["terms"] == terms_of("Numbers Detail One Prieve B. G. draft")
    assert second["terms"] == terms_of("Numbers Detail Two")


def test_a_header_that_is_part_of_the_text_is_searched_once() -> None:
    plain = document("a", "By Ada Lovelace", title="Numbers")
    assert plain.prepared is not None
    stated = {"author": "Ada Lovelace", "status": "Final", "stated_fields": ["author", "status"]}
    described = replace(plain, prepared=msgspec.structs.replace(plain.prepared, metadata=stated))
    [row] = passages_table([described]).to_pylist()
    assert row["terms"] == terms_of("Numbers Detail By Ada Lovelace Final")


def test_a_batch_of_tombstones_makes_no_rows() -> None:
    assert chunks_table([tombstone("a")], DIMENSION).num_rows == 0
    assert passages_table([tombstone("a")]).num_rows == 0


@pytest.mark.parametrize("shape", [(1, DIMENSION), (2, DIMENSION + 1), (2 * DIMENSION,)])
def test_vectors_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    made = document("a", "One. Two")
    with pytest.raises(ValueError, match="must be"):
        chunks_table([IndexedRows(made.row, made.prepared, np.ones(shape, np.float32), made.hashes)], DIMENSION)


def test_missing_hashes_are_refused() -> None:
    made = document("a", "One. Two")
    with pytest.raises(ValueError, match="1 hashes"):
        chunks_table([IndexedRows(made.row, made.prepared, made.vectors, made.hashes[:1])], DIMENSION)


def test_a_retrieval_that_comes_twice_is_one_row() -> None:
    hit = RetrievedHit(rank=1, chunk_id="chunk", passage_id="p", document_id="d", collection="c", score=1.0)
    retrieval = Retrieval(
        retrieval_id="r", query="q", collection="c", mode="hybrid", at_ms=5, snapshot={}, parameters={}, hits=[hit]
    )
    [row] = retrievals_table([("r", retrieval), ("r", retrieval)]).to_pylist()
    assert row["chunk_ids"] == ["chunk"]
    assert decode_retrieval(decompress_body(row["body"])) == retrieval


def test_the_record_of_a_retrieval_takes_a_third_of_its_length() -> None:
    hits = [
        RetrievedHit(
            rank=rank, chunk_id=f"{rank:032x}", passage_id=f"{rank + 100:032x}", document_id=f"doc{rank}",
            collection="default", score=1 / rank, scores={"keyword": 9.1 / rank, "vector": 0.7 / rank},
            ranks={"keyword": rank, "vector": rank},
            source={"topic": "thalweg.documents.v1", "partition": rank % 4, "offset": 1_000 + rank},
        )
        for rank in range(1, 11)
    ]  # fmt: skip
    retrieval = Retrieval(
        retrieval_id="r", query="q", collection="c", mode="hybrid", at_ms=5, snapshot={}, parameters={}, hits=hits
    )
    [row] = retrievals_table([("r", retrieval)]).to_pylist()
    assert len(row["body"]) < len(encode_retrieval(retrieval)) / 3
