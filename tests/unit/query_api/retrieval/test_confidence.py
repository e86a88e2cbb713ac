"""How likely hits are relevant: features and probabilities by hand, and the numbers that come with the program."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from query_api.retrieval.comparison import CandidateScores
from query_api.retrieval.confidence import (
    FEATURES,
    Evidence,
    FittedJudge,
    FittedWay,
    fitted_judge,
    with_confidence,
)
from query_api.retrieval.fusion import RankedPassage
from schemas.ids import DocumentKey

COMPARED = CandidateScores(
    {"a": 0, "b": 1},
    np.array([0.5, 0.25]),
    np.array([0.0, 0.0]),
    np.array([[True, False, False], [False, True, False]]),
)
IDF = np.array([2.0, 1.0, 1.0])


class RecordingJudge:
    """Says .5 of everything and keeps what it was asked."""

    def __init__(self) -> None:
        self.way = ""
        self.features: NDArray[np.float64] = np.zeros((0, 0))

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64]:
        self.way, self.features = way, features
        return np.full(len(features), 0.5)


def place(name: str) -> RankedPassage:
    return RankedPassage(name, None, 1.0, {}, {}, DocumentKey("c", name))


def evidence(*, has_vector: bool = True, decided: frozenset[str] = frozenset()) -> Evidence:
    return Evidence(COMPARED, IDF, 0.5, {"b": 0.5}, has_vector=has_vector, decided=decided)


def test_features_mean_the_same_in_any_collection() -> None:
    judge = RecordingJudge()
    with_confidence([place("a"), place("b")], "hybrid", evidence(), judge)
    assert judge.way == "hybrid"
    assert FEATURES == ("cosine", "held", "together", "graph", "first", "log_rank")
    assert judge.features.tolist() == [[0.5, 0.5, 0.75, 0.0, 1.0, 0.0], [0.25, 0.25, 0.75, 0.25, 0.0, math.log(2)]]


def test_a_question_without_a_vector_is_judged_by_numbers_of_its_own() -> None:
    judge = RecordingJudge()
    with_confidence([place("a")], "graph", evidence(has_vector=False), judge)
    assert judge.way == "graph_without_vector"
    with_confidence([place("a")], "keyword", evidence(has_vector=False), judge)
    assert judge.way == "keyword"


def test_nothing_is_told_of_what_was_not_compared_or_stands_where_its_fields_put_it() -> None:
    told = with_confidence(
        [place("a"), place("new"), place("b")], "hybrid", evidence(decided=frozenset({"b"})), RecordingJudge()
    )
    assert [each.confidence for each in told] == [0.5, None, None]


def test_a_place_is_as_likely_on_a_short_page_as_on_a_long_one() -> None:
    compared = CandidateScores(
        {name: row for row, name in enumerate("abcd")},
        np.full(4, 0.5),
        np.zeros(4),
        np.eye(4, dtype=np.bool_),
    )
    known = Evidence(compared, np.ones(4), 0.5, {}, has_vector=True)
    short = with_confidence([place(name) for name in "abc"], "hybrid", known, fitted_judge())
    long = with_confidence([place(name) for name in "abcd"], "hybrid", known, fitted_judge())
    assert long[:3] == short


def test_probabilities_are_logistic() -> None:
    way = FittedWay(-1.0, {"cosine": 2.0, "log_rank": -1.0})
    features = np.array([[0.5, 0, 0, 0, 0, 0], [0.5, 0, 0, 0, 0, math.log(3)]])
    assert way.predict(features).tolist() == pytest.approx([0.5, 0.25])


def test_another_embedding_model_leaves_only_what_does_not_look_at_cosines() -> None:
    ways = {"hybrid": FittedWay(0.0, {"cosine": 1.0}), "keyword": FittedWay(0.0, {"cosine": 0.0, "held": 1.0})}
    judge = FittedJudge("2026-01-01", "small", {}, {}, ways)
    assert judge.for_model("small") is judge
    other = judge.for_model("large")
    assert other.probabilities("hybrid", np.zeros((1, 6))) is None
    assert other.probabilities("keyword", np.zeros((1, 6))) is not None
    assert with_confidence([place("a")], "hybrid", evidence(), other)[0].confidence is None


def test_the_numbers_that_come_with_the_program_keep_what_they_promise() -> None:
    judge = fitted_judge()
    assert set(judge.ways) == set(judge.calibration)
    assert {"hybrid", "vector", "keyword", "graph", "graph_rerank"} <= set(judge.ways)
    for name, way in judge.ways.items():
        assert set(way.coefficients) == set(FEATURES), name
        assert judge.calibration[name]["all"] <= 0.05, name
    features = [[0.7, 1.0, 1.0, 0.6, 1.0, 0.0], [0.1, 0.1, 0.3, 0.0, 1.0, 0.0], [0.4, 0.3, 0.4, 0.6, 1.0, 0.0]]
    best, unlike, only_named = judge.ways["hybrid"].predict(np.array(features))
    assert best > 0.8
    assert unlike < 0.1  # first of its list, and yet hardly like the question
    assert only_named < 0.5  # of what the question names, and the question's other words stand nowhere
