"""What a threshold on the hits' scores would do: of each, what stays, how much of it is right, and what it costs.

The scores of two approaches are on scales of their own, so thresholds stand at quantiles of the approach's own scores.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9)


class Threshold(msgspec.Struct, frozen=True):
    """Only hits of at least `at` shown: `kept` is their share of all hits, `precision` the share of them that is
    relevant, `recall` the share of the relevant hits that stays, `unanswered` that of the questions left without a
    hit."""

    at: float
    kept: float
    precision: float
    recall: float
    unanswered: float


def thresholds(answers: Sequence[Sequence[tuple[float, bool]]]) -> tuple[Threshold, ...]:
    """Of (score, whether the hit is relevant) of each question's hits; none where there is no hit."""
    hits = [hit for answer in answers for hit in answer]
    if not hits:
        return ()
    levels = dict.fromkeys(np.quantile([score for score, _ in hits], QUANTILES, method="lower").tolist())
    return tuple(_at(level, answers, hits) for level in levels)


def _at(level: float, answers: Sequence[Sequence[tuple[float, bool]]], hits: Sequence[tuple[float, bool]]) -> Threshold:
    shown = [right for score, right in hits if score >= level]
    relevant = sum(right for _, right in hits)
    unanswered = sum(not any(score >= level for score, _ in answer) for answer in answers)
    return Threshold(
        at=round(level, 6),
        kept=round(len(shown) / len(hits), 6),
        precision=round(sum(shown) / len(shown), 6),
        recall=round(sum(shown) / relevant, 6) if relevant else 0.0,
        unanswered=round(unanswered / len(answers), 6),
    )
