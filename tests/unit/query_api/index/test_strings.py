"""Strings read straight from Arrow's memory are those that Arrow gives."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_api.index.strings import StringLists, Strings, one_array

TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.lists(TEXTS, max_size=8), st.integers(0, 8), st.sampled_from([pa.string(), pa.large_string()]))
def test_rows_of_an_array_or_of_a_part_of_it_read_as_arrow_has_them(
    texts: list[str], begin: int, kind: pa.DataType
) -> None:
    array = pa.array(texts, kind).slice(begin)
    strings = Strings(array)
    backwards = np.arange(len(array))[::-1]
    assert [strings[row] for row in range(len(strings))] == array.to_pylist() == texts[begin:]
    assert strings.of(backwards) == texts[begin:][::-1]


@given(st.lists(st.lists(TEXTS, max_size=3), max_size=6), st.integers(0, 6))
def test_lists_of_strings_too(lists: list[list[str]], begin: int) -> None:
    array = pa.array(lists, pa.list_(pa.string())).slice(begin)
    assert StringLists(array).of(np.arange(len(array))) == lists[begin:]


def test_a_column_in_pieces_is_read_as_one() -> None:
    column = pa.chunked_array([["a", "é"], [], ["ccc"]], pa.string())
    assert Strings(one_array(column)).of(np.array([2, 1, 0])) == ["ccc", "é", "a"]
    lists = pa.chunked_array([[["a"], []], [["b", "c"]]], pa.list_(pa.string()))
    assert StringLists(one_array(lists)).of(np.array([2, 1, 0])) == [["b", "c"], [], ["a"]]
    assert len(Strings(one_array(pa.chunked_array([], pa.string())))) == 0


def test_what_is_no_array_of_strings_is_refused() -> None:
    with pytest.raises(ValueError, match="without nulls"):
        Strings(pa.array(["a", None]))
    with pytest.raises(ValueError, match="without nulls"):
        Strings(pa.array([1]))
