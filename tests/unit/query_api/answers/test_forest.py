"""The shipped scorer fits the features, and its trees are walked to their leaves."""

import numpy as np
import pytest

from query_api.answers.features import FEATURES
from query_api.answers.forest import Forest, packaged_weights
from query_api.answers.refusal import SIGNS

STUMPS = Forest(
    roots=np.array([0, 3], dtype=np.int32),
    feature=np.array([1, -1, -1, -1], dtype=np.int16),
    threshold=np.array([0.5, 0, 0, 0], dtype=np.float32),
    left=np.array([1, 0, 0, 0], dtype=np.int32),
    right=np.array([2, 0, 0, 0], dtype=np.int32),
    values=np.array([[0, 0], [0.2, 0.4], [1.0, 0.0], [0.4, 0.6]], dtype=np.float16),
)


def test_a_row_goes_left_at_the_threshold_and_trees_are_averaged() -> None:
    found = STUMPS.predict(np.array([[9.0, 0.5], [0.0, 0.6]]))
    np.testing.assert_allclose(found, [[0.3, 0.5], [0.7, 0.3]], atol=1e-3)


def test_no_rows_are_no_scores() -> None:
    assert STUMPS.predict(np.zeros((0, 2))).shape == (0, 2)


def test_the_shipped_weights_are_of_these_features() -> None:
    weights = packaged_weights()
    assert weights.signs.shape == (len(SIGNS),)
    assert weights.forest.feature.max() < len(FEATURES)
    rows = np.random.default_rng(0).normal(size=(200, len(FEATURES)))
    scores = weights.forest.predict(rows)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert scores.std() > 0


SURE = {"confidence": 0.9, "mean_confidence": -1.0, "cosine": 0.5, "names_missing": 0.0, "best_hit": 1.0, "size": 5.0}


@pytest.mark.parametrize(
    "less", [{"confidence": 0.1}, {"mean_confidence": -4.0}, {"names_missing": 1.0}, {"best_hit": 0.2}, {"size": 9.0}]
)
def test_each_sign_says_less_of_an_answer(less: dict[str, float]) -> None:
    answered = packaged_weights().answered
    assert answered(np.array([(SURE | less)[name] for name in SIGNS])) < answered(
        np.array([SURE[name] for name in SIGNS])
    )
