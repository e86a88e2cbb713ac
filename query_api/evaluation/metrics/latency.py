"""How long answers took, by step: the median and what one in twenty exceeds."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from query_api.evaluation.answers import Asked


class Spread(msgspec.Struct, frozen=True):
    """Seconds; quantiles by linear interpolation (Hyndman and Fan 1996, type 7). `answers` had the step at all."""

    answers: int
    p50: float
    p95: float


def spread(seconds: Sequence[float]) -> Spread:
    p50, p95 = np.quantile(seconds, [0.5, 0.95])
    return Spread(len(seconds), round(float(p50), 6), round(float(p95), 6))


def latencies(answers: Sequence[Asked]) -> Mapping[str, Spread]:
    """{step: spread}: the service's steps and its `total`, then `first hit` and `answer` as they came to the client.

    The client's figures hold the way over HTTP; the first hit is there before the answer is complete.
    """
    by_step: dict[str, list[float]] = {}
    for answer in answers:
        for step, seconds in answer.stages.items():
            by_step.setdefault(step, []).append(seconds)
    by_step["total"] = by_step.pop("total", [])
    by_step["first hit"] = [answer.first_hit_seconds for answer in answers if answer.first_hit_seconds is not None]
    by_step["answer"] = [answer.seconds for answer in answers]
    return {step: spread(seconds) for step, seconds in by_step.items() if seconds}
