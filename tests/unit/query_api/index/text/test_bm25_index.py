"""BM25 over segments: the numbers of the formula, whatever history the segments have."""

import weakref
from collections.abc import Sequence
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query_api.index.text.bm25_index import TERM_OVERHEAD, InvertedIndex, Postings
from query_api.index.text.text_segments import MAX_CACHED_SCOPES, Scope, Segment, Segments
from schemas.ids import DocumentKey
from tests.unit.query_api.index.text.histories import (
    COLLECTIONS,
    KEYS,
    TERMS,
    Rows,
    State,
    Step,
    after,
    hash_of,
    steps,
)


def segment(documents: State) -> Segment[Postings]:
    rows = [(key, identifier, terms) for key, held in documents.items() for identifier, terms in held]
    terms = np.array([term for _, _, held in rows for term in held], dtype=np.uint32)
    lengths = np.array([len(held) for _, _, held in rows], dtype=np.int32)
    return Segment.create([row[1] for row in rows], [row[0] for row in rows], Postings.from_terms(terms, lengths))


def index(*documents: State) -> InvertedIndex:
    segments = Segments[Postings]()
    for each in documents:
        segments = segments.with_segment(segment(each))
    return InvertedIndex(segments)


def followed(segments: Segments[Postings], step: Step) -> Segments[Postings]:
    return segments.without(step.moved).with_segment(segment({key: rows for key, rows in step.moved.items() if rows}))


def plain_bm25(state: State, terms: Sequence[int], limit: int, collection: str | None) -> list[tuple[str, float]]:
    """The formula as the books have it, a row at a time."""
    rows = [row for key, held in state.items() if collection in {None, key.collection} for row in held]
    mean = sum(len(held) for _, held in rows) / len(rows) if rows else 0
    found = []
    for identifier, held in rows:
        score = 0.0
        for term in terms:
            df = sum(term in other for _, other in rows)
            tf = held.count(term)
            if tf:
                idf = log(1 + (len(rows) - df + 0.5) / (df + 0.5))
                score += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(held) / max(mean, 1.0)))
        if score:
            found.append((identifier, score))
    return sorted(found, key=lambda row: (-round(row[1], 9), row[0]))[:limit]


def one_by_one(rows: Rows, collection: str = "a") -> State:
    return {DocumentKey(collection, identifier): [(identifier, terms)] for identifier, terms in rows}


def test_the_numbers_worked_by_hand() -> None:
    """Three rows of 2, 4 and 3 terms, mean 3; term 7 stands in two of them: idf = ln(1 + 1.5 / 2.5) = .4700036.

    x: tf 1, length 2: norm 1.2 · (.25 + .75 · 2/3) = .9, so .4700036 · 2.2 / 1.9 = .5442147
    y: tf 2, length 4: norm 1.2 · (.25 + .75 · 4/3) = 1.5, so .4700036 · 4.4 / 3.5 = .5908617
    """
    rows = index(one_by_one([("x", [7, 1]), ("y", [7, 7, 2, 3]), ("z", [1, 2, 3])]))
    found = rows.search([7], 10)
    assert [(row.passage_id, row.key) for row in found] == [("y", DocumentKey("a", "y")), ("x", DocumentKey("a", "x"))]
    assert [row.score for row in found] == pytest.approx([0.5908617, 0.5442147], abs=1e-7)
    assert [row.score for row in rows.search([7, 7], 10)] == pytest.approx([2 * 0.5908617, 2 * 0.5442147], abs=1e-6)


def test_a_term_in_every_row_still_finds_them_all() -> None:
    found = index(one_by_one([("x", [7]), ("y", [7]), ("z", [7, 1])])).search([7], 10)
    assert [row.passage_id for row in found] == ["x", "y", "z"]
    assert all(row.score > 0 for row in found)


def test_ties_are_broken_by_id_also_at_the_limit_and_across_segments() -> None:
    rows = index(one_by_one([("d", [1, 2]), ("b", [1, 2])]), one_by_one([("c", [1, 2]), ("a", [1, 2])]))
    assert [row.passage_id for row in rows.search([1], 3)] == ["a", "b", "c"]


def test_limits() -> None:
    rows = index(one_by_one([("x", [1]), ("y", [1, 1])]))
    assert [len(rows.search([1], limit)) for limit in (-1, 0, 1, 2, 1_000)] == [0, 0, 1, 2, 2]


def test_what_is_not_there_is_not_found() -> None:
    rows = index(one_by_one([("x", [1]), ("empty", [])]))
    assert (
        rows.search([], 5)
        == rows.search([0], 5)
        == rows.search([2**32 - 1], 5)
        == rows.search([1], 5, Scope("b"))
        == []
    )
    assert InvertedIndex(Segments()).search([1], 5) == []
    assert index(one_by_one([("empty", [])])).search([1], 5) == []


