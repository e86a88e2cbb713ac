"""What a hit shows of its passage, and what is marked in it."""

import pytest

from indexer.text_analysis import terms_of
from query_api.retrieval.results.snippets import Snippet, snippet_of
from schemas.hits import TextSpan

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
