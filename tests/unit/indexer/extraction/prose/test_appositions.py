"""What stands beside a name, between commas and in brackets."""

import pytest

from indexer.extraction.prose.appositions import apposition_facts, life_facts
from indexer.extraction.prose.noun_phrases import words_of

Triples = list[tuple[str, str, str]]


def beside(sentence: str) -> Triples:
    return [(one.subject, one.predicate, one.object) for one in apposition_facts(words_of(sentence, 0, len(sentence)))]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ann Bell, head of the audit group, left.", [("Ann Bell", "leads", "audit group")]),
        ("We met Ann Bell, daughter of Bo Chan.", [("Ann Bell", "child_of", "Bo Chan")]),
        ("The creator of Marsh, Ann Bell, left.", [("Marsh", "created_by", "Ann Bell")]),
        ("Marsh's creator, Ann Bell, left.", [("Marsh", "created_by", "Ann Bell")]),
        ("Marsh, a message broker, is fast.", [("Marsh", "is_a", "message broker")]),
        ("Marsh, also known as Delta, is fast.", [("Marsh", "also_known_as", "Delta")]),
        ("They use Marsh, a broker, and Delta.", []),
        ("In the Outer Hebrides, a boat sank.", []),
        ("Heron, Marsh, a broker, left.", []),
        ("Born in New Jersey, the son of Bo Chan, he left.", []),
        ("They use names, including Marsh, a broker.", []),
        ("Marsh, however, is fast.", []),
    ],
)
def test_a_comma_sets_apart_what_a_name_is(sentence: str, expected: Triples) -> None:
    assert beside(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "Ann Bell (born 3 May 1971 in Kiel, Germany) is a poet.",
            [("Ann Bell", "born_on", "3 May 1971"), ("Ann Bell", "born_in", "Kiel")],
        ),
        (
            "Bo Chan (3 May 1871 – 4 June 1950) was a poet.",
            [("Bo Chan", "born_on", "3 May 1871"), ("Bo Chan", "died_on", "4 June 1950")],
        ),
        ("The war (1914–1918) ended.", []),
        ("(born 3 May 1971) is nobody.", []),
    ],
)
def test_brackets_hold_the_dates_of_a_life(sentence: str, expected: Triples) -> None:
    found = life_facts(sentence, 0, len(sentence))
    assert [(one.subject, one.predicate, one.object) for one in found] == expected
