"""Fusion and normalising, against numbers worked by hand."""

import pytest

from query_api.ranking import (
    in_blocks,
    min_max,
    ranked,
    ranks,
    reciprocal_rank_fusion,
    relative_to_best,
    weighted_sum,
)


def test_rrf_adds_one_over_sixty_plus_rank() -> None:
    scores = reciprocal_rank_fusion([{"a": 1, "b": 2}, {"b": 1, "c": 2}])
    assert scores["a"] == pytest.approx(1 / 61)
    assert scores["b"] == pytest.approx(1 / 62 + 1 / 61)
    assert scores["c"] == pytest.approx(1 / 62)
    assert ranked(scores) == ["b", "a", "c"]


def test_rrf_weighs_lists_and_leaves_out_those_of_weight_zero() -> None:
    scores = reciprocal_rank_fusion([{"a": 1}, {"b": 1}, {"c": 1}], [1.0, 2.0, 0.0])
    assert scores == {"a": pytest.approx(1 / 61), "b": pytest.approx(2 / 61)}


def test_rrf_needs_a_weight_for_each_list() -> None:
    with pytest.raises(ValueError, match="shorter"):
        reciprocal_rank_fusion([{"a": 1}, {"b": 1}], [1.0])


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
    assert in_blocks([first, deeper]) == ["a", "b", "d", "c"]
