"""Turns: where neighbouring sentences differ in meaning."""

import numpy as np
import pytest
from numpy.typing import NDArray

from indexer.chunking.semantic import topic_boundaries


def about(*subjects: int, dimension: int = 8, noise: float = 0.0) -> NDArray[np.float32]:
    """A sentence vector for each subject, equal for equal ones but for noise."""
    made = np.eye(dimension)[list(subjects)]
    made = made + noise * np.random.default_rng(7).normal(size=made.shape)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def test_a_turn_is_where_one_subject_follows_another() -> None:
    assert topic_boundaries([9], about(0, 0, 0, 1, 1, 1, 2, 2, 2)) == [3, 6]
    assert topic_boundaries([9], about(0, 0, 0, 1, 1, 1, 2, 2, 2, noise=0.1)) == [3, 6]


def test_a_text_that_stays_with_its_subject_is_not_cut() -> None:
    assert topic_boundaries([6], about(0, 0, 0, 0, 0, 0)) == []
    assert topic_boundaries([6], about(0, 0, 0, 0, 0, 0, noise=0.02)) == []


def test_the_border_of_a_section_is_no_turn_and_numbers_go_on_behind_it() -> None:
    assert topic_boundaries([3, 3], about(0, 0, 0, 1, 1, 1)) == []
    assert topic_boundaries([3, 6], about(4, 4, 4, 0, 0, 0, 1, 1, 1)) == [6]


def test_the_depth_counts_both_sides_as_worked_by_hand() -> None:
    """Gaps of a a b b b: cos 1/√2 over a|a b… The similarities are .707, 0, .707, 1: depths 0, .707 + 1, 0, 0; mean
    .427, deviation .739: the bound is .797."""
    assert topic_boundaries([5], about(0, 0, 1, 1, 1)) == [2]


def test_no_or_one_sentence_has_no_turn() -> None:
    assert topic_boundaries([], np.empty((0, 8), np.float32)) == []
    assert topic_boundaries([1, 0, 1], about(0, 1)) == []


def test_every_sentence_needs_its_vector() -> None:
    with pytest.raises(ValueError, match="3 sentences need as many"):
        topic_boundaries([3], about(0, 1))
