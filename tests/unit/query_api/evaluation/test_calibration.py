"""The expected calibration error, against numbers worked by hand."""

import pytest

from query_api.evaluation.calibration import calibrate, recalibrated
from query_api.evaluation.results import ReliabilityBin


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