def test_a_term_repeated_beyond_what_a_posting_counts_is_as_good_as_the_most_it_counts() -> None:
    long = [1] * 70_000
    rows = index(one_by_one([("x", long), ("y", [1])]))
    expected = plain_bm25(one_by_one([("x", long), ("y", [1])]), [1], 5, None)
    assert [row.passage_id for row in rows.search([1], 5)] == [identifier for identifier, _ in expected]
    assert [row.score for row in rows.search([1], 5)] == pytest.approx([score for _, score in expected], rel=1e-5)
    merged = index(one_by_one([("x", long)]), one_by_one([("y", [1])])).search([1], 5)
    assert merged == rows.search([1], 5)


def test_terms_and_rows_keep_apart_in_one_number() -> None:
    """The highest terms beside the lowest, in many rows: a posting is packed into 64 bits while it is made."""
    made = Postings.from_terms(np.array([2**32 - 1, 0] * 1_000, dtype=np.uint32), np.full(1_000, 2, dtype=np.int32))
    assert made.terms.tolist() == [0, 2**32 - 1]
    assert made.rows.tolist() == list(range(1_000)) * 2
    assert set(made.counts.tolist()) == {1}


def test_many_collections_are_searched_without_being_remembered_all() -> None:
    rows = index(
        {DocumentKey(f"c{number}", "x"): [(f"{number}", [1] * (number + 1))] for number in range(MAX_CACHED_SCOPES * 3)}
    )
    for _ in range(2):
        for number in range(MAX_CACHED_SCOPES * 3):
            assert [row.passage_id for row in rows.search([1], 5, Scope(f"c{number}"))] == [str(number)]
    assert len(rows._scopes._cache) <= MAX_CACHED_SCOPES


@settings(deadline=None)
@given(steps(), st.lists(st.sampled_from([*TERMS, 9]), max_size=5), st.integers(0, 6))
def test_any_history_finds_what_an_index_made_from_what_is_left_finds(
    history: list[Step], terms: list[int], limit: int
) -> None:
    segments, state = Segments[Postings](), State()
    states = [(segments, state)]
    for step in history:
        segments, state = followed(segments, step), after(state, step)
        states.append((segments, state))
    for segments, state in states:  # the old ones too, now that all newer ones are made
        fresh = index(state)
        assert segments.live_count == sum(map(len, state.values()))
        for collection in (None, *COLLECTIONS, "none"):
            found = InvertedIndex(segments).search(terms, limit, Scope(collection))
            assert found == fresh.search(terms, limit, Scope(collection))
            expected = plain_bm25(state, terms, limit, collection)
            assert [row.score for row in found] == pytest.approx([score for _, score in expected], rel=1e-9)
            assert {row.passage_id: row.key for row in found}.items() <= {
                identifier: key for key, rows in state.items() for identifier, _ in rows
            }.items()


@settings(deadline=None)
@given(steps(), steps(), st.lists(st.sampled_from(TERMS), max_size=5))
def test_one_collection_never_changes_the_scores_of_another(
    history: list[Step], other: list[Step], terms: list[int]
) -> None:
    alone, beside = Segments[Postings](), Segments[Postings]()
    for step in history:
        of_a = Step({key: rows for key, rows in step.moved.items() if key.collection == "a"})
        alone, beside = followed(alone, of_a), followed(beside, of_a)
    for step in other:
        beside = followed(beside, Step({key: rows for key, rows in step.moved.items() if key.collection == "b"}))
    assert InvertedIndex(beside).search(terms, 10, Scope("a")) == InvertedIndex(alone).search(terms, 10)


def test_comparing_worked_by_hand() -> None:
    """The rows of `test_the_numbers_worked_by_hand`. Term 1 stands in x and z: of idf .4700036 too.

    x holds 7 and 1: 2 · .54421472; y holds 7 twice: .5908617.
    z holds 1 once, and is as long as the mean: .4700036 · 2.2 / 2.2.
    """
    rows = index(one_by_one([("x", [7, 1]), ("y", [7, 7, 2, 3]), ("z", [1, 2, 3])]))
    compared = rows.compare([7, 9, 1], ["z", "y", "x"])
    assert compared.idf == pytest.approx([0.4700036, 0.0, 0.4700036], abs=1e-7), "nobody holds 9"
    assert compared.bm25 == pytest.approx([0.4700036, 0.5908617, 1.0884295], abs=1e-7)
    assert compared.term_matches.tolist() == [[False, False, True], [True, False, False], [True, False, True]]


def test_a_term_asked_twice_is_one_column_and_counts_twice() -> None:
    rows = index(one_by_one([("x", [7, 1]), ("y", [2])]))
    once, twice = rows.compare([7], ["x", "y"]), rows.compare([7, 7], ["x", "y"])
    assert twice.bm25 == pytest.approx(2 * once.bm25)
    assert (twice.term_matches.tolist(), twice.idf.tolist()) == (once.term_matches.tolist(), once.idf.tolist())


