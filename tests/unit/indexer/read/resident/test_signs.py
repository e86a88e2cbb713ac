"""Vectors by the signs of their components: how many differ, counted in words of bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from indexer.read.resident.signs import AT_ONCE, Signs


@given(st.integers(1, 300).flatmap(lambda width: arrays(np.float32, (6, width), elements=st.floats(-1, 1, width=32))))
def test_the_distance_is_the_number_of_components_whose_signs_differ(matrix: NDArray[np.float32]) -> None:
    told = Signs.of(matrix).distances(Signs.of(matrix[:1]), 0, 6)
    assert told.tolist() == [int(((row > 0) != (matrix[0] > 0)).sum()) for row in matrix]


@pytest.mark.parametrize("dimension", [384, 1_536])
def test_opposites_differ_in_all_components(dimension: int) -> None:
    """More than 8 bits can count."""
    matrix = np.ones((2, dimension), dtype=np.float32) * np.array([[1], [-1]], dtype=np.float32)
    assert Signs.of(matrix).distances(Signs.of(matrix[:1]), 0, 2).tolist() == [0, dimension]


def test_parts_of_a_table_are_what_they_are_in_the_whole() -> None:
    rows = np.random.default_rng(0).standard_normal((AT_ONCE + 3, 70))
    whole, asked = Signs.of(rows), Signs.of(rows[:1])
    joined = Signs.of(rows[:5]).followed_by(Signs.of(rows[5:]))
    assert np.array_equal(joined.words, whole.words)
    assert np.array_equal(whole.distances(asked, 2, 9), whole.distances(asked, 0, len(rows))[2:9])
    wanted = np.arange(len(rows)) % 2 == 0
    assert np.array_equal(whole.kept(wanted).distances(asked, 1, 3), whole.distances(asked, 0, 5)[[2, 4]])
    assert Signs.of(rows[:0]).distances(asked, 0, 0).shape == (0,)
