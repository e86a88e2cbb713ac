"""What the worker measures."""

import math
from pathlib import Path

from streams.worker_metrics import Stopwatch, WorkerMetrics


def test_a_stopwatch_adds_the_laps_of_a_stage() -> None:
    ticks = iter([0.0, 1.0, 3.0, 6.0])
    watch = Stopwatch(lambda: next(ticks))
    for stage in ("a", "b", "a"):
        watch.lap(stage)
    assert watch.seconds == {"a": 4.0, "b": 2.0}


def test_the_first_dead_letter_of_a_reason_is_an_increase() -> None:
    registry = WorkerMetrics().registry
    assert registry.get_sample_value("thalweg_dead_letters_total", {"reason": "not_json"}) == 0
    assert registry.get_sample_value("thalweg_documents_total", {"outcome": "indexed"}) == 0


def test_the_disk_is_measured_at_each_scrape_and_unknown_while_it_is_away(tmp_path: Path) -> None:
    metrics = WorkerMetrics()
    metrics.measure_disk(tmp_path / "data")
    assert math.isnan(metrics.registry.get_sample_value("thalweg_disk_free_bytes") or 0.0)
    (tmp_path / "data").mkdir()
    free, size = (metrics.registry.get_sample_value(f"thalweg_disk_{each}_bytes") for each in ("free", "size"))
    assert free is not None
    assert size is not None
    assert 0 < free <= size
