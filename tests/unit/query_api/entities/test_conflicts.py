"""Statements of different documents that contradict each other, found from the graph alone."""

from collections.abc import Sequence
from itertools import permutations, repeat
from typing import Any

import msgspec
import pytest

from query_api.entities.catalogue import EntityCatalogues
from query_api.entities.conflicts import COMPARED, Conflict, ConflictFinder
from query_api.index.curation_follower import Curation
from query_api.index.graph.view import GraphView
from schemas.graph_delta import DENIAL
from schemas.graph_edits import decision_id
from schemas.ids import entity_id
from tests.support.fakes.text_stores import Page, made_edge

LETTERS = tuple("abcdefghijkl")
NAMES = (*LETTERS, "Kestrel", "Team Petrel", "Team Heron", "Ada Bell", "London", "England", "Paris", "Lyon", "France")
KINDS = ("whale", "mammal", "animal")
Fact = tuple[str, str, str]


def page(name: str, *facts: Fact) -> Page:
    names = [*NAMES, *KINDS]
    text = ". ".join(" ".join(fact) for fact in facts)
    return Page(name, name, [[text]], names, facts=facts, types=dict.fromkeys(names, "thing"))


def found(
    pages: Sequence[Page], acyclic: Sequence[str] = (), may_be_one: Sequence[str] = (), **denied: Fact
) -> dict[str, Conflict]:
    """{id: conflict} in the graph of these pages, and of pages that deny a fact."""
    contributions = [each.contribution() for each in pages]
    for name, fact in denied.items():
        made = page(name, fact).contribution()
        statements = [msgspec.structs.replace(each, extractor=DENIAL) for each in made.statements]
        contributions.append(msgspec.structs.replace(made, statements=statements))
    view = GraphView.from_contributions(contributions, 0)
    without_cycles = {"is_a", *acyclic}
    finder = ConflictFinder(view, EntityCatalogues().of(view, Curation()), "wiki", COMPARED | without_cycles)
    conflicts = list(finder.find(sorted(without_cycles), may_be_one))
    assert len({each.id for each in conflicts}) == len(conflicts)
    return {each.id: each for each in conflicts}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("Kestrel", "owner", "Team Petrel"), ("Kestrel", "owner", "Team Heron"), "owner"),
        (("Kestrel", "owner", "Team Petrel"), ("Team Heron", "owns", "Kestrel"), "owner"),
        (("Paris", "capital_of", "France"), ("Lyon", "capital_of", "France"), "capital"),
        (("Paris", "capital_of", "France"), ("Paris", "capital_of", "England"), "capital_of"),
        (("Ada Bell", "born_in", "London"), ("Ada Bell", "born_in", "Paris"), "born_in"),
        (("Ada Bell", "born_on", "3 May 1815"), ("Ada Bell", "born", "1816"), "born_on"),
    ],
)
def test_another_value_of_what_has_one_is_a_conflict(one: Fact, other: Fact, expected: str) -> None:
    (conflict,) = found([page("a", one), page("b", other)]).values()
    assert (conflict.kind, conflict.about) == ("conflict", expected)
    assert {fact.predicate for fact in conflict.facts} == {one[1], other[1]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Kestrel", "owner", "Team Petrel"), ("Kestrel", "owner", "Team Petrel")),
        (("Kestrel", "owner", "Team Petrel"), ("Team Petrel", "owns", "Kestrel")),
        (("Kestrel", "requires", "Team Petrel"), ("Kestrel", "requires", "Team Heron")),
        (("Kestrel", "is_a", "service"), ("Kestrel", "is_a", "bird")),
        (("Kestrel", "owner", "Team Petrel"), ("Paris", "owner", "Team Heron")),
    ],
)
def test_statements_that_can_both_hold_are_not_a_conflict(one: Fact, other: Fact) -> None:
    assert found([page("a", one), page("b", other)]) == {}


def test_two_owners_in_one_document_are_not_a_conflict() -> None:
    both = page("a", ("Kestrel", "owner", "Team Petrel"), ("Kestrel", "owner", "Team Heron"))
    assert found([both, page("b", ("Kestrel", "owner", "Team Heron"))]) == {}


