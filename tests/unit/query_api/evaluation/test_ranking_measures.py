"""Measures, thresholds, diversity and latencies, against numbers worked by hand."""

from math import log2

import pytest

from query_api.evaluation import ranking_measures as metrics
from query_api.evaluation.ranking_measures import (
    categories_of,
    diversity,
    latencies,
    measure_names,
    measure_rankings,
    spread,
    thresholds,
    years_of,
)
from query_api.evaluation.results import Answer, Diversity, Spread, Threshold
from schemas.errors import WrongSetting


def test_one_ranking_of_documents_worked_by_hand() -> None:
    """Relevant: a (grade 1), b (grade 2), d (grade 1), of which b comes second and a third."""
    found = measure_rankings({"q": ["x", "b", "a", "y"]}, {"q": {"a": 1, "b": 2, "d": 1, "x": 0}}, 10)
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
    found = measure_rankings(
        {"one": ["a", "b"], "two": ["b", "x", "a"]}, {"one": {"a": 1, "b": 1}, "two": {"a": 1, "b": 1}}, 5
    )
    assert found["AllGold@1"] == [0, 0]
    assert found["AllGold@3"] == [1, 1]
    assert found["R@1"] == [0.5, 0.5]


def test_the_order_of_the_service_counts_ties_or_not() -> None:
    for ranking, value in ((["a", "z"], 1.0), (["z", "a"], 0.5)):
        assert measure_rankings({"q": ranking}, {"q": {"a": 1}}, 3)["MRR@3"] == [value]


def test_a_question_without_hits_counts_as_nothing_found() -> None:
    found = measure_rankings({"none": [], "some": ["a"]}, {"none": {"a": 1}, "some": {"a": 1}}, 10)
    assert found["R@10"] == [0, 1]
    assert found["MAP@10"] == [0, 1]


def test_passages_of_one_document_are_found_once_and_precise_each_time() -> None:
    """The hits a, a, b, x: the second passage of a takes a rank, finds nothing new, and is no wrong passage."""
    found = measure_rankings({"q": ["a", "a", "b", "x"]}, {"q": {"a": 1, "b": 1}}, 3)
    assert found["R@3"] == [1]
    assert found["P@3"] == [1]
    assert found["R@1"] == [0.5]
    assert found["nDCG@3"] == pytest.approx([(1 + 1 / log2(4)) / (1 + 1 / log2(3))])
    assert found["MAP@3"] == pytest.approx([(1 + 2 / 3) / 2])


def test_only_the_first_k_hits_count_and_only_cutoffs_up_to_k_are_named() -> None:
    assert measure_rankings({"q": ["x", "x", "a"]}, {"q": {"a": 1}}, 2)["MRR@2"] == [0]
    assert measure_names(4) == [
        *("nDCG@1", "nDCG@3", "R@1", "R@3", "P@1", "P@3", "AllGold@1", "AllGold@3", "MRR@4", "MAP@4")
    ]


def test_each_threshold_tells_what_stays_and_what_it_costs() -> None:
    """Scores 1 to 4, of which 4 and 1 are right; the second question has only the hit of score 1."""
    found = thresholds([[(4.0, True), (3.0, False), (2.0, False)], [(1.0, True)]])
    assert [each.at for each in found] == [1, 2, 3], "quantiles of four scores, each once"
    assert found[0] == Threshold(at=1, kept=1, precision=0.5, recall=1, unanswered=0)
    assert found[1] == Threshold(at=2, kept=0.75, precision=0.333333, recall=0.5, unanswered=0.5)
    assert found[2] == Threshold(at=3, kept=0.5, precision=0.5, recall=0.5, unanswered=0.5)


def test_without_hits_there_is_nothing_to_hold_a_threshold_against() -> None:
    assert thresholds([[], []]) == ()


def test_where_nothing_is_right_nothing_is_kept_of_it() -> None:
    assert [each.recall for each in thresholds([[(1.0, False)]])] == [0.0]


METADATA = {
    "a": {"topic": ["birds", "rivers"], "created": "14-May-2001"},
    "b": {"topic": "birds", "created": "2001-06-01"},
    "c": {"topic": "stars", "created": "2004"},
    "d": {},
}


def test_distinct_ones_are_counted_against_the_most_there_could_be() -> None:
    """Two hits of one document and one of another: 2 of 3 documents, 2 of 3 categories, 1 of 2 years."""
    assert diversity([["a", "a", "b"]], METADATA) == Diversity(sources=0.666667, categories=0.666667, years=0.5)


def test_answers_without_a_hit_count_for_nothing() -> None:
    assert diversity([["a", "c"], []], METADATA) == diversity([["a", "c"]], METADATA)
    assert diversity([[]], METADATA) == Diversity(sources=None, categories=None, years=None)


def test_what_no_metadata_tells_is_null_and_not_nothing() -> None:
    assert diversity([["d"]], {"d": {}}) == Diversity(sources=1, categories=None, years=None)


@pytest.mark.parametrize(
    ("metadata", "years"),
    [({"created": 1958}, {"1958"}), ({"date": "x", "year": 2004}, {"2004"}), ({"created": "12345"}, set())],
)
def test_a_year_is_four_digits_of_the_first_field_that_has_them(metadata: dict[str, object], years: set[str]) -> None:
    assert years_of(metadata) == years


def test_categories_are_those_of_the_first_field_that_names_any() -> None:
    assert categories_of({"tags": ["x", ""], "type": "Process"}) == {"x"}
    assert categories_of({"type": 3}) == frozenset()


def asked(stages: dict[str, float], first_hit: float | None, seconds: float) -> Answer:
    return Answer(
        question_id="q",
        documents=(),
        scores=(),
        confidences=(),
        stages=stages,
        first_hit_seconds=first_hit,
        seconds=seconds,
        failed_channels={},
    )


def test_quantiles_lie_between_the_values_around_them() -> None:
    """Of 0 … 20, p50 is the middle one and p95 the last but one; of 1 and 2, p95 is .95 of the way."""
    assert spread([float(number) for number in range(21)]) == Spread(21, 10.0, 19.0)
    assert spread([2.0, 1.0]) == Spread(2, 1.5, 1.95)


def test_steps_come_in_their_order_and_count_the_answers_that_had_them() -> None:
    found = latencies([asked({"total": 3.0, "texts": 1.0}, None, 4.0), asked({"total": 3.0, "embed": 1.0}, 2.0, 4.0)])
    assert {step: (each.answers, each.p50) for step, each in found.items()} == {
        "texts": (1, 1.0),
        "embed": (1, 1.0),
        "total": (2, 3.0),
        "first hit": (1, 2.0),
        "answer": (2, 4.0),
    }
    assert list(found) == ["texts", "embed", "total", "first hit", "answer"]


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    with pytest.raises(WrongSetting, match=r"pip install -e '\.\[evaluate\]'"):
        measure_rankings({"q": ["a"]}, {"q": {"a": 1}}, 3)
