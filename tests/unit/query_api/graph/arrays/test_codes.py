"""A column of few strings, also where they are not so few."""

import numpy as np
import pyarrow as pa
import pytest

from query_api.graph.arrays.packed import PADDING
from query_api.graph.arrays.texts import Codes


@pytest.mark.parametrize("kinds", [1, 3, 40_000])
def test_a_column_gives_back_what_it_was_built_of(kinds: int) -> None:
    texts = [f"kind {at % kinds}" for at in range(50_000)]
    order = np.arange(len(texts))[::-1]
    codes = Codes.build(pa.array(texts), order)
    last = np.array([0, 1, len(texts) - 1])
    assert codes.of(last) == [texts[-1], texts[-2], texts[0]]
    assert codes.texts(last).to_pylist() == codes.of(last)
    assert codes[0] == texts[-1]
    assert codes.nbytes - PADDING == {1: 0, 3: 12_500, 40_000: 100_000}[kinds], "no bit, 2 bits, 16 bits a row"
