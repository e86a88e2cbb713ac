"""The measures, against numbers worked by hand."""

from math import log2

import pytest

from query_api.evaluation.metrics.measures import judge, measure_names


def test_one_ranking_of_documents_worked_by_hand() -> None:
    """Relevant: a (grade 1), b (grade 2), d (grade 1), of which b comes second and a third."""
    found = judge({"q": ["x", "b", "a", "y"]}, {"q": {"a": 1, "b": 2, "d": 1, "x": 0}}, 10)
    ideal = 2 + 1 / log2(3) + 1 / log2(4)
    assert found["nDCG@3"] == pytest.approx([(2 / log2(3) + 1 / log2(4)) / ideal])
    assert found["nDCG@1"] == [0]
    assert found["R@3"] == pytest.approx([2 / 3])
    assert found["P@3"] == pytest.approx([2 / 3])
    assert found["P@10"] == pytest.approx([2 / 10])
    assert found["MRR@10"] == [1 / 2]
    assert found["MAP@10"] == pytest.approx([(1 / 2 + 2 / 3) / 3])
    assert found["AllGold@10"] == [0]


def test_all_gold_asks_for_every_relevant_document() -> None:
    found = judge({"one": ["a", "b"], "two": ["b", "x", "a"]}, {"one": {"a": 1, "b": 1}, "two": {"a": 1, "b": 1}}, 5)
    assert found["AllGold@1"] == [0, 0]
    assert found["AllGold@3"] == [1, 1]
    assert found["R@1"] == [0.5, 0.5]


def test_the_order_of_the_service_counts_ties_or_not() -> None:
    for ranking, value in ((["a", "z"], 1.0), (["z", "a"], 0.5)):
        assert judge({"q": ranking}, {"q": {"a": 1}}, 3)["MRR@3"] == [value]


def test_a_question_without_hits_counts_as_nothing_found() -> None:
    found = judge({"none": [], "some": ["a"]}, {"none": {"a": 1}, "some": {"a": 1}}, 10)
    assert found["R@10"] == [0, 1]
    assert found["MAP@10"] == [0, 1]


def test_passages_of_one_document_are_found_once_and_precise_each_time() -> None:
    """The hits a, a, b, x: the second passage of a takes a rank, finds nothing new, and is no wrong passage."""
    found = judge({"q": ["a", "a", "b", "x"]}, {"q": {"a": 1, "b": 1}}, 3)
    assert found["R@3"] == [1]
    assert found["P@3"] == [1]
    assert found["R@1"] == [0.5]
    assert found["nDCG@3"] == pytest.approx([(1 + 1 / log2(4)) / (1 + 1 / log2(3))])
    assert found["MAP@3"] == pytest.approx([(1 + 2 / 3) / 2])


def test_only_the_first_k_hits_count_and_only_cutoffs_up_to_k_are_named() -> None:
    assert judge({"q": ["x", "x", "a"]}, {"q": {"a": 1}}, 2)["MRR@2"] == [0]
    assert measure_names(4) == [
        *("nDCG@1", "nDCG@3", "R@1", "R@3", "P@1", "P@3", "AllGold@1", "AllGold@3", "MRR@4", "MAP@4")
    ]
