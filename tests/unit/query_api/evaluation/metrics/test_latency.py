"""Latencies, against numbers worked by hand."""

from query_api.evaluation.answers import Asked
from query_api.evaluation.metrics.latency import Spread, latencies, spread


def asked(stages: dict[str, float], first_hit: float | None, seconds: float) -> Asked:
    return Asked(
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
