"""Dictionary-encoded columns give back what they were built of, be the different values few or many."""

import numpy as np
import pyarrow as pa
import pytest

from query_api.index.graph.dictionaries import EncodedStrings, WordEncodedStrings, smallest_integers


@pytest.mark.parametrize(("kinds", "width"), [(1, 1), (256, 1), (257, 2), (40_000, 2)])
def test_a_column_of_few_strings_takes_few_bytes_a_row(kinds: int, width: int) -> None:
    texts = [f"kind {at % kinds}" for at in range(50_000)]
    codes = EncodedStrings.build(pa.array(texts), np.arange(len(texts))[::-1])
    rows = np.array([0, 1, len(texts) - 1])
    assert codes.of(rows) == codes.texts(rows).to_pylist() == [texts[-1], texts[-2], texts[0]]
    assert codes[0] == texts[-1]
    assert codes.nbytes == width * len(texts)


@pytest.mark.parametrize("names", [["", "a", " a  b ", "李 \x00 émile", "a"], []])
def test_names_of_any_words_and_blanks_are_read_as_they_were(names: list[str]) -> None:
    phrases = WordEncodedStrings.build(pa.array(names, pa.string()))
    backwards = np.arange(len(names))[::-1]
    assert phrases.of(backwards) == phrases.texts(backwards).to_pylist() == names[::-1]


@pytest.mark.parametrize("n_words", [256, 65_536])
def test_the_last_word_of_a_full_type_is_found(n_words: int) -> None:
    names = [f"w{at} w{n_words - 1 - at}" for at in range(n_words)]
    assert WordEncodedStrings.build(pa.array(names)).of(np.arange(n_words)) == names


def test_words_that_recur_take_their_place_once() -> None:
    names = [f"archduchess {second} of {last}" for second in range(20) for last in range(20)]
    assert WordEncodedStrings.build(pa.array(names)).nbytes < pa.array(names).nbytes / 2


@pytest.mark.parametrize(("largest", "width"), [(0, 1), (255, 1), (256, 2), (70_000, 4)])
def test_numbers_take_the_bytes_of_the_largest(largest: int, width: int) -> None:
    numbers = smallest_integers(np.array([0, largest]))
    assert (numbers.tolist(), numbers.nbytes) == ([0, largest], 2 * width)
    assert smallest_integers(numbers[:0]).tolist() == []


def test_numbers_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more, not -1"):
        smallest_integers(np.array([0, -1]))
