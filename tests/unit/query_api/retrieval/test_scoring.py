"""Fusion and normalising, against numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_api.retrieval.scoring import (
    COVERAGE_WEIGHT,
    by_coverage,
    min_max,
    ranked,
    ranks,
    reciprocal_rank_fusion,
    relative_to_best,
    stable_paged_order,
    text_score,
    weighted_sum,
    word_score,
)


def test_rrf_adds_one_over_sixty_plus_rank() -> None:
    scores = reciprocal_rank_fusion([{"a": 1, "b": 2}, {"b": 1, "c": 2}])
    assert scores["a"] == pytest.approx(1 / 61)
    assert scores["b"] == pytest.approx(1 / 62 + 1 / 61)
    assert scores["c"] == pytest.approx(1 / 62)
    assert ranked(scores) == ["b", "a", "c"]


def test_equal_scores_stand_in_the_order_of_their_ids() -> None:
    assert ranked({"z": 0.5, "a": 0.5, "m": 0.75}) == ["m", "a", "z"]


def test_an_id_that_comes_twice_keeps_its_better_rank() -> None:
    assert ranks(["b", "a", "b", "c"]) == {"b": 1, "a": 2, "c": 3}


def test_min_max_spans_zero_to_one() -> None:
    assert min_max({"a": 2.0, "b": 4.0, "c": 3.0}) == {"a": 0.0, "b": 1.0, "c": 0.5}
    assert min_max({"a": 7.0, "b": 7.0}) == {"a": 1.0, "b": 1.0}
    assert min_max({}) == {}


def test_relative_to_best_keeps_the_distance_to_zero() -> None:
    assert relative_to_best({"a": 8.0, "b": 6.0}) == {"a": 1.0, "b": 0.75}
    assert relative_to_best({"a": 0.0}) == {}
    assert relative_to_best({}) == {}


def test_a_weighted_sum_takes_what_is_missing_as_zero() -> None:
    total = weighted_sum([{"a": 1.0, "b": 0.5}, {"b": 1.0, "c": 1.0}], [0.7, 0.3])
    assert total == {"a": pytest.approx(0.7), "b": pytest.approx(0.65), "c": pytest.approx(0.3)}


def test_a_deeper_block_appends_and_never_reorders() -> None:
    first = {"a": 0.2, "b": 0.1}
    deeper = {"a": 0.2, "b": 0.9, "c": 0.5, "d": 0.6}
    assert stable_paged_order([first, deeper]) == ["a", "b", "d", "c"]


def test_text_score_adds_a_part_of_the_word_score() -> None:
    assert text_score(0.5, 1.5) == pytest.approx(0.74)
    assert text_score(np.array([0.5, 0.0, -0.1]), np.array([0.0, 2.5, 0.0])) == pytest.approx([0.5, 0.4, -0.1])


def test_word_score_counts_rare_terms_whole_and_common_ones_little() -> None:
    """BM25 with a saturated frequency of 1: the idf of the held terms."""
    matches = np.array([[True, False], [False, True], [True, True], [False, False]])
    for highest in (4.0, 8.0):  # the same in a larger collection where terms are as rare relative to it
        idf = np.array([highest, highest / 4])
        found = word_score(matches @ idf, matches, idf, highest)
        assert found == pytest.approx([1.0 + 1.25 * 0.8**8, 1 / 16, 17 / 16 + 1.25, 0.0], abs=1e-5)


FIRST_WORD, SECOND_WORD, BOTH = [True, False], [False, True], [True, True]


def covered(scores: list[float], held: list[list[bool]], idf: list[float], **how: float) -> list[int]:
    rows = np.array(held, dtype=bool).reshape(len(scores), len(idf))
    return by_coverage(scores, rows, np.array(idf), **{"weight": COVERAGE_WEIGHT, **how})


def test_what_holds_a_word_that_none_before_held_comes_forward() -> None:
    """idf 3 and 1. First: 1 + .5 x .75 = 1.375 against .9 + .375 and .8 + .5 x .25; then only the second word is open:
    .9 against .8 + .125 = .925."""
    assert covered([1.0, 0.9, 0.8], [FIRST_WORD, FIRST_WORD, SECOND_WORD], [3.0, 1.0]) == [0, 2, 1]
    assert covered([1.0, 0.9, 0.7], [FIRST_WORD, FIRST_WORD, SECOND_WORD], [3.0, 1.0]) == [0, 1, 2]


def test_even_the_best_may_be_overtaken() -> None:
    """2 / 2 + .5 x .25 = 1.125, against 1.8 / 2 + .5 = 1.4."""
    assert covered([2.0, 1.8], [SECOND_WORD, BOTH], [3.0, 1.0]) == [1, 0]


def test_cover_of_nothing_of_one_and_of_equals() -> None:
    assert covered([], [], [1.0, 1.0]) == []
    assert covered([0.3], [BOTH], [1.0, 1.0]) == [0]
    assert covered([0.5, 0.5, 0.5], [BOTH, BOTH, BOTH], [1.0, 1.0]) == [0, 1, 2]


def test_words_scores_or_a_weight_of_nothing_change_no_order() -> None:
    apart = [FIRST_WORD, FIRST_WORD, SECOND_WORD]
    assert covered([1.0, 0.99, 0.98], apart, [0.0, 0.0]) == [0, 1, 2]
    assert covered([0.0, 0.0, -1.0], apart, [1.0, 1.0]) == [0, 1, 2]
    assert covered([1.0, 0.99, 0.98], apart, [1.0, 1.0], weight=0.0) == [0, 1, 2]
    assert covered([1.0, 0.99, 0.98], apart, [1.0, 1.0]) == [0, 2, 1]


@given(st.lists(st.tuples(st.floats(0.01, 2.0), st.lists(st.booleans(), min_size=3, max_size=3)), max_size=30))
def test_covering_loses_nothing_and_ranks_a_passage_that_holds_all_that_a_lower_one_holds_above_it(
    passages: list[tuple[float, list[bool]]],
) -> None:
    falling = sorted(passages, key=lambda passage: -passage[0])
    order = covered([score for score, _ in falling], [held for _, held in falling], [1.0, 2.0, 0.5])
    assert sorted(order) == list(range(len(falling)))
    assert order[20:] == list(range(20, len(falling)))
    for place, at in enumerate(order[:20]):
        for later in order[place + 1 : 20]:
            assert later > at or any(mine > its for mine, its in zip(falling[at][1], falling[later][1], strict=True))
