"""The subjects of a verb, wherever they stand."""

import pytest

from indexer.extraction.prose.noun_phrases import words_of
from indexer.extraction.prose.subjects import Subjects


@pytest.mark.parametrize(
    ("before", "is_plural", "expected"),
    [
        ("The crawler", False, ["crawler"]),
        ("The crawler also in turn", False, ["crawler"]),
        ("Heron and Marsh", True, ["Heron", "Marsh"]),
        ("Kafka runs and the crawler", False, ["crawler"]),
        ("Clear and Present Danger", False, ["Clear and Present Danger"]),
        ("The office in Kiel", False, ["office"]),
        ("In Kiel, the office", False, ["office"]),
        ("Marsh, which", False, ["Marsh"]),
        ("Marsh, once a toy,", False, ["Marsh"]),
        ("The pump that feeds the boiler", False, ["pump"]),
        ("The pump that", False, ["pump"]),
        ("Its founder, Piet Kok,", False, ["Piet Kok"]),
        ("Kiel Airport, located near Holtenau, Kiel, in Germany,", False, ["Kiel Airport"]),
        ("Marsh, built by Acme, Initech and Globex,", False, ["Marsh"]),
        ("Marsh, based on Delta, polls it, and Heron, once a toy,", False, ["Heron"]),
        ("Brokers that", True, []),
        ("We know that Marsh", False, []),
        ("Note that Marsh", False, ["Marsh"]),
        ("Whenever Marsh", False, []),
        ("Across the Black Waters", False, []),
        ("Open Collective", False, ["Open Collective"]),
        ("US Airways Group", False, ["US Airways Group"]),
        ("The Committee against White Terror", False, ["Committee against White Terror"]),
        ("Installing Marsh", False, []),
        ("It", False, []),
        ("Marsh may", False, []),
        ("to", False, []),
        ("", False, []),
    ],
)
def test_the_subject_is_found_from_the_verb(before: str, is_plural: bool, expected: list[str]) -> None:
    words = words_of(before, 0, len(before))
    assert [one.surface for one in Subjects(words).before(len(words), is_plural)] == expected


def test_a_second_verb_shares_the_subject_of_the_first() -> None:
    words = words_of("Marsh polls Delta and", 0, 21)
    subjects = Subjects(words)
    assert [one.surface for one in subjects.before(4, is_plural=False)] == ["Marsh"], "the sentence begins with it"
    subjects.latest = subjects.before(1, is_plural=False)
    assert subjects.before(4, is_plural=False) is subjects.latest


def test_a_participle_describes_what_stands_before_it_or_what_that_completes() -> None:
    words = words_of("Marsh is a broker written", 0, 25)
    subjects = Subjects(words)
    assert [one.surface for one in subjects.described(4)] == ["broker"]
    subjects.latest, subjects.complement_end = subjects.before(1, is_plural=False), 4
    assert [one.surface for one in subjects.described(4)] == ["Marsh"]
