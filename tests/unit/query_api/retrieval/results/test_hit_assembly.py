"""What stands at each place becomes a hit: its best chunk, its snippet, what stands around it."""

import pytest

from indexer.read.rows import ChunkRow, PassageRow
from indexer.schema import DocumentRow
from indexer.text_analysis import terms_of
from query_api.query.analysis import Question
from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.results.hit_assembly import (
    SECTION_CHARACTERS,
    PageTexts,
    Snippet,
    assemble_hits,
    context_chunks,
    context_span,
    joined,
    snippet_of,
)
from schemas.hits import Hit, TextSpan
from schemas.ids import DocumentKey
from schemas.search import SearchRequest

KEY = DocumentKey("papers", "long.pdf")


def hit_at(start: int, metadata: dict[str, object]) -> Hit:
    passage = PassageRow("p", KEY, "r", 0, [], start, start + 10, "Long", "Some words.")
    chunk = ChunkRow("c", KEY, "r", 0, "p", [], start, start + 10, "Some words.")
    document = DocumentRow(KEY, None, 0, 1, 0, "r", "application/pdf", "Long", None, metadata)
    texts = PageTexts({"p": passage}, {"p": [chunk]}, {KEY: document})
    (hit,) = assemble_hits(
        [RankedPassage("p", "c", 1.0, {}, {}, KEY)], [1], texts, Question("words"), {}, None, "documents"
    )
    return hit


def test_a_hit_tells_its_page_and_not_where_all_pages_begin() -> None:
    pages = {"year": 1843, "page_starts": [0, 100, 200]}
    assert [hit_at(start, pages).page for start in (0, 99, 100, 250)] == [1, 1, 2, 3]
    assert hit_at(0, pages).metadata == {"year": 1843}


def test_a_hit_tells_the_page_of_the_answer_and_not_of_the_words_before_it() -> None:
    text = "A page ends here. The next begins."
    passage = PassageRow("p", KEY, "r", 0, [], 90, 90 + len(text), "Long", text)
    chunk = ChunkRow("c", KEY, "r", 0, "p", [], 97, 90 + len(text), text[7:])
    document = DocumentRow(KEY, None, 0, 1, 0, "r", "application/pdf", "Long", None, {"page_starts": [0, 108]})
    texts = PageTexts({"p": passage}, {"p": [chunk]}, {KEY: document})
    places = [RankedPassage("p", "c", 1.0, {}, {}, KEY)]
    pages = {}
    for word in ("next", "page", "other"):
        idf = dict.fromkeys(terms_of(word), 1.0)
        (hit,) = assemble_hits(places, [1], texts, Question(word), idf, None, "documents")
        assert hit.text == hit.parent_text[hit.start - hit.parent_start : hit.end - hit.parent_start]
        pages[word] = (hit.page, hit.text)
    assert pages == {"next": (2, "The next begins."), "page": (1, text), "other": (2, "The next begins.")}


def test_a_hit_in_a_format_without_pages_has_none() -> None:
    assert hit_at(0, {"year": 1843}).page is None


PASSAGE = "The weir was built in 1843. It holds the river back. Two locks pass it by.\nNobody swims there."


def shown(passage: str, chunk: str, **idf: float) -> Snippet:
    """The snippet of a chunk; `idf` is {word of the question: its weight}."""
    start = passage.index(chunk)
    weights = {term: weight for word, weight in idf.items() for term in terms_of(word)}
    return snippet_of(passage, start, start + len(chunk), weights)


def marked(passage: str, snippet: Snippet) -> tuple[str, list[str], str | None]:
    """The text, its highlights, its answer."""
    text = passage[snippet.start : snippet.end]

    def at(span: TextSpan) -> str:
        return text[span.start : span.end]

    return text, [at(span) for span in snippet.highlights], at(snippet.answer) if snippet.answer else None


