"""Thresholds on scores, worked by hand."""

from query_api.evaluation.metrics.thresholds import Threshold, thresholds


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
