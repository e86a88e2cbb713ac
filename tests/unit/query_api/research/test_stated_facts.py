"""What a graph states of a claim, and which relations have one object by what it shows."""

from collections.abc import Iterable

import pytest

from query_api.entities.catalogue import EntityCatalogues
from query_api.index.curation_follower import Curation
from query_api.index.graph.view import GraphView
from query_api.research.stated_facts import ClaimedFact, StatedFacts, claimed_facts
from tests.support.fakes.text_stores import Page

Triple = tuple[str, str, str]


def stated(facts: Iterable[Triple]) -> StatedFacts:
    """One document for each."""
    pages = [
        Page(f"d{at}", f"Title {at}", [[" ".join(fact)]], [fact[0], fact[2]], facts=[fact], collection="a")
        for at, fact in enumerate(facts)
    ]
    view = GraphView.from_contributions([page.contribution() for page in pages], 1)
    return StatedFacts(view, EntityCatalogues().of(view, Curation()), "a")


def decided(facts: StatedFacts, *claimed: str, denied: bool = False) -> list[tuple[bool, tuple[str, str] | None]]:
    return [(each.supports, each.instead) for each in facts.decisions(ClaimedFact(*claimed, denied=denied))]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Ann Bell was born on 12 May 1954.", ["Ann Bell · born_on · 12 May 1954"]),
        ("Marsh does not use Delta.", ["not Marsh · uses · Delta"]),
        ("river level", []),
    ],
)
def test_a_claim_is_read_as_a_sentence_of_a_document_is(claim: str, expected: list[str]) -> None:
    assert [str(fact) for fact in claimed_facts(claim)] == expected


def test_another_object_excludes_where_a_subject_has_one() -> None:
    facts = stated([("Ann Bell", "born_in", "Leeds"), ("Ann Bell", "uses", "Delta")])
    assert decided(facts, "Ann Bell", "born_in", "Leeds") == [(True, None)]
    assert decided(facts, "Ann Bell", "born_in", "York") == [(False, ("York", "Leeds"))]
    assert decided(facts, "Ann Bell", "born_in", "York", denied=True) == [(True, ("York", "Leeds"))]
    assert decided(facts, "Ann Bell", "uses", "Gamma") == []
    assert decided(facts, "Ben Marsh", "born_in", "Leeds") == []  # many are


def test_what_is_within_the_other_does_not_exclude_it() -> None:
    facts = stated([
        ("Ann Bell", "born_in", "Leeds"), ("Leeds", "located_in", "Yorkshire"), ("Yorkshire", "located_in", "England"),
    ])  # fmt: skip
    assert decided(facts, "Ann Bell", "born_in", "England") == []
    assert decided(facts, "Ann Bell", "born_in", "Yorkshire") == []
    assert decided(facts, "Ann Bell", "born_in", "West Leeds") == []
    assert decided(facts, "Ann Bell", "born_in", "Wales") == [(False, ("Wales", "Leeds"))]


def test_a_less_exact_time_is_borne_out_and_another_one_excluded() -> None:
    facts = stated([("Ann Bell", "born_on", "12 May 1954")])
    assert decided(facts, "Ann Bell", "born_on", "1954") == [(True, None)]
    assert decided(facts, "Ann Bell", "born_on", "May 1955") == [(False, ("May 1955", "12 May 1954"))]


def many(predicate: str, subjects: int, several: int) -> list[Triple]:
    one = [(f"Subject{at}", predicate, f"Object{at}") for at in range(subjects)]
    return one + [(f"Subject{at}", predicate, f"Other{at}") for at in range(several)]


@pytest.mark.parametrize(
    ("predicate", "subjects", "several", "expected"),
    [
        ("flown_by", 99, 0, False),  # too few to show it
        ("flown_by", 100, 0, True),
        ("flown_by", 100, 1, False),
        ("flown_by", 400, 9, True),
        ("born_in", 1, 0, True),  # by the list
        ("born_in", 19, 19, True),
        ("born_in", 30, 3, True),
        ("born_in", 30, 4, False),  # which the graph refutes
        ("is_a", 200, 0, False),  # a thing is of several kinds
    ],
)
def test_the_graph_shows_which_relations_have_one_object(
    predicate: str, subjects: int, several: int, *, expected: bool
) -> None:
    assert stated(many(predicate, subjects, several)).has_one(predicate, "subject") is expected


def test_one_subject_is_not_taken_from_the_graph_alone() -> None:
    """Dates of birth are of one person each in any small collection."""
    assert not stated(many("born_on", 200, 0)).has_one("born_on", "object")
    assert stated(many("capital_of", 30, 0)).has_one("capital_of", "object")
