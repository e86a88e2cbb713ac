"""Whether a hit's confidence means what it says: the reliability diagram and the expected calibration error.

Predictions are sorted into equal bins of confidence; in each, the mean confidence is compared with the share that is
relevant. ECE = sum over bins of (hits in bin / all hits) x |share relevant - mean confidence| (Naeini, Cooper and
Hauskrecht 2015, "Obtaining Well Calibrated Probabilities Using Bayesian Binning"; Guo et al. 2017, "On Calibration of
Modern Neural Networks").
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from query_api.evaluation.results import Calibration, ReliabilityBin

BINS = 10

Prediction = tuple[float, bool]
"""A hit's confidence from 0 to 1, and whether it is relevant."""


def calibrate(predictions: Sequence[Prediction], bins: int = BINS) -> Calibration | None:
    """None when no hit carries a confidence."""
    return _calibration(np.asarray(predictions, dtype=np.float64), bins) if predictions else None


def recalibrated(
    predictions: Sequence[Prediction], others: Sequence[Prediction], bins: int = BINS
) -> Calibration | None:
    """The calibration `predictions` would have if each confidence were replaced by the share that is relevant in its
    bin of the `others` (histogram binning: Zadrozny and Elkan 2001, "Obtaining calibrated probability estimates from
    decision trees and naive Bayesian classifiers"); a bin the others leave empty keeps its confidence.

    Leaving each collection of an evaluation out in turn shows whether one mapping holds for collections it was not
    learnt on. None where either has no confidence.
    """
    learnt = calibrate(others, bins)
    if not predictions or learnt is None:
        return None
    relevant_share = np.full(bins, np.nan)
    for each in learnt.bins:
        relevant_share[round(each.low * bins)] = each.right
    pairs = np.asarray(predictions, dtype=np.float64)
    mapped = relevant_share[_bin_of(pairs[:, 0], bins)]
    pairs[:, 0] = np.where(np.isnan(mapped), pairs[:, 0], mapped)
    return _calibration(pairs, bins)


def _calibration(pairs: NDArray[np.float64], bins: int) -> Calibration:
    """`pairs` is (n, 2): confidence, and 1 for a relevant hit."""
    at = _bin_of(pairs[:, 0], bins)
    hits = np.bincount(at, minlength=bins)
    confidence = np.bincount(at, pairs[:, 0], bins)
    relevant = np.bincount(at, pairs[:, 1], bins)
    found = tuple(
        ReliabilityBin(
            low=number / bins,
            high=(number + 1) / bins,
            hits=int(hits[number]),
            confidence=round(float(confidence[number] / hits[number]), 6),
            right=round(float(relevant[number] / hits[number]), 6),
        )
        for number in np.flatnonzero(hits).tolist()
    )
    error = sum(each.hits * abs(each.right - each.confidence) for each in found) / len(pairs)
    return Calibration(len(pairs), round(error, 6), found)


def _bin_of(confidences: NDArray[np.float64], bins: int) -> NDArray[np.intp]:
    return np.minimum(np.searchsorted(np.arange(1, bins + 1) / bins, confidences), bins - 1)
