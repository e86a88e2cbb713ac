"""Vectors in 8 bits: off by no more than is told, so that nothing that is among the best is passed over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from query_api.index.text.vectors import BATCH_ROWS, Int8Vectors


def unit_rows(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 1e-6)


@given(arrays(np.float64, (9, 16), elements=st.floats(-1, 1)))
def test_a_product_is_max_error_no_more_than_is_told(matrix: NDArray[np.float64]) -> None:
    rows = unit_rows(matrix)
    asked = Int8Vectors.quantise(rows[:1])
    quantised = Int8Vectors.quantise(rows[1:].astype(np.float32))
    products = quantised.products(asked, 0, 8)
    assert np.abs(products - rows[1:] @ rows[0]).max() <= quantised.max_error(asked) + 1e-6


def test_parts_of_a_table_are_what_they_are_in_the_whole() -> None:
    rows = unit_rows(np.random.default_rng(0).standard_normal((BATCH_ROWS + 3, 8)))
    whole, asked = Int8Vectors.quantise(rows), Int8Vectors.quantise(rows[:1])
    joined = Int8Vectors.quantise(rows[:5]).concat(Int8Vectors.quantise(rows[5:]))
    assert np.array_equal(joined.rows, whole.rows)
    assert joined.error == whole.error
    assert np.array_equal(whole.products(asked, 2, 9), whole.products(asked, 0, len(rows))[2:9])
    wanted = np.arange(len(rows)) % 2 == 0
    assert np.array_equal(whole.filter(wanted).products(asked, 1, 3), whole.products(asked, 0, 5)[[2, 4]])


@pytest.mark.parametrize("rows", [np.zeros((0, 4)), np.zeros((2, 4))])
def test_nothing_and_zeros_lose_nothing(rows: NDArray[np.float64]) -> None:
    quantised = Int8Vectors.quantise(rows)
    assert quantised.error == 0.0
    assert quantised.products(Int8Vectors.quantise(np.eye(4)[:1]), 0, len(rows)).tolist() == [0.0] * len(rows)
