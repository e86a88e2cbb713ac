"""Phrases that are terms of a text, and where they stand."""

from indexer.extraction.keyphrases import occurrences, tokens_of


def test_the_longest_term_is_taken_and_at_the_end_of_a_text_a_shorter_one() -> None:
    text = "A river bed of gravel, and below it the river bed."
    terms = {phrase: phrase for phrase in ("river bed of gravel", "river bed")}
    found = [text[name.start : name.end] for name in occurrences(text, tokens_of(text), terms)]
    assert found == ["river bed of gravel", "river bed"]


def test_one_word_can_be_the_last_and_begin_a_longer_term() -> None:
    text = "The thalweg"
    found = list(occurrences(text, tokens_of(text), {"thalweg": "thalweg", "thalweg of a river": "thalweg of a river"}))
    assert [(name.start, name.end) for name in found] == [(4, 11)]
