"""What stands around a chunk of a document of ten sentences, each a chunk that takes over some words before it."""

import pytest

from indexer.read.rows import ChunkRow
from query_api.retrieval.results.context_windows import SECTION_CHARACTERS, around, joined, span_of
from schemas.ids import DocumentKey
from schemas.search import SearchRequest

KEY = DocumentKey("wiki", "letters")
SENTENCES = [f"{letter.upper()}{letter} said {letter}." for letter in "abcdefghij"]
TEXT = " ".join(SENTENCES)
LENGTH = len(SENTENCES[0]) + 1
OVERLAP = 8


def chunk(ordinal: int, section: str = "One") -> ChunkRow:
    start = max(0, ordinal * LENGTH - OVERLAP)
    end = ordinal * LENGTH + LENGTH - 1
    return ChunkRow(f"c{ordinal}", KEY, "r", ordinal, "p", [section], start, end, TEXT[start:end])


CHUNKS = [chunk(ordinal, "One" if ordinal < 6 else "Two") for ordinal in range(10)]


def asked(**parameters: object) -> SearchRequest:
    return SearchRequest.model_validate({"q": "letters"} | parameters)


def test_overlapping_chunks_are_joined_to_the_text_they_were_cut_from() -> None:
    assert joined(CHUNKS) == TEXT
    assert joined([CHUNKS[0], CHUNKS[0]]) == SENTENCES[0]
    assert joined([]) == ""


def test_between_chunks_that_do_not_touch_stands_a_gap() -> None:
    assert joined([CHUNKS[0], CHUNKS[3]]) == f"{SENTENCES[0]}\n\n{CHUNKS[3].text}"


@pytest.mark.parametrize(
    ("ordinal", "count", "ids"),
    [
        (4, 1, ["c3", "c4", "c5"]),
        (4, None, ["c2", "c3", "c4", "c5", "c6"]),
        (0, 2, ["c0", "c1", "c2"]),
        (9, 1, ["c8", "c9"]),
    ],
)
def test_a_window_holds_so_many_chunks_on_either_side_as_far_as_there_are(
    ordinal: int, count: int | None, ids: list[str]
) -> None:
    found = around(asked(context="window", context_chunks=count), CHUNKS[ordinal], CHUNKS)
    assert found.chunk_ids == ids
    assert found.text == joined([each for each in CHUNKS if each.id in ids])


def test_a_section_ends_where_the_headings_change() -> None:
    assert around(asked(context="section"), CHUNKS[4], CHUNKS).chunk_ids == [f"c{number}" for number in range(6)]
    assert around(asked(context="section"), CHUNKS[7], CHUNKS).chunk_ids == ["c6", "c7", "c8", "c9"]


def test_a_long_section_is_cut_around_the_chunk_at_the_bound() -> None:
    size = SECTION_CHARACTERS // 5
    long = [ChunkRow(f"c{at}", KEY, "r", at, "p", [], at * size, (at + 1) * size, "x" * size) for at in range(20)]
    found = around(asked(context="section"), long[10], long)
    assert found.chunk_ids == ["c8", "c9", "c10", "c11", "c12"]
    assert len(found.text) == SECTION_CHARACTERS


def test_what_was_read_for_other_hits_of_the_document_is_not_shown() -> None:
    assert span_of(asked(context="window", context_chunks=1), CHUNKS[0]) == (KEY, 0, 1)
    assert around(asked(context="window", context_chunks=1), CHUNKS[0], CHUNKS).chunk_ids == ["c0", "c1"]
