"""Which approaches have figures, by what their answers lack."""

import pytest

from query_api.evaluation.answers import Asked
from query_api.evaluation.approaches import APPROACHES, approaches_named
from query_api.evaluation.unavailable import not_measured
from schemas.errors import Failure


def answer(*missing: str) -> Asked:
    return Asked(
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
