"""Whether a hit's confidence means what it says: the reliability diagram and the expected calibration error.

Predictions are sorted into equal bins of confidence; in each, the mean confidence is held against the share that was
right. ECE = sum over bins of (hits in bin / all hits) x |share right - mean confidence| (Naeini, Cooper and Hauskrecht
2015, "Obtaining Well Calibrated Probabilities Using Bayesian Binning"; Guo et al. 2017, "On Calibration of Modern
Neural Networks").
"""

from collections.abc import Sequence

import msgspec

BINS = 10


class ReliabilityBin(msgspec.Struct, frozen=True):
    """Hits with a confidence in (low, high]; the first bin takes 0 too. `right` is the share that is relevant."""

    low: float
    high: float
    hits: int
    confidence: float
    right: float


class Calibration(msgspec.Struct, frozen=True):
    """`bins` leaves out empty ones."""

    hits: int
    expected_error: float
    bins: tuple[ReliabilityBin, ...]


def calibrate(predictions: Sequence[tuple[float, bool]], bins: int = BINS) -> Calibration | None:
    """Of (confidence from 0 to 1, whether the hit is relevant); None when no hit carries a confidence."""
    if not predictions:
        return None
    sorted_in: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for confidence, right in predictions:
        sorted_in[_bin(confidence, bins)].append((confidence, right))
    found = tuple(
        ReliabilityBin(
            low=number / bins,
            high=(number + 1) / bins,
            hits=len(members),
            confidence=round(sum(confidence for confidence, _ in members) / len(members), 6),
            right=round(sum(right for _, right in members) / len(members), 6),
        )
        for number, members in enumerate(sorted_in)
        if members
    )
    error = sum(each.hits * abs(each.right - each.confidence) for each in found) / len(predictions)
    return Calibration(len(predictions), round(error, 6), found)


def recalibrated(
    predictions: Sequence[tuple[float, bool]], others: Sequence[tuple[float, bool]], bins: int = BINS
) -> Calibration | None:
    """The calibration `predictions` would have if each confidence were replaced by the share that was right in its bin
    of the `others` (histogram binning: Zadrozny and Elkan 2001, "Obtaining calibrated probability estimates from
    decision trees and naive Bayesian classifiers"); a bin the others leave empty keeps its confidence.

    With the sets of an evaluation left out in turn it tells whether one mapping holds for sets it was not made on.
    None where either has no confidence.
    """
    if not predictions or not others:
        return None
    learnt = calibrate(others, bins)
    right = {} if learnt is None else {each.low: each.right for each in learnt.bins}
    return calibrate(
        [(right.get(_bin(confidence, bins) / bins, confidence), relevant) for confidence, relevant in predictions], bins
    )


def _bin(confidence: float, bins: int) -> int:
    return next((number for number in range(bins) if confidence <= (number + 1) / bins), bins - 1)
