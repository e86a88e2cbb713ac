"""The order of what is needed first."""

from typing import Any

from query_api.entities.entity_facts import End, Fact, Identity
from query_api.study.learning_path import in_order, needed_for, orders_of


def fact(subject: str, predicate: str, target: str) -> Fact:
    return Fact(
        *(End(None, ord(each), each) if at != 1 else each for at, each in enumerate((subject, predicate, target))), ()
    )  # type: ignore[arg-type]


def name(letter: str) -> Identity:
    return "name", ord(letter)


def before(*facts: Fact) -> list[tuple[str, str]]:
    return [(chr(order.before[1]), chr(order.after[1])) for order in orders_of(facts)]


def test_each_predicate_has_its_direction() -> None:
    assert before(fact("a", "requires", "b"), fact("a", "prerequisite_of", "c")) == [("b", "a"), ("a", "c")]
    assert before(fact("a", "part_of", "b"), fact("a", "is_a", "c"), fact("a", "likes", "d")) == [
        ("b", "a"),
        ("c", "a"),
    ]


def test_what_contradicts_a_stronger_order_is_left_out() -> None:
    ring = [fact("a", "requires", "b"), fact("b", "requires", "c"), fact("c", "requires", "a")]
    assert before(*ring) == [("b", "a"), ("c", "b")]
    assert before(fact("b", "part_of", "a"), fact("a", "depends_on", "b")) == [("b", "a")]
    assert before(fact("a", "requires", "a")) == []


def test_a_topological_order_keeps_to_the_given_one() -> None:
    orders = orders_of([fact("a", "requires", "b"), fact("c", "requires", "a")])
    assert in_order([name(each) for each in "cadb"], orders) == [name(each) for each in "dbac"]


def test_what_a_goal_needs_is_found_nearest_first() -> None:
    facts: dict[Any, list[Fact]] = {
        name("a"): [fact("a", "requires", "b"), fact("z", "requires", "a")],
        name("b"): [fact("b", "requires", "c"), fact("a", "requires", "b")],
        name("c"): [fact("c", "requires", "a")],
    }
    found = needed_for(name("a"), facts.__getitem__, 3)
    assert [(each.subject.surface, each.object.surface) for each in found][:2] == [("a", "b"), ("b", "c")]
    assert len(needed_for(name("a"), facts.__getitem__, 2)) == 1
