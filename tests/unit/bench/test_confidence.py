"""Numbers fitted to hits whose odds are known."""

import math

import numpy as np
import pytest

from query_api.evaluation.datasets import LabelledCollection, LabelledDocument, Question
from query_api.retrieval.confidence import FEATURES
from tests.bench.confidence import Asked, Labelled, fit, left_out, strangers_to


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
