"""Intervals and paired tests, against numbers worked by hand and distributions that are known."""

import numpy as np
import pytest

from query_api.evaluation.results import Interval, ReliabilityBin
from query_api.evaluation.statistics import bootstrap, calibrate, compare, holm, randomisation_p, recalibrated


def test_equal_values_leave_no_doubt() -> None:
    assert bootstrap([0.5] * 7) == Interval(0.5, 0.5, 0.5)


def test_an_interval_is_the_same_each_time_and_holds_the_mean() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    interval = bootstrap(values)
    assert interval == bootstrap(values)
    assert interval.mean == 0.625
    assert interval.low < 0.625 < interval.high


def test_an_interval_has_the_width_of_the_normal_one_where_that_holds() -> None:
    """400 coins: the standard error is .5 / sqrt(400) = .025, so the interval is .5 ± 1.96 x .025 = [.451, .549]."""
    interval = bootstrap([0.0, 1.0] * 200)
    assert interval.low == pytest.approx(0.451, abs=0.003)
    assert interval.high == pytest.approx(0.549, abs=0.003)


def test_two_values_are_drawn_both_alike_in_half_of_the_resamples() -> None:
    """Of 0 and 1 the mean is 0 in 1/4 of the resamples, 1/2 in 1/2, 1 in 1/4: 40 % of them lie at 1/2."""
    assert bootstrap([0.0, 1.0], level=0.4) == Interval(0.5, 0.5, 0.5)
    assert bootstrap([0.0, 1.0], level=0.95) == Interval(0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1.0, 1.0, 1.0], 2 / 8),  # only all plus and all minus differ as much
        ([1.0, 1.0, -1.0], 1.0),  # |sum| is 1 or 3 in all of the 8
        ([3.0, 1.0, 1.0], 2 / 8),
        ([3.0, -1.0, 1.0], 6 / 8),  # of |sum| 5, 3, 3, 1 twice each, all but the two at 1 reach 3
        ([0.0, 0.0], 1.0),
        ([0.0, 2.0, 0.0, 2.0], 2 / 4),  # a question without a difference decides nothing
        ([0.1, 0.2, 0.3], 2 / 8),  # .1 + .2 + .3 is not .3 + .2 + .1 in floating point
    ],
)
def test_few_questions_are_tested_exactly(differences: list[float], p: float) -> None:
    assert randomisation_p(np.array(differences)) == p


def test_many_questions_are_sampled_and_never_certain() -> None:
    assert randomisation_p(np.ones(100), resamples=999) == 1 / 1000


def test_sampling_agrees_with_the_exact_share() -> None:
    """20 differences of 1, 15 up and 5 down: P(|sum| >= 10) = 2 P(Binomial(20, 1/2) >= 15) = .0414."""
    assert randomisation_p(np.array([1.0] * 15 + [-1.0] * 5)) == pytest.approx(0.0414, abs=0.006)


def test_a_comparison_is_by_question() -> None:
    found = compare([0.5, 0.7, 0.9], [0.4, 0.6, 0.8])
    assert found.mean == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert found.p == 0.25


def test_holm_multiplies_by_the_number_left_and_keeps_the_order() -> None:
    """.01 x 3, .03 x 2, then .04 x 1, which is not below the .06 before it."""
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_two_bins_worked_by_hand() -> None:
    """Below .5: .2 and .4, one right, |.5 - .3| = .2; above: .9 and .7, both right, |1 - .8| = .2."""
    found = calibrate([(0.2, False), (0.4, True), (0.9, True), (0.7, True)], bins=2)
    assert found is not None
    assert found.expected_error == pytest.approx(0.2)
    assert found.bins == (ReliabilityBin(0.0, 0.5, 2, 0.3, 0.5), ReliabilityBin(0.5, 1.0, 2, 0.8, 1.0))


def test_bins_weigh_by_their_hits_and_empty_ones_are_left_out() -> None:
    """Three at 1 that are right (no error), one at .5 that is wrong: 1/4 x .5."""
    found = calibrate([(1.0, True)] * 3 + [(0.5, False)])
    assert found is not None
    assert found.expected_error == pytest.approx(0.125)
    assert [each.hits for each in found.bins] == [1, 3]


def test_the_borders_belong_to_the_bin_below_and_nothing_to_the_first() -> None:
    found = calibrate([(0.0, False), (0.1, False), (0.3, False), (1.0, True)])
    assert found is not None
    assert [(each.low, each.hits) for each in found.bins] == [(0.0, 2), (0.2, 1), (0.9, 1)]


def test_hits_without_confidence_are_said_to_be_so() -> None:
    assert calibrate([]) is None


def test_what_the_other_sets_teach_is_held_against_this_one() -> None:
    """In the others' bin of .9 half is right; here all is: recalibrated confidence .5, so an error of .5."""
    others = [(0.85, True), (0.85, False)]
    found = recalibrated([(0.9, True), (0.86, True)], others)
    assert found is not None
    assert (found.hits, found.expected_error) == (2, 0.5)


def test_a_bin_the_others_leave_empty_keeps_its_confidence() -> None:
    found = recalibrated([(0.25, False)], [(0.95, True)])
    assert found is not None
    assert found.expected_error == 0.25
    assert recalibrated([(0.25, False)], []) is None
    assert recalibrated([], [(0.95, True)]) is None
