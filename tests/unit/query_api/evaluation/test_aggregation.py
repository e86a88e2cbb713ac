"""Results by kind of question, comparisons, and which approaches have figures."""

import pytest

from query_api.evaluation.aggregation import kind_results, not_measured
from query_api.evaluation.approaches import APPROACHES, approaches_named
from query_api.evaluation.datasets import Question
from query_api.evaluation.results import Answer
from schemas.errors import Failure

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
    exact, hops = kind_results(QUESTIONS, approaches_named(list(VALUES)), VALUES)
    assert (exact.kind, exact.questions, hops.kind, hops.questions) == ("exact", 1, "multi-hop", 2)
    assert hops.measures["keyword"]["R@5"].mean == 0.5
    [against] = hops.against_best
    assert (against.ours, against.theirs, against.difference.mean) == ("hybrid", "keyword", 0.5)
    assert exact.against_best[0].theirs == "vector"


@pytest.mark.parametrize("names", [["vector", "keyword"], ["hybrid"]])
def test_a_channel_is_not_held_against_channels_nor_anything_against_none(names: list[str]) -> None:
    found = kind_results(QUESTIONS, approaches_named(names), {name: VALUES[name] for name in names})
    assert all(kind.against_best == () for kind in found)


def test_questions_without_a_kind_make_none() -> None:
    assert kind_results(QUESTIONS[3:], approaches_named(["hybrid"]), {"hybrid": {"R@5": [1.0]}}) == ()


def answer(*missing: str) -> Answer:
    return Answer(
        question_id="q",
        documents=(),
        scores=(),
        confidences=(),
        stages={},
        first_hit_seconds=None,
        seconds=0.1,
        failed_channels=dict.fromkeys(missing, "It is away."),
    )


def test_a_few_answers_without_their_step_are_told_elsewhere_and_most_are_not_the_approach() -> None:
    both = approaches_named(["hybrid", "reranked"])
    half = {"hybrid": [answer()] * 4, "reranked": [answer("rerank"), answer("rerank"), answer(), answer()]}
    assert not_measured(both, half) == {}
    most = half | {"reranked": [answer("rerank")] * 3 + [answer()]}
    assert not_measured(both, most) == {"reranked": "3 of 4 answers came without its step 'rerank': It is away."}


def test_a_channel_that_an_approach_does_without_costs_it_nothing() -> None:
    asked = approaches_named(["hybrid", "keyword", "rrf-2", "weighted"])
    answers = {approach.name: [answer("vector")] for approach in asked}
    assert list(not_measured(asked, answers)) == ["rrf-2", "weighted"]


def test_each_single_channel_needs_itself() -> None:
    assert {each.name: each.needs for each in APPROACHES.values() if each.single} == {
        name: (name,) for name in ("vector", "keyword", "structured", "graph")
    }


def test_nothing_measured_is_no_evaluation() -> None:
    with pytest.raises(Failure, match="No approach was measured"):
        not_measured(approaches_named(["vector"]), {"vector": [answer("vector")]})
