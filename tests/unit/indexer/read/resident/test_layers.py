"""Layers stay few and mostly alive whatever is done to them, and what is done to one never shows in another."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from indexer.read.resident import layers as layers_module
from indexer.read.resident.layers import HEAP, Layer, Layers, best_rows
from schemas.ids import DocumentKey


@dataclass(frozen=True)
class Numbers:
    """The smallest content: a number a row."""

    values: NDArray[np.int64]

    def kept(self, rows: NDArray[np.bool_]) -> "Numbers":
        return Numbers(self.values[rows])

    def followed_by(self, other: "Numbers") -> "Numbers":
        return Numbers(np.concatenate([self.values, other.values]))


def key(number: int, collection: str = "c") -> DocumentKey:
    return DocumentKey(collection, str(number))


def layer(*keys: DocumentKey, first: int = 0) -> Layer[Numbers]:
    numbers = range(first, first + len(keys))
    return Layer.of([f"r{number}" for number in numbers], keys, Numbers(np.array(numbers)))


def contents(layers: Layers[Numbers]) -> list[tuple[DocumentKey, str, int]]:
    return sorted(
        (row_key, identifier, value)
        for each in layers.stack
        for row_key, identifier, value, live in zip(
            each.names.keys.tolist(),
            each.names.ids.tolist(),
            each.content.values.tolist(),
            each.live.tolist(),
            strict=True,
        )
        if live
    )


def test_a_document_goes_with_all_of_its_rows_and_leaves_the_others() -> None:
    older = Layers[Numbers]().with_layer(layer(key(1), key(1), key(2), key(3), key(3)))
    newer = older.without([key(1), key(3), key(9)])
    assert contents(newer) == [(key(2), "r2", 2)]
    assert newer.rows == 1
    assert older.rows == 5
    assert older.without([key(9)]).stack[0] is older.stack[0]


def test_rows_of_documents_are_kept_as_keys_not_spread_into_columns() -> None:
    made = layer(key(1), key(2))
    assert made.names.keys.shape == (2,)
    assert made.names.keys[1] == key(2)
    assert isinstance(made.names.keys[1], DocumentKey)


def test_nothing_can_be_added_and_taken_away() -> None:
    empty = Layers[Numbers]()
    assert empty.without([key(1)]) == empty.with_layer(layer()) == empty
    assert empty.rows == 0
    assert layer().names.spans == {}
    assert layer().in_collection("c").shape == (0,)


def test_a_collection_is_found_among_others_also_after_a_merge() -> None:
    both = Layers[Numbers]().with_layer(layer(key(1, "a"), key(1, "b"), key(1, "b")))
    both = both.with_layer(layer(key(2, "b"), key(2, "a"), first=3)).without([key(1, "b")])
    found = {
        name: sorted(value for each in both.stack for value in each.content.values[each.in_collection(name)].tolist())
        for name in ("a", "b", "none", None)
    }
    assert found == {"a": [0, 4], "b": [3], "none": [], None: [0, 3, 4]}


def test_states_stay_as_they_were_and_layers_stay_few_and_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents replaced at random for long: dead rows must not pile up in layers below the newest."""
    monkeypatch.setattr(layers_module, "LARGEST_MERGE", 40)
    chance = random.Random(5)
    documents = 400
    layers = Layers[Numbers]().with_layer(layer(*[key(number) for number in range(documents)]))
    current = {number: number for number in range(documents)}
    kept = []
    for turn in range(3_000):
        number = chance.randrange(documents)
        current[number] = documents + turn
        layers = layers.without([key(number)]).with_layer(layer(key(number), first=documents + turn))
        if turn % 500 == 0:
            kept.append((layers, contents(layers)))
        assert sum(len(each.live) for each in layers.stack) <= 2 * documents
        assert len(layers.stack) <= 2 * documents / 40 + 10
    assert contents(layers) == sorted((key(number), f"r{value}", value) for number, value in current.items())
    assert all(contents(old) == then for old, then in kept)


def test_rows_that_went_leave_no_memory_though_nothing_is_added() -> None:
    layers = Layers[Numbers]().with_layer(layer(*[key(number) for number in range(100)]))
    for number in range(99):
        layers = layers.without([key(number)])
    assert sum(len(each.live) for each in layers.stack) <= 2
    assert layers.without([key(99)]).stack == ()


@pytest.mark.parametrize(
    ("scores", "limit", "expected"),
    [
        ([3.0, 1.0, 2.0], 2, [0, 2]),
        ([1.0, 2.0, 1.0], 2, [0, 1, 2]),
        ([1.0, -np.inf], 5, [0]),
        ([-np.inf, -np.inf, -np.inf], 1, []),
        ([np.nan, 1.0], 5, [1]),
        ([], 3, []),
    ],
)
def test_the_best_rows_come_with_all_that_equal_the_last(scores: list[float], limit: int, expected: list[int]) -> None:
    assert best_rows(np.array(scores, dtype=np.float64), limit).tolist() == expected


@pytest.mark.parametrize("rows", [50, HEAP * 10, HEAP * 40 + 7])
@pytest.mark.parametrize("values", [2, 40, 100_000])
@pytest.mark.parametrize(("margin", "above"), [(0.0, -np.inf), (0.1, -np.inf), (0.0, 0.0), (0.1, 0.0)])
def test_many_rows_are_looked_through_as_few_are(rows: int, values: int, margin: float, above: float) -> None:
    """Whatever part of them is equal, or is nothing."""
    for seed in range(5):
        chance = np.random.default_rng(seed)
        scores = chance.integers(0, values, rows) / values
        for limit in (1, 8, rows - 1):
            least = np.sort(scores[scores > above])[::-1][:limit][-1:] - margin
            expected = [row for row, score in enumerate(scores) if score > above and score >= least]
            assert best_rows(scores, limit, margin, above).tolist() == expected