def test_rows_that_are_not_there_hold_nothing() -> None:
    compared = index(one_by_one([("x", [7])])).compare([7], ["gone", "x", "never"])
    assert compared.term_matches.tolist() == [[False], [True], [False]]
    assert compared.bm25[[0, 2]].tolist() == [0.0, 0.0]
    for words in (InvertedIndex(Segments()), index(one_by_one([("x", [7])]))):
        nothing = words.compare([], [])
        assert (nothing.bm25.shape, nothing.term_matches.shape, nothing.idf.shape) == ((0,), (0, 0), (0,))
    assert InvertedIndex(Segments()).compare([7], ["x"]).bm25.tolist() == [0.0]


def test_rows_of_documents_that_went_or_changed_are_not_there_while_others_of_their_segment_are() -> None:
    state = one_by_one([(f"d{number}", [7, number]) for number in range(6)])
    segments = index(state).segments.without([DocumentKey("a", "d5")])
    assert len(segments[0].live) == 6, "its row is a tombstone"
    compared = InvertedIndex(segments).compare([7, 5], ["d5", "d4"])
    assert compared.term_matches.tolist() == [[False, False], [True, False]]
    assert compared.idf[1] == 0.0, "nor does it count for what its words are worth"
    changed = InvertedIndex(segments.with_segment(segment({DocumentKey("a", "d5"): [("d5", [8])]})))
    assert changed.compare([7, 8], ["d5"]).term_matches.tolist() == [[False, True]]


@settings(deadline=None)
@given(steps(), st.lists(st.sampled_from([*TERMS, 9]), max_size=5))
def test_any_history_compares_as_it_searches(history: list[Step], terms: list[int]) -> None:
    segments, state = Segments[Postings](), State()
    for step in history:
        segments, state = followed(segments, step), after(state, step)
    owners = {hash_of(key, row): key for key in KEYS for row in range(4)}  # all that ever were
    for collection in (None, *COLLECTIONS):
        searched = {
            row.passage_id: row.score for row in InvertedIndex(segments).search(terms, 1_000, Scope(collection))
        }
        ids = [row for row, key in owners.items() if collection in (None, key.collection)]
        compared = InvertedIndex(segments).compare(terms, ids, collection)
        held = {
            identifier: [term in of_row for term in dict.fromkeys(terms)]
            for rows in state.values()
            for identifier, of_row in rows
        }
        for row, identifier in enumerate(ids):
            assert compared.term_matches[row].tolist() == held.get(identifier, [False] * len(set(terms)))
            if identifier in searched:
                assert compared.bm25[row] == pytest.approx(searched[identifier], rel=1e-12)
            else:
                assert compared.bm25[row] == 0.0
        twice = InvertedIndex(segments).bm25([terms, terms[:1]], ids, collection)
        alone = InvertedIndex(segments).compare(terms[:1], ids, collection)
        assert [each.tolist() for each in twice] == [compared.bm25.tolist(), alone.bm25.tolist()]


def test_words_that_nobody_wrote_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("query_api.index.text.bm25_index.MAX_CACHED_POSTINGS", 1_000)
    rows = index({DocumentKey("a", "x"): [("1", [1, 2])]})
    for question in range(50):
        rows.search([1, *range(1_000 * question + 10, 1_000 * question + 20)], 5, Scope("a"))
    assert len(rows._terms) <= 1_000 / TERM_OVERHEAD


def test_scores_that_are_kept_keep_no_postings_beside_them() -> None:
    """What each row holds is found out again, from postings that are counted where they are kept."""
    rows = index({KEYS[0]: [("1", [3, 5])], KEYS[1]: [("2", [5])]})
    rows.search([5, 3], 2)
    postings = weakref.ref(rows._term(None, 3).segments[0].weights)
    assert postings() is not None
    rows._terms.clear()
    assert postings() is None
    assert rows._scores.currsize
    assert rows.compare([5, 3], ["2", "1"]).term_matches.tolist() == [[True, False], [True, True]]


def test_what_is_asked_of_a_collection_without_documents_counts_too() -> None:
    rows = index({DocumentKey("a", "x"): [("1", [1, 2])]})
    rows.compare([5, 6, 7], (), "nowhere")
    assert rows._scores.currsize >= 2_000


@settings(deadline=None)
@given(steps(), st.lists(st.sampled_from(TERMS), max_size=3), st.integers(1, 4))
def test_any_history_finds_the_rows_that_hold_all_terms(history: list[Step], terms: list[int], most: int) -> None:
    segments, state = Segments[Postings](), State()
    for step in history:
        segments, state = followed(segments, step), after(state, step)
    for collection in (None, *COLLECTIONS):
        held = {
            identifier
            for key, rows in state.items()
            if collection in {None, key.collection}
            for identifier, of_row in rows
            if terms and set(terms) <= set(of_row)
        }
        words = InvertedIndex(segments)
        found = words.first_holding(terms, most, collection)
        assert words.count_holding(terms, collection) == len(held)
        assert len(set(found)) == len(found) == min(most, len(held))
        assert held.issuperset(found)
