"""Which names are shown as possible duplicates, and that this depends on the names alone."""

import random

import numpy as np
import pytest

from indexer.resolution.candidates import MOST_COMPARED, CandidateIndex, NamedEntity


def named(identifier: str, name: str, entity_type: str = "person") -> NamedEntity:
    return NamedEntity(identifier, "notes", name, entity_type, 1)


@pytest.mark.parametrize(
    ("entity_type", "first", "second", "reason"),
    [
        ("person", "J. Okafor", "Maria J. Okafor", "initials"),
        ("person", "Okafor Maria", "Maria Okafor", "another order"),
        ("person", "Maria Okafro", "Maria Okafor", "a letter or two"),
        ("person", "Prof. Maria Okafor", "Maria Okafor", "at most in blanks"),
        ("organisation", "CDC", "Centers for Disease Control", "may be short for"),
        ("organisation", "Université de Lyon", "Lyon Université", "another order"),
        ("organisation", "Harbour Research Institute", "Harbour Research", "is a part of"),
        ("organisation", "Аcme", "Acme", "look-alike letters"),
        ("product", "LanceDB", "Lance DB", "blanks"),
        ("thing", "Wild Things", "Wild Thing", "singular and plural"),
        ("identifier", "TypedDicts", "TypedDict", "singular and plural"),
        ("person", "Okafor", "Maria Okafor", "is a part of"),
        ("person", "Maria", "Maria J. Okafor", "is a part of"),
        ("concept", "nearest neighbour search", "nearest neighbor search", "a letter or two"),
    ],
)
def test_what_may_be_the_same_is_found_with_a_reason(entity_type: str, first: str, second: str, reason: str) -> None:
    index = CandidateIndex([named("a", first, entity_type), named("b", second, entity_type)])
    (pair,) = index.candidates("b")
    assert pair[:2] == ("a", "b")
    assert reason in pair.reason
    assert 0.5 <= pair.score <= 1
    assert index.candidates("a") == [pair] == index.pairs()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (named("a", "iPhone 4", "product"), named("b", "iPhone 5", "product")),
        (named("a", "Maria Okafor"), named("b", "Peter Okafor")),
        (named("a", "Mercury", "place"), named("b", "Mercury", "person")),
        (named("a", "M. Okafor"), named("b", "Peter Okafor")),
        (named("a", "Mercury (planet)", "thing"), named("b", "Mercury (element)", "thing")),
        (named("a", "Rome", "place"), named("b", "Roma", "place")),
        (named("a", "thread_tss_get", "identifier"), named("b", "thread_tss_set", "identifier")),
        (named("a", "May 3", "thing"), named("b", "Section 3", "thing")),
        (named("a", "C3", "thing"), named("b", "Chapter 3", "thing")),
        (named("a", "Hello", "work"), named("b", "Hello World", "work")),
        (named("a", "one two three four five six seven eight nine", ""), named("b", "one eight", "")),
    ],
)
def test_what_is_something_else_is_no_candidate(first: NamedEntity, second: NamedEntity) -> None:
    assert CandidateIndex([first, second]).pairs() == []


@pytest.mark.parametrize("name", ["", "...", "a", "x" * 10_000, "word " * 2_000, "!?" * 5_000, "日本 Токио Roma"])
def test_odd_names_pass(name: str) -> None:
    index = CandidateIndex([named("a", name), named("b", name), named("c", "Maria Okafor")])
    assert all(pair[:2] == ("a", "b") for pair in index.pairs())


def test_the_order_of_additions_and_removals_does_not_show() -> None:
    chance = random.Random(1)
    first, last = ["Maria", "Mario", "Peter", "Petra", "M."], ["Okafor", "Okafro", "Lindqvist", "Lindquist", "Rey"]
    everyone = [named(f"{at:03}", f"{chance.choice(first)} {chance.choice(last)}") for at in range(120)]
    kept, gone = everyone[:80], everyone[80:]
    expected = CandidateIndex(kept).pairs()
    assert expected
    for _ in range(10):
        chance.shuffle(everyone)
        index = CandidateIndex(everyone)
        for each in chance.sample(gone, len(gone)):
            index.remove(each.id)
        assert index.pairs() == expected
        assert len(index) == len(kept)
    for each in kept:
        index.remove(each.id)
    assert (index._blocks, index._words, index._deletions) == ({}, {}, {})


def test_an_entity_that_is_added_again_is_replaced() -> None:
    index = CandidateIndex([named("a", "Maria Okafor"), named("b", "Okafor Maria")])
    index.add(named("b", "Peter Lindqvist"))
    assert index.pairs() == []


def test_a_name_in_large_blocks_is_compared_with_few() -> None:
    index = CandidateIndex(named(f"{at:05}", f"Okafor {at:05} Bridge", "place") for at in range(3_000))
    index.add(named("new", "Okafor Bridge", "place"))
    assert len(list(index._near(index._forms["new"]))) <= MOST_COMPARED


def test_what_a_document_states_is_a_candidate_whatever_the_types() -> None:
    short, long = named("a", "K8s", "thing"), named("b", "Kubernetes", "organisation")
    assert CandidateIndex([short, long]).pairs() == []
    (pair,) = CandidateIndex([short._replace(same=frozenset("b")), long._replace(same=frozenset("a"))]).pairs()
    assert (pair[:2], pair.score) == (("a", "b"), 0.9)
    assert "states" in pair.reason
    assert CandidateIndex([short._replace(same=frozenset("b"))]).pairs() == []


@pytest.mark.parametrize(
    ("first", "second", "cosine", "score"),
    [
        (("Postgres", "product"), ("Pgsql", "product"), 0.9, 0.7),
        (("Postgres", "product"), ("Pgsql", "product"), 0.96, 0.96),
        (("Postgres", "product"), ("Pgsql server", "product"), 0.96, 0.76),
        (("Postgres", "product"), ("Pgsql", "product"), 0.79, None),
        (("Postgres", "product"), ("Pgsql", "place"), 0.96, None),
        (("Postgres 15", "product"), ("Pgsql 16", "product"), 0.96, None),
        (("Mike Scully", "person"), ("Brian Skelly", "person"), 0.96, None),
    ],
)
def test_names_of_similar_meaning_are_candidates(
    first: tuple[str, str], second: tuple[str, str], cosine: float, score: float | None
) -> None:
    index = CandidateIndex()
    index.add(named("a", *first), np.array([1, 0], dtype=np.float32))
    index.add(named("b", *second), np.array([cosine, (1 - cosine**2) ** 0.5], dtype=np.float32))
    assert [pair.score for pair in index.candidates("a")] == ([] if score is None else [pytest.approx(score)])
    assert index.candidates("b") == index.candidates("a")
    index.remove("b")
    assert index.candidates("a") == []
