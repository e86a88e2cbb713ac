"""Numbers fitted to hits whose odds are known."""

import math

import numpy as np
import pytest

from query_api.evaluation.datasets import LabelledCollection, LabelledDocument, Question
from query_api.retrieval.confidence import FEATURES
from tests.bench.confidence import Asked, Judged, Labelled, errors_of, fit, left_out, strangers_to, words_of


def hits(copies: int, *, right_far: int = 1, right_near: int = 3, documents: int = 300) -> Labelled:
    """Of four hits with similarity 0 `right_far` are relevant, of four with similarity 1 `right_near`."""
    features = np.zeros((8 * copies, len(FEATURES)))
    features[4 * copies :, FEATURES.index("similarity")] = 1.0
    relevant = np.array([1.0] * right_far + [0.0] * (4 - right_far))
    near = np.array([1.0] * right_near + [0.0] * (4 - right_near))
    features[:, FEATURES.index("first")] = 1.0
    answers = np.concatenate([np.tile(relevant, copies), np.tile(near, copies)])
    return Labelled(features, answers, np.ones(len(answers), dtype=np.bool_), np.full(len(answers), documents))


def test_log_odds_are_found_again() -> None:
    way = fit([hits(50)])
    assert way.intercept == pytest.approx(-math.log(3), abs=0.02)
    assert way.coefficients["similarity"] == pytest.approx(2 * math.log(3), abs=0.04)
    assert way.coefficients["held"] == 0.0


def test_every_collection_counts_the_same_however_large() -> None:
    few, many = hits(10, right_far=3, right_near=3), hits(500, right_far=1, right_near=1)
    assert fit([few, many]).predict(np.zeros((1, len(FEATURES)))) == pytest.approx([0.5], abs=0.02)


def test_a_collection_is_judged_by_what_the_others_teach() -> None:
    assert errors_of(left_out({"a": hits(50), "b": hits(50)}))["first"] == pytest.approx(0.0, abs=0.01)
    differing = errors_of(left_out({"folder-a": hits(50), "b": hits(50, right_far=2, right_near=4)}))
    assert differing["folder-a"] == differing["first_of_folders"] == pytest.approx(0.25, abs=0.02)


def test_collections_are_measured_by_size_beside_their_names() -> None:
    differing = errors_of(left_out({"a": hits(50, documents=15), "b": hits(50, right_far=2, right_near=4)}))
    assert differing["first_of_up_to_20_documents"] == differing["a"] == pytest.approx(0.25, abs=0.02)
    assert differing["first_of_over_200_documents"] == differing["b"]
    assert "first_of_up_to_10_documents" not in differing


def test_words_are_measured_by_what_they_promise() -> None:
    features = np.zeros((6, len(FEATURES)))
    features[[0, 1, 2, 4], FEATURES.index("first")] = 1.0
    right = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    found = Labelled(features, right, np.array([True, True, False, False, True, True]), np.array([300] * 4 + [15] * 2))
    assert words_of(Judged(found, np.array([0.9, 0.5, 0.1, 0.9, 0.1, 0.1]))) == {
        "likely_right": 0.5,
        "unlikely_wrong": round(2 / 3, 4),
        "right_first_not_unlikely": 1.0,
        "unanswered_first_unlikely": 1.0,
        "unlikely_answers_wrong": 0.0,
        "unlikely_answers_of_up_to_20_documents_wrong": 0.0,
    }


def test_strangers_mostly_name_a_short_title_of_the_collection() -> None:
    titles = ["Blue Weir", "one two three four 5", None, "Mill"]
    labelled = LabelledCollection(
        name="own",
        split="dev",
        documents=tuple(LabelledDocument(id=str(at), title=title) for at, title in enumerate(titles)),
        questions=(),
        judgements={},
    )
    foreign = tuple(Question(id=f"s{at}", text=f"What else {at}?") for at in range(12))
    assert strangers_to(labelled, foreign, 6) == [
        Asked("What else 0?"),
        Asked("What else 2 Blue Weir?"),
        Asked("What else 4 Blue Weir?"),
        Asked("What else 6 Mill?"),
        Asked("What else 8 Mill?"),
        Asked("What else 10?"),
    ]
