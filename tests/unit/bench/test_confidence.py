"""Numbers fitted to hits whose odds are known."""

import math

import numpy as np
import pytest

from query_api.judging.labelled import LabelledCollection, LabelledDocument, Question
from query_api.searching.results.confidence import FEATURES
from tests.bench.confidence import Labelled, fit, left_out, without_answer


def hits(copies: int, *, right_far: int = 1, right_near: int = 3) -> Labelled:
    """Of four hits with cosine 0 `right_far` are relevant, of four with cosine 1 `right_near`."""
    features = np.zeros((8 * copies, len(FEATURES)))
    features[4 * copies :, FEATURES.index("cosine")] = 1.0
    relevant = np.array([1.0] * right_far + [0.0] * (4 - right_far))
    near = np.array([1.0] * right_near + [0.0] * (4 - right_near))
    features[:, FEATURES.index("first")] = 1.0
    return Labelled(features, np.concatenate([np.tile(relevant, copies), np.tile(near, copies)]))


def test_log_odds_are_found_again() -> None:
    way = fit(hits(50))
    assert way.intercept == pytest.approx(-math.log(3), abs=0.02)
    assert way.coefficients["cosine"] == pytest.approx(2 * math.log(3), abs=0.04)
    assert way.coefficients["held"] == 0.0


def test_a_collection_is_judged_by_what_the_others_teach() -> None:
    empty = Labelled(np.zeros((0, len(FEATURES))), np.zeros(0))
    alike = left_out({"a": hits(50), "b": hits(50)}, {"a": empty, "b": empty})
    assert alike["all"] == pytest.approx(0.0, abs=0.01)
    differing = left_out({"a": hits(50), "b": hits(50, right_far=2, right_near=4)}, {"a": empty, "b": empty})
    assert differing["a"] == pytest.approx(0.25, abs=0.02)


def test_what_nothing_answers_is_strange_or_strange_by_name_or_near() -> None:
    questions = tuple(Question(id=f"q{at}", text=f"Question {at}?") for at in range(6))
    labelled = LabelledCollection(
        name="own",
        split="dev",
        documents=(
            LabelledDocument(id="a|b", title="Blue Weir"),
            LabelledDocument(id="c", title="one two three four 5"),
        ),
        questions=questions,
        judgements={each.id: {"a|b": 1, "c": 0} for each in questions},
    )
    strange = tuple(Question(id=f"s{at}", text=f"What else {at}?") for at in range(9))
    asked = without_answer(labelled, questions, strange)
    assert [each.text for each in asked] == [
        "What else 0?",
        "What else 4?",
        "What else 2 Blue Weir?",
        "What else 6 Blue Weir?",
        "Question 0?",
        "Question 3?",
    ]
    assert not any(each.grades for each in asked)
    assert asked[0].request("hybrid", "own-1").filter == ()
    assert [str(each) for each in asked[-1].request("hybrid", "own-1").filter] == [r"document!=a\|b"]
