"""Edges in compressed sparse rows are found from both ends, be they many or few."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_api.index.graph.csr import (
    CompressedRows,
    Edges,
    EncodedStrings,
    FoundEdges,
    WordEncodedStrings,
    entries_of,
    row_pointers,
    smallest_integers,
)

N = 40
EDGES = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=120).map(sorted)


def of_node(reached: FoundEdges, node: int) -> list[tuple[int, int]]:
    mine = reached.query_index == node
    return list(zip(reached.edges[mine].tolist(), reached.others[mine].tolist(), strict=True))


@given(EDGES)
def test_edges_are_found_from_both_ends_parallel_ones_too(pairs: list[tuple[int, int]]) -> None:
    sources, targets = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    edges, every = Edges.build(sources, targets, N, N), np.arange(N)
    leaving, entering = edges.leaving(every), edges.entering(every)
    for node in range(N):
        assert of_node(leaving, node) == [(at, target) for at, (source, target) in enumerate(pairs) if source == node]
        assert of_node(entering, node) == [(at, source) for at, (source, target) in enumerate(pairs) if target == node]
    assert list(zip(*(ends.tolist() for ends in edges.ends()), strict=True)) == pairs
    assert len(edges) == len(pairs)


@pytest.mark.parametrize("n_rows", [1, 16, 50, 1_000])
def test_rows_and_their_entries_find_each_other_whether_most_rows_are_empty_or_not(n_rows: int) -> None:
    rows = np.sort(np.random.default_rng(n_rows).integers(0, n_rows, 40))
    compressed, wanted = CompressedRows.build(rows, n_rows), np.array([n_rows - 1, 0, rows[7], n_rows // 2, rows[7]])
    assert (compressed.filled is not None) == (n_rows == 1_000)
    which, entries = compressed.entries(wanted)
    assert [entries[which == at].tolist() for at in range(5)] == [
        np.flatnonzero(rows == row).tolist() for row in wanted
    ]
    assert compressed.of_entries(np.arange(40)).tolist() == rows.tolist()


def test_entries_come_row_after_row_as_asked() -> None:
    pointers = row_pointers(np.array([2, 0, 1]))
    assert pointers.tolist() == [0, 2, 2, 3]
    which, positions = entries_of(pointers, np.array([2, 1, 0]))
    assert (which.tolist(), positions.tolist()) == ([0, 2, 2], [2, 0, 1])


def test_a_row_of_few_entries_takes_no_pointer_for_each_empty_row() -> None:
    assert CompressedRows.build(np.array([5, 900_000]), 1_000_000).nbytes == 4 * (3 + 2)


@pytest.mark.parametrize(("kinds", "width"), [(1, 1), (256, 1), (257, 2), (40_000, 2)])
def test_a_column_of_few_strings_takes_few_bytes_a_row(kinds: int, width: int) -> None:
    texts = [f"kind {at % kinds}" for at in range(50_000)]
    codes = EncodedStrings.build(pa.array(texts), np.arange(len(texts))[::-1])
    rows = np.array([0, 1, len(texts) - 1])
    assert codes.of(rows) == codes.texts(rows).to_pylist() == [texts[-1], texts[-2], texts[0]]
    assert codes[0] == texts[-1]
    assert codes.codes.nbytes == width * len(texts)


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
