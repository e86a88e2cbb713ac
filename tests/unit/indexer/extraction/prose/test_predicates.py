"""Verb forms, and the predicates of verbs with their prepositions."""

import pytest

from indexer.extraction.prose.predicates import (
    VERB_FORMS,
    Relation,
    active_relation,
    passive_relation,
    past_forms,
    third_person,
)


@pytest.mark.parametrize(
    ("lemma", "third", "past", "participle"),
    [
        ("use", "uses", "used", "used"),
        ("supply", "supplies", "supplied", "supplied"),
        ("employ", "employs", "employed", "employed"),
        ("publish", "publishes", "published", "published"),
        ("drop", "drops", "dropped", "dropped"),
        ("write", "writes", "wrote", "written"),
    ],
)
def test_forms_of_a_verb(lemma: str, third: str, past: str, participle: str) -> None:
    assert third_person(lemma) == third
    assert past_forms(lemma) == (past, participle)
    assert all(lemma in {verb.lemma for verb in VERB_FORMS[form]} for form in (third, past, participle))


@pytest.mark.parametrize(
    ("lemma", "preposition", "expected"),
    [
        ("rely", "on", Relation("depends_on")),
        ("found", "", Relation("founded_by", is_inverse=True)),
        ("monitor", "", Relation("monitors", is_typed=False)),
        ("subscribe", "to", Relation("subscribes_to", is_typed=False)),
        ("rely", "", None),
        ("monitor", "with", None),
        ("dance", "", None),
    ],
)
def test_a_verb_states_a_relation(lemma: str, preposition: str, expected: Relation | None) -> None:
    assert active_relation(lemma, preposition) == expected


@pytest.mark.parametrize(
    ("lemma", "preposition", "expected"),
    [
        ("own", "by", Relation("owns", is_inverse=True)),
        ("found", "by", Relation("founded_by")),
        ("base", "on", Relation("builds_on")),
        ("locate", "in", Relation("located_in")),
        ("hold", "in", Relation("held_in")),
        ("define", "in", Relation("defined_in", is_typed=False)),
        ("own", "", None),
        ("define", "for", None),
    ],
)
def test_the_passive_is_turned_round(lemma: str, preposition: str, expected: Relation | None) -> None:
    assert passive_relation(lemma, preposition) == expected
