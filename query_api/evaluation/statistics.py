"""How sure a mean over questions is, and whether two approaches differ: by resampling, without assuming a distribution.

Intervals are percentile bootstrap intervals over questions (Efron and Tibshirani 1993, "An Introduction to the
Bootstrap", 13.3; for retrieval Sakai 2006, "Evaluating Evaluation Metrics based on the Bootstrap"). Two approaches are
compared on the same questions by Fisher's randomisation test (Smucker, Allan and Carterette 2007, "A Comparison of
Statistical Significance Tests for Information Retrieval Evaluation"), and p-values of several comparisons are adjusted
by Holm's step-down method (Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure").
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from query_api.evaluation.results import Calibration, Difference, Interval, ReliabilityBin

RESAMPLES = 10_000
LEVEL = 0.95
SEED = 20_260_101
EXACT_QUESTIONS = 13  # 2^13 assignments are fewer than RESAMPLES
MAX_CELLS = 4_000_000  # of a matrix of resamples


def bootstrap(values: Sequence[float], resamples: int = RESAMPLES, level: float = LEVEL) -> Interval:
    """The mean of the questions' values with its interval; the same values give the same bounds."""
    observed = np.asarray(values, dtype=np.float64)
    n = len(observed)
    rng = np.random.default_rng(SEED)
    means = [  # how often each question is drawn, times its value
        rng.multinomial(n, np.full(n, 1 / n), size=count) @ observed / n for count in _batches(resamples, n)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(_rounded(observed.mean()), _rounded(low), _rounded(high))


def compare(ours: Sequence[float], theirs: Sequence[float], resamples: int = RESAMPLES) -> Difference:
    """Ours minus theirs, question by question: the mean with its interval, and the p-value."""
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    interval = bootstrap(differences.tolist(), resamples)
    return Difference(interval.mean, interval.low, interval.high, _rounded(randomisation_p(differences, resamples)))


def randomisation_p(differences: NDArray[np.float64], resamples: int = RESAMPLES) -> float:
    """The share of all ways to swap the two approaches' names, question by question, that differ at least as much.

    Exact for few questions; beyond, of `resamples` random ways and the observed one, so that it is never 0 (Davison
    and Hinkley 1997, "Bootstrap Methods and their Application", 4.2). Questions without a difference decide nothing.
    """
    moving = differences[differences != 0]
    n = len(moving)
    if n == 0:
        return 1.0
    observed = abs(moving.sum()) - 1e-12  # sums are equal whatever order they were added in
    if n <= EXACT_QUESTIONS:
        return float(np.mean(np.abs(np.array(list(product((-1.0, 1.0), repeat=n))) @ moving) >= observed))
    rng = np.random.default_rng(SEED)
    at_least = sum(
        int(np.count_nonzero(np.abs(rng.choice((-1.0, 1.0), size=(count, n)) @ moving) >= observed))
        for count in _batches(resamples, n)
    )
    return (1 + at_least) / (1 + resamples)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for their number: the i-th smallest of m times m - i + 1, never below a smaller one's."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(p), 0, -1) * p[order]))
    return [_rounded(each) for each in adjusted]


def _batches(resamples: int, n: int) -> list[int]:
    """Sizes of batches of resamples that fit in memory."""
    largest = max(1, MAX_CELLS // n)
    return [min(largest, resamples - done) for done in range(0, resamples, largest)]


def _rounded(value: float) -> float:
    return round(float(value), 6)


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