def test_the_answer_is_the_sentence_that_tells_most_and_every_form_of_a_word_is_marked() -> None:
    snippet = shown(PASSAGE, PASSAGE[:74], lock=1.0, river=3.0, passes=1.0)
    assert marked(PASSAGE, snippet) == (PASSAGE[:74], ["river", "locks", "pass"], "It holds the river back.")


def test_what_is_carried_over_from_the_chunk_before_is_not_shown() -> None:
    text, _, answer = marked(PASSAGE, shown(PASSAGE, "river back. Two locks pass it by.", locks=1.0))
    assert text == answer == "Two locks pass it by."
    text, _, answer = marked(PASSAGE, shown(PASSAGE, "river back. Two locks pass it by.", unknown=1.0))
    assert (text, answer) == ("Two locks pass it by.", None)


def test_a_sentence_carried_over_is_shown_whole_where_it_answers() -> None:
    text, highlights, answer = marked(PASSAGE, shown(PASSAGE, "river back. Two locks pass it by.", holds=1.0))
    assert (text, highlights) == ("It holds the river back. Two locks pass it by.", ["holds"])
    assert answer == "It holds the river back."


@pytest.mark.parametrize("chunk", ["a sentence, longer than", "longer than a chunk, is shown whole.", "This is a"])
def test_a_sentence_longer_than_a_chunk_is_shown_whole(chunk: str) -> None:
    passage = "It began. This is a sentence, longer than a chunk, is shown whole.\nAnother line."
    text, _, _ = marked(passage, shown(passage, chunk, sentence=1.0))
    assert text == "This is a sentence, longer than a chunk, is shown whole."


def test_the_match_stands_where_the_answer_does_else_where_the_text_begins() -> None:
    assert PASSAGE[shown(PASSAGE, PASSAGE[:74], river=1.0).matched_at :].startswith("It holds")
    assert PASSAGE[shown(PASSAGE, "back. Two locks", other=1.0).matched_at :].startswith("Two locks")


def test_a_passage_without_a_sentence_is_shown_as_it_is() -> None:
    assert shown("   ", " ", any=1.0) == Snippet(0, 1, [], None)


LETTERS = DocumentKey("wiki", "letters")
SENTENCES = [f"{letter.upper()}{letter} said {letter}." for letter in "abcdefghij"]
TEXT = " ".join(SENTENCES)
LENGTH = len(SENTENCES[0]) + 1
OVERLAP = 8


def chunk(ordinal: int, section: str = "One") -> ChunkRow:
    start = max(0, ordinal * LENGTH - OVERLAP)
    end = ordinal * LENGTH + LENGTH - 1
    return ChunkRow(f"c{ordinal}", LETTERS, "r", ordinal, "p", [section], start, end, TEXT[start:end])


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
    found = context_chunks(asked(context="window", context_chunks=count), CHUNKS[ordinal], CHUNKS)
    assert [each.id for each in found] == ids


def test_a_section_ends_where_the_headings_change() -> None:
    assert [each.id for each in context_chunks(asked(context="section"), CHUNKS[4], CHUNKS)] == [
        f"c{number}" for number in range(6)
    ]
    assert [each.id for each in context_chunks(asked(context="section"), CHUNKS[7], CHUNKS)] == ["c6", "c7", "c8", "c9"]


def test_a_long_section_is_cut_around_the_chunk_at_the_bound() -> None:
    size = SECTION_CHARACTERS // 5
    long = [ChunkRow(f"c{at}", LETTERS, "r", at, "p", [], at * size, (at + 1) * size, "x" * size) for at in range(20)]
    found = context_chunks(asked(context="section"), long[10], long)
    assert [each.id for each in found] == ["c8", "c9", "c10", "c11", "c12"]
    assert len(joined(found)) == SECTION_CHARACTERS


def test_what_was_read_for_other_hits_of_the_document_is_not_shown() -> None:
    assert context_span(asked(context="window", context_chunks=1), CHUNKS[0]) == (LETTERS, 0, 1)
    assert [each.id for each in context_chunks(asked(context="window", context_chunks=1), CHUNKS[0], CHUNKS)] == [
        "c0",
        "c1",
    ]
