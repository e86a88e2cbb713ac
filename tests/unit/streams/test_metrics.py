"""What the worker measures."""

from streams.metrics import Stopwatch


def test_a_stopwatch_adds_the_laps_of_a_stage() -> None:
    ticks = iter([0.0, 1.0, 3.0, 6.0])
    watch = Stopwatch(lambda: next(ticks))
    for stage in ("a", "b", "a"):
        watch.lap(stage)
    assert watch.seconds == {"a": 4.0, "b": 2.0}
