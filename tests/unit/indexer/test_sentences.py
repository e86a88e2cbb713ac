"""Sentences of canonical text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def test_abbreviations_end_no_sentence_and_lines_do() -> None:
    assert sentences("Hello Dr. Smith went home. He slept!\n\nA heading\n- an item. More") == [
        "Hello Dr. Smith went home.",
        "He slept!",
        "A heading",
        "- an item.",
        "More",
    ]


def test_a_number_before_an_item_belongs_to_it() -> None:
    assert sentences("1. First of all. Then.\na) Second") == ["1. First of all.", "Then.", "a) Second"]


def test_spans_of_a_part_count_characters_of_the_whole() -> None:
    text = "One. Two 😀 é. Three."
    assert sentence_spans(text, 5) == [(5, 13), (14, 20)]
    assert sentence_spans(text, 5, 13) == [(5, 13)]


def test_there_may_be_none() -> None:
    assert sentence_spans("") == []
    assert sentence_spans(" \n\t\n ") == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", ["“" * 300_000, "x" * 5_000_000, "a. " * 300_000, "' " * 300_000, "(" * 1_000_000])
def test_time_is_bounded_whatever_the_line(text: str) -> None:
    assert sentence_spans(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from('ab 1.!?\n"“”()[]é😀\u2028。'), max_size=400))
def test_every_visible_character_is_in_exactly_one_sentence(text: str) -> None:
    spans = sentence_spans(text)
    assert spans == sorted(spans)
    covered = [position for start, end in spans for position in range(start, end)]
    assert len(covered) == len(set(covered))
    assert {position for position, character in enumerate(text) if not character.isspace()} <= set(covered)
    for start, end in spans:
        assert text[start:end] == text[start:end].strip() != ""
