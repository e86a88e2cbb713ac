"""Findings by kind of question, and what they are held against."""

import pytest

from query_api.evaluation.approaches import approaches_named
from query_api.evaluation.datasets import Question
from query_api.evaluation.judgement import kinds

QUESTIONS = [
    Question(id="1", text="a", metadata={"kind": "exact"}),
    Question(id="2", text="b", metadata={"kind": "multi-hop"}),
    Question(id="3", text="c", metadata={"kind": "multi-hop"}),
    Question(id="4", text="d"),
]
VALUES = {
    "hybrid": {"R@5": [1.0, 1.0, 1.0, 0.0]},
    "vector": {"R@5": [1.0, 0.0, 0.0, 1.0]},
    "keyword": {"R@5": [0.0, 1.0, 0.0, 1.0]},
}


def test_each_kind_has_its_own_means_and_its_own_best_channel() -> None:
    exact, hops = kinds(QUESTIONS, approaches_named(list(VALUES)), VALUES)
    assert (exact.kind, exact.questions, hops.kind, hops.questions) == ("exact", 1, "multi-hop", 2)
    assert hops.measures["keyword"]["R@5"].mean == 0.5
    [against] = hops.against_best
    assert (against.ours, against.theirs, against.difference.mean) == ("hybrid", "keyword", 0.5)
    assert exact.against_best[0].theirs == "vector"


@pytest.mark.parametrize("names", [["vector", "keyword"], ["hybrid"]])
def test_a_channel_is_not_held_against_channels_nor_anything_against_none(names: list[str]) -> None:
    found = kinds(QUESTIONS, approaches_named(names), {name: VALUES[name] for name in names})
    assert all(kind.against_best == () for kind in found)


def test_questions_without_a_kind_make_none() -> None:
    assert kinds(QUESTIONS[3:], approaches_named(["hybrid"]), {"hybrid": {"R@5": [1.0]}}) == ()
