"""How likely hits are relevant: features and probabilities by hand, and the numbers that come with the program."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from query_api.index.text.vectors import CosineSpread
from query_api.retrieval.confidence import (
    FEATURES,
    Evidence,
    ModeCalibration,
    fitted_calibration,
    with_confidence,
)
from query_api.retrieval.exact_scores import CandidateScores
from query_api.retrieval.fusion import RankedPassage
from schemas.hits import likelihood_of
from schemas.ids import DocumentKey

COMPARED = CandidateScores(
    {"a": 0, "b": 1, "c": 2},
    np.array([0.5, 0.25, 0.4]),
    np.array([0.25, 0.0, 1.0]),
    np.array([[True, False, False], [False, True, False], [True, True, False]]),
)
SPREAD = CosineSpread(0.1, 0.1, 256)
IDF = np.array([2.0, 1.0, 1.0])


class RecordingCalibration:
    """Says .5 of everything and keeps what it was asked."""

    def __init__(self) -> None:
        self.way = ""
        self.features: NDArray[np.float64] = np.zeros((0, 0))

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64]:
        self.way, self.features = way, features
        return np.full(len(features), 0.5)


class Saying:
    """Says these, one after the other."""

    def __init__(self, *probabilities: float) -> None:
        self.said = np.array(probabilities)

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64]:
        del way
        return self.said[: len(features)]


def place(name: str, document: str = "") -> RankedPassage:
    return RankedPassage(name, None, 1.0, {}, {}, DocumentKey("c", document or name))


def evidence(spread: CosineSpread | None = SPREAD) -> Evidence:
    return Evidence(COMPARED, IDF, 0.5, {"b": 0.5}, spread, {"b": 0.75})


def features_of(*ranked: RankedPassage) -> dict[str, list[float]]:
    calibration = RecordingCalibration()
    with_confidence(ranked, "hybrid", evidence(), calibration)
    return {
        name: [round(value, 4) for value in calibration.features[:, at].tolist()] for at, name in enumerate(FEATURES)
    }


def test_features_mean_the_same_in_any_collection() -> None:
    assert features_of(place("a"), place("b")) == {
        "similarity": [4.0, 1.5],
        "words": [0.5, 0.0],
        "held": [0.5, 0.25],
        "graph": [0.0, 0.25],
        "lead": [0.04, -0.04],  # .5 + .16 x .25 against .25 + .5 x .5
        "fields": [0.0, 0.75],
        "first": [1.0, 0.0],
        "log_rank": [0.0, round(math.log(2), 4)],
    }


def test_lead_is_before_the_next_document_not_the_next_passage() -> None:
    assert features_of(place("c", "one"), place("a", "one"), place("b"))["lead"] == [0.06, -0.02, -0.06]
    assert features_of(place("c", "one"), place("a", "one"))["lead"] == [0.02, -0.02]
    assert features_of(place("c"))["lead"] == [0.56]


def test_alike_texts_have_no_similarity_out_of_proportion() -> None:
    calibration = RecordingCalibration()
    with_confidence([place("a")], "hybrid", evidence(CosineSpread(0.49, 0.0, 256)), calibration)
    assert calibration.features[0, FEATURES.index("similarity")] == pytest.approx(0.2)


def test_question_without_a_vector_is_judged_by_numbers_of_its_own() -> None:
    calibration = RecordingCalibration()
    with_confidence([place("a")], "graph", evidence(None), calibration)
    assert calibration.way == "graph_without_vector"
    with_confidence([place("a")], "keyword", evidence(None), calibration)
    assert calibration.way == "keyword"


def test_what_was_not_compared_has_no_confidence() -> None:
    judged = with_confidence([place("a"), place("new"), place("b")], "hybrid", evidence(), RecordingCalibration())
    assert [each.confidence for each in judged] == [0.5, None, 0.5]


def test_no_hit_is_much_surer_than_one_before_it() -> None:
    judged = with_confidence([place("a"), place("b"), place("c")], "hybrid", evidence(), Saying(0.4, 0.2, 0.9))
    assert [each.confidence for each in judged] == [0.4, 0.2, 0.25]


def test_a_place_is_as_likely_on_a_short_page_as_on_a_long_one() -> None:
    compared = CandidateScores(
        {name: row for row, name in enumerate("abcd")},
        np.full(4, 0.5),
        np.zeros(4),
        np.eye(4, dtype=np.bool_),
    )
    known = Evidence(compared, np.ones(4), 0.5, {}, SPREAD)
    short = with_confidence([place(name) for name in "abc"], "hybrid", known, fitted_calibration())
    long = with_confidence([place(name) for name in "abcd"], "hybrid", known, fitted_calibration())
    assert long[:3] == short


def test_probabilities_are_logistic() -> None:
    way = ModeCalibration(-1.0, {"held": 2.0, "log_rank": -1.0})
    features = np.zeros((2, len(FEATURES)))
    features[:, FEATURES.index("held")] = 0.5
    features[1, FEATURES.index("log_rank")] = math.log(3)
    assert way.predict(features).tolist() == pytest.approx([0.5, 0.25])


def test_the_numbers_that_come_with_the_program_keep_what_they_promise() -> None:
    calibration = fitted_calibration()
    assert set(calibration.ways) == set(calibration.errors)
    assert {"hybrid", "vector", "keyword", "graph", "graph_rerank"} <= set(calibration.ways)
    for name, way in calibration.ways.items():
        assert set(way.coefficients) == set(FEATURES), name
        assert calibration.errors[name]["all"] <= 0.05, name
    assert calibration.errors["hybrid"]["first"] <= 0.08
    assert calibration.errors["hybrid"]["first_of_folders"] <= 0.1
    by_size = [error for name, error in calibration.errors["hybrid"].items() if name.startswith("first_of_up_to_")]
    assert len(by_size) == 5
    assert max(by_size) <= 0.1
    vain = {name: share for name, share in calibration.errors["hybrid"].items() if name.startswith("unlikely_answers")}
    assert len(vain) == 7  # of all, and of each size
    assert min(vain.values()) >= 0.9

    def first(**values: float) -> float:
        features = np.array([[{"first": 1.0, **values}.get(name, 0.0) for name in FEATURES]])
        return float(calibration.ways["hybrid"].predict(features)[0])

    assert likelihood_of(first(similarity=7, words=1.7, held=1, graph=0.5, lead=0.5)) == "likely"
    assert likelihood_of(first(similarity=1, words=0.2, held=0.1)) == "unlikely"  # and yet the first of its list
    assert first(similarity=3, words=0.5, held=0.3, graph=0.6) < 0.6  # named, and the question's words stand nowhere
