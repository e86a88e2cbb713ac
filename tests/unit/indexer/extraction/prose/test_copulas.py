"""What things are: kinds, relations by nouns, places."""

import pytest

from indexer.extraction.prose.clauses import clause_facts
from indexer.extraction.prose.copulas import chained_places, is_kind
from indexer.extraction.prose.noun_phrases import phrase_after, words_of


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Marsh is a message broker.", {("Marsh", "is_a", "message broker")}),
        ("A shard is a slice of an index.", {("shard", "is_a", "slice of an index")}),
        ("Marsh is one of the message brokers.", {("Marsh", "is_a", "message brokers")}),
        ("Marsh is a kind of broker.", {("Marsh", "is_a", "broker")}),
        ("Marsh is a high-level, asynchronous client.", {("Marsh", "is_a", "asynchronous client")}),
        (
            "Lund is the capital of Skania.",
            {("Lund", "capital_of", "Skania"), ("Lund", "is_a", "capital of Skania"), ("Lund", "located_in", "Skania")},
        ),
        ("The owner of Marsh is Team Heron.", {("Team Heron", "owns", "Marsh")}),
        ("Marsh's owner is Team Heron.", {("Team Heron", "owns", "Marsh")}),
        (
            "Ann Bell is the founder of Acme.",
            {("Acme", "founded_by", "Ann Bell"), ("Ann Bell", "is_a", "founder of Acme")},
        ),
        (
            "Lund is a city in Skania, Sweden.",
            {("Lund", "is_a", "city"), ("Lund", "located_in", "Skania"), ("Skania", "located_in", "Sweden")},
        ),
    ],
)
def test_a_copula_states_what_a_thing_is(sentence: str, expected: set[tuple[str, str, str]]) -> None:
    found = clause_facts(words_of(sentence, 0, len(sentence)))
    assert {(one.subject, one.predicate, one.object) for one in found} == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Homebrew is the easiest.",
        "Marsh is a must.",
        "Marsh is available.",
        "Marsh is the start of the vector.",
        "The reason is a broker.",
        "The worker was a broker.",
        "It is a broker.",
        "Marsh is this broker.",
        "Marsh is a popular name.",
    ],
)
def test_what_says_nothing_is_no_kind(sentence: str) -> None:
    assert list(clause_facts(words_of(sentence, 0, len(sentence)))) == []


@pytest.mark.parametrize(("text", "expected"), [("a message broker", True), ("a kind", False), ("her broker", False)])
def test_a_kind_has_a_head_noun(text: str, expected: bool) -> None:
    phrase = phrase_after(words_of(text, 0, len(text)), 0)
    assert phrase is not None
    assert is_kind(phrase) is expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("She died in Okotoks, Alberta, Canada.", [("Okotoks", "Alberta"), ("Alberta", "Canada")]),
        ("It opened in Lund, Sweden, and closed.", [("Lund", "Sweden")]),
        ("It opened in Lund, Kiel and Riga.", []),
        ("It opened in May, June, July.", []),
        ("Marsh, written in Rust, uses Kafka.", []),
        ("It opened in Lund.", []),
        ("It is used in Fiji, Samoa, the Cook Islands and Tonga.", []),
        ("It is used in Peru, Chile, and Bolivia.", []),
        ("In Beirut, Hezbollah said so.", []),
    ],
)
def test_a_place_is_in_the_one_named_after_it(sentence: str, expected: list[tuple[str, str]]) -> None:
    found = chained_places(words_of(sentence, 0, len(sentence)))
    assert [(one.subject, one.object) for one in found] == expected
