"""Noun phrases from either end, how well they name something, and enumerations."""

import pytest

from indexer.extraction.prose.noun_phrases import (
    BARE,
    DEFINITE,
    NAME,
    NONE,
    phrase_after,
    phrase_before,
    phrases_after,
    words_of,
)


def test_words_leave_out_what_stands_in_brackets() -> None:
    words = words_of("Marsh (a broker) uses C++ 3.6.", 0, 30)
    assert words.words == ["Marsh", "uses", "C++", "3.6", "."]
    assert [words.text[low:high] for low, high in zip(words.starts, words.ends, strict=True)] == words.words


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("Team Heron", NAME),
        ("the Ledger service", NAME),
        ("the worker", DEFINITE),
        ("a Redis replica", DEFINITE),
        ("payments", BARE),
        ("a broker", BARE),
        ("port 8443", NAME),
        ("head of Marsh", NAME),
        ("the thing", NONE),
        ("the main reason", NONE),
        ("several brokers", NONE),
        ("two brokers", BARE),
        ("no Marsh", NONE),
        ("this broker", NONE),
        ("the easiest", NONE),
        ("June 2020", NONE),
    ],
)
def test_a_phrase_names_one_thing_more_or_less_well(text: str, grade: int) -> None:
    sentence = f"is {text}"  # not at the start, where capitals say nothing
    phrase = phrase_after(words_of(sentence, 0, len(sentence)), 1)
    assert phrase is not None
    assert phrase.grade() == grade


@pytest.mark.parametrize(
    ("text", "surface"),
    [
        ("Today the new ledger", "new ledger"),
        ("In 2019 Northgate", "Northgate"),
        ("the head of the audit group", "head of the audit group"),
        ("a number of brokers", "brokers"),
        ("Sonic the Hedgehog", "Sonic the Hedgehog"),
        ("Leonardo da Vinci", "Leonardo da Vinci"),
        ("the craftsman William Morris", "William Morris"),
        ("English music band Ladytron", "Ladytron"),
        ("Marsh's broker", "Marsh's broker"),
        ("Extreme Makeover: Home Edition", "Extreme Makeover: Home Edition"),
        ("Note: Marsh", "Marsh"),
    ],
)
def test_a_phrase_is_read_backwards_from_a_verb(text: str, surface: str) -> None:
    words = words_of(text, 0, len(text))
    phrase = phrase_before(words, len(words))
    assert phrase is not None
    assert phrase.surface == surface


@pytest.mark.parametrize("text", ["", "of", "it", "the White Sea – Canal", 'the "Pricing" API'])
def test_a_part_of_a_phrase_is_none(text: str) -> None:
    words = words_of(text, 0, len(text))
    assert phrase_before(words, len(words)) is None


@pytest.mark.parametrize(
    ("text", "surfaces"),
    [
        ("Kafka, Redis and SQLite.", ["Kafka", "Redis", "SQLite"]),
        ("Kafka and the worker requires Redis", ["Kafka"]),
        ("Kafka, and Redis too", ["Kafka"]),
        ("Ann Bell, head of Acme and president of Marsh.", ["Ann Bell"]),
        ("a platform designed to run", ["platform"]),
        ("a tool providing the log", ["tool"]),
        ("a series providing help", ["series"]),
        ("a string matching library", ["string matching library"]),
        ("a Python 3+ port", []),
        ("a mode of this", []),
        ("a so-called “ledger”", []),
    ],
)
def test_an_enumeration_ends_where_a_clause_begins(text: str, surfaces: list[str]) -> None:
    words = words_of(text, 0, len(text))
    assert [one.surface for one in phrases_after(words, 0, frozenset(("requires",)))] == surfaces
