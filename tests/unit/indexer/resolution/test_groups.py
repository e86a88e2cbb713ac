"""What becomes of entities by equal keys and by people's decisions, of which some contradict each other."""

import random

from indexer.resolution.groups import Decision, Groups, resolve_groups


def same(position: int, *entities: str) -> Decision:
    return Decision(position, "same", entities)


def different(position: int, *entities: str) -> Decision:
    return Decision(position, "different", entities)


def apart(position: int, entity: str) -> Decision:
    return Decision(position, "apart", (entity,))


def outcome(equal: list[str], *decisions: Decision) -> set[str]:
    """Groups written as the sorted letters of their members."""
    return {"".join(each) for each in resolve_groups(equal, decisions).members.values()}


def test_equal_keys_and_merges_join_also_in_a_circle() -> None:
    assert outcome(["ab"]) == {"ab"}
    assert outcome(["ab"], same(1, "b", "c"), same(2, "c", "d"), same(3, "d", "a")) == {"abcd"}


def test_a_rejection_beats_equal_keys_and_the_newer_decision_beats_the_older() -> None:
    assert outcome(["ab"], different(1, "a", "b")) == set()
    assert outcome([], same(1, "a", "b"), different(2, "a", "b")) == set()
    assert outcome([], different(1, "a", "b"), same(2, "a", "b")) == {"ab"}


def test_what_newer_decisions_imply_beats_an_older_rejection() -> None:
    """That a is c follows from what was accepted later; the rejection is told as overruled."""
    found = resolve_groups([], [different(1, "a", "c"), same(2, "a", "b"), same(3, "b", "c")])
    assert found == Groups(dict.fromkeys("abc", ("a", "b", "c")), frozenset({1}))
    found = resolve_groups([], [same(1, "a", "b"), same(2, "b", "c"), different(3, "a", "c")])
    assert found == Groups(dict.fromkeys("bc", ("b", "c")), frozenset({1}))


def test_of_three_with_equal_keys_two_are_kept_apart() -> None:
    assert outcome(["abc"], different(1, "b", "a")) == {"ac"}


def test_a_split_cuts_what_is_older_and_nothing_newer() -> None:
    assert outcome(["abc"], apart(1, "a")) == {"bc"}
    assert outcome([], same(1, "a", "b", "c"), apart(2, "a")) == {"bc"}
    assert outcome(["abc"], apart(1, "a"), same(2, "a", "b")) == {"abc"}
    assert outcome([], same(1, "a", "b"), apart(2, "a"), apart(3, "a"), same(4, "a", "c")) == {"ac"}


def test_a_merge_of_many_with_one_rejected_keeps_the_others() -> None:
    found = resolve_groups([], [same(1, "a", "b", "c", "d"), different(2, "c", "d")])
    assert found.members["a"] == ("a", "b", "c")
    assert "d" not in found.members
    assert found.overruled == {1}


def test_the_order_of_reading_does_not_show() -> None:
    chance = random.Random(3)
    letters = "abcdefghijkl"
    equal = ["abc", "de", "fgh", "kl"]
    for _ in range(20):
        decisions = [
            chance.choice([same, different])(position, *chance.sample(letters, 2)) for position in range(1, 14)
        ]
        decisions += [same(20, *chance.sample(letters, 4)), apart(chance.randrange(30, 40), chance.choice(letters))]
        expected = resolve_groups(equal, decisions)
        for _ in range(10):
            chance.shuffle(decisions)
            chance.shuffle(equal)
            shuffled = ["".join(chance.sample(each, len(each))) for each in equal]
            assert resolve_groups(shuffled, decisions + decisions[:3]) == expected