def test_a_value_that_says_more_is_an_enhancement() -> None:
    places = [page("a", ("Ada Bell", "born_in", "London")), page("b", ("Ada Bell", "born_in", "England"))]
    assert [each.kind for each in found(places).values()] == ["conflict"]
    within = page("c", ("London", "located_in", "England"))
    assert [each.kind for each in found([*places, within]).values()] == ["enhancement"]
    kinds = [page("a", ("Kestrel", "is_a", "service")), page("b", ("Kestrel", "is_a", "pricing service"))]
    assert [(each.kind, each.about) for each in found(kinds).values()] == [("enhancement", "kind")]


def test_values_that_may_be_one_are_a_duplicate_of_that_id() -> None:
    owners = [page("a", ("Kestrel", "owner", "Team Petrel")), page("b", ("Kestrel", "owner", "Team Heron"))]
    pair = decision_id([entity_id("wiki", "team petrel"), entity_id("wiki", "team heron")])
    conflicts = found(owners, may_be_one=[pair])
    assert [(identifier, each.kind) for identifier, each in conflicts.items()] == [(pair, "duplicate")]


def test_denial_of_what_another_document_states_is_a_conflict() -> None:
    fact = ("Kestrel", "requires", "Paris")
    (conflict,) = found([page("a", fact)], b=fact).values()
    assert (conflict.about, [each.predicate for each in conflict.facts]) == (
        "not requires",
        ["requires", "not requires"],
    )
    assert found([], b=fact) == {}
    assert found([page("a", ("Kestrel", "requires", "Lyon"))], b=fact) == {}


def test_cycle_of_kinds_goes_with_any_of_its_documents() -> None:
    facts = [("whale", "is_a", "mammal"), ("mammal", "is_a", "animal"), ("animal", "is_a", "whale")]
    pages = [page(str(at), fact) for at, fact in enumerate(facts)]
    (conflict,) = found(pages).values()
    assert (conflict.about, len(conflict.facts)) == ("is_a cycle", 3)
    assert "→" in conflict.reason
    for at in range(3):
        assert found(pages[:at] + pages[at + 1 :]) == {}


def test_cycle_of_twelve_facts_is_found_whole() -> None:
    facts = zip(LETTERS, repeat("is_a"), (*LETTERS[1:], LETTERS[0]), strict=False)
    (conflict,) = found([page(str(at), fact) for at, fact in enumerate(facts)]).values()
    assert len(conflict.facts) == len(LETTERS)


def test_cycle_of_another_predicate_counts_where_it_is_forbidden() -> None:
    pages = [page("a", ("Kestrel", "precedes", "Paris")), page("b", ("Paris", "precedes", "Kestrel"))]
    assert found(pages) == {}
    (conflict,) = found(pages, acyclic=["precedes"]).values()
    assert (conflict.kind, conflict.about, len(conflict.facts)) == ("conflict", "precedes cycle", 2)


def test_edge_by_people_that_contradicts_a_document_is_found() -> None:
    kestrel, heron = (entity_id("wiki", name) for name in ("kestrel", "team heron"))
    mention = page("c", ("Team Heron", "uses", "Kestrel"))
    made = made_edge(kestrel, "owner", heron, name="e1")
    (conflict,) = found([page("a", ("Kestrel", "owner", "Team Petrel")), mention, made]).values()
    assert [edge.id for fact in conflict.facts for edge in fact.edges] == ["e1"]


def test_conflicts_in_any_order_of_documents_are_the_same() -> None:
    pages = [
        page("a", ("Kestrel", "owner", "Team Petrel"), ("whale", "is_a", "mammal")),
        page("b", ("Team Heron", "owns", "Kestrel"), ("mammal", "is_a", "whale")),
        page("c", ("Kestrel", "owner", "Ada Bell"), ("Kestrel", "is_a", "service")),
    ]

    def shown(order: Sequence[Page]) -> dict[str, tuple[Any, ...]]:
        conflicts = found(order)
        return {each.id: (each.kind, each.about, each.entities, each.reason) for each in conflicts.values()}

    first = shown(pages)
    assert len(first) == 4
    assert all(shown(order) == first for order in permutations(pages))
