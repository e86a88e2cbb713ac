"""Segments stay few and mostly alive whatever is done to them, and what is done to one never shows in another."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from query_api.index import lsm
from query_api.index.text.text_segments import BUCKETS, Columns, Segment, Segments, top_rows
from schemas.ids import DocumentKey


@dataclass(frozen=True)
class Numbers(Columns):
    """The smallest content: a number a row."""

    values: NDArray[np.int64]

    def filter(self, rows: NDArray[np.bool_]) -> "Numbers":
        return Numbers(self.values[rows])

    def concat(self, other: "Numbers") -> "Numbers":
        return Numbers(np.concatenate([self.values, other.values]))


def key(number: int, collection: str = "c") -> DocumentKey:
    return DocumentKey(collection, str(number))


def segment(*keys: DocumentKey, first: int = 0) -> Segment[Numbers]:
    numbers = range(first, first + len(keys))
    return Segment.create([f"r{number}" for number in numbers], keys, Numbers(np.array(numbers)))


def contents(segments: Segments[Numbers]) -> list[tuple[DocumentKey, str, int]]:
    return sorted(
        (row_key, identifier, value)
        for each in segments
        for row_key, identifier, value, live in zip(
            each.keys.documents.tolist(),
            each.keys.ids.tolist(),
            each.columns.values.tolist(),
            each.live.tolist(),
            strict=True,
        )
        if live
    )


def test_a_document_goes_with_all_of_its_rows_and_leaves_the_others() -> None:
    older = Segments[Numbers]().with_segment(segment(key(1), key(1), key(2), key(3), key(3)))
    newer = older.without([key(1), key(3), key(9)])
    assert contents(newer) == [(key(2), "r2", 2)]
    assert newer.live_count == 1
    assert older.live_count == 5
    assert older.without([key(9)])[0] is older[0]


def test_rows_of_documents_are_kept_as_keys_not_spread_into_columns() -> None:
    made = segment(key(1), key(2))
    assert made.keys.documents.shape == (2,)
    assert made.keys.documents[1] == key(2)
    assert isinstance(made.keys.documents[1], DocumentKey)


def test_nothing_can_be_added_and_taken_away() -> None:
    empty = Segments[Numbers]()
    assert empty.without([key(1)]) == empty.with_segment(segment()) == empty
    assert empty.live_count == 0
    assert segment().keys.spans == {}
    assert segment().in_collection("c").shape == (0,)


def test_a_collection_is_found_among_others_also_after_a_merge() -> None:
    both = Segments[Numbers]().with_segment(segment(key(1, "a"), key(1, "b"), key(1, "b")))
    both = both.with_segment(segment(key(2, "b"), key(2, "a"), first=3)).without([key(1, "b")])
    found = {
        name: sorted(value for each in both for value in each.columns.values[each.in_collection(name)].tolist())
        for name in ("a", "b", "none", None)
    }
    assert found == {"a": [0, 4], "b": [3], "none": [], None: [0, 3, 4]}


def test_states_stay_as_they_were_and_segments_stay_few_and_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents replaced at random for long: dead rows must not pile up in segments below the newest."""
    monkeypatch.setattr(lsm, "MAX_MERGED_ROWS", 40)
    chance = random.Random(5)
    documents = 400
    segments = Segments[Numbers]().with_segment(segment(*[key(number) for number in range(documents)]))
    current = {number: number for number in range(documents)}
    kept = []
    for turn in range(3_000):
        number = chance.randrange(documents)
        current[number] = documents + turn
        segments = segments.without([key(number)]).with_segment(segment(key(number), first=documents + turn))
        if turn % 500 == 0:
            kept.append((segments, contents(segments)))
        assert sum(len(each.live) for each in segments) <= 2 * documents
        assert len(segments) <= 2 * documents / 40 + 10
    assert contents(segments) == sorted((key(number), f"r{value}", value) for number, value in current.items())
    assert all(contents(old) == then for old, then in kept)


def test_rows_that_went_leave_no_memory_though_nothing_is_added() -> None:
    segments = Segments[Numbers]().with_segment(segment(*[key(number) for number in range(100)]))
    for number in range(99):
        segments = segments.without([key(number)])
    assert sum(len(each.live) for each in segments) <= 2
    assert segments.without([key(99)]) == ()


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
def test_the_top_rows_come_with_all_that_equal_the_last(scores: list[float], limit: int, expected: list[int]) -> None:
    assert top_rows(np.array(scores, dtype=np.float64), limit).tolist() == expected


@pytest.mark.parametrize("rows", [50, BUCKETS * 10, BUCKETS * 40 + 7])
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
            assert top_rows(scores, limit, margin, above).tolist() == expected
