"""What the worker shows over HTTP."""

from collections.abc import Iterator

import httpx
import pytest

from schemas.errors import InUse
from streams.metrics import Health, MetricsServer, Stopwatch, WorkerMetrics


@pytest.fixture
def health() -> Health:
    return Health(["kafka", "encoder"])


@pytest.fixture
def server(health: Health) -> Iterator[MetricsServer]:
    metrics = WorkerMetrics()
    metrics.documents.labels("indexed").inc(3)
    made = MetricsServer(metrics, health, 0)
    yield made
    made.close()


def get(server: MetricsServer, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{server.port}{path}", trust_env=False)


def test_it_is_alive_at_once_and_ready_when_every_part_is_up(server: MetricsServer, health: Health) -> None:
    assert get(server, "/livez").status_code == 200
    answer = get(server, "/readyz")
    assert (answer.status_code, answer.text) == (503, "waiting for: kafka, encoder\n")
    health.up("kafka")
    health.up("encoder")
    assert get(server, "/readyz").status_code == 200


def test_the_metrics_carry_the_names_of_the_contract(server: MetricsServer) -> None:
    text = get(server, "/metrics").text
    assert 'thalweg_documents_total{outcome="indexed"} 3.0' in text
    for name in ("thalweg_chunks_embedded_total", "thalweg_snapshot_age_seconds", "thalweg_lance_fragments"):
        assert name in text


def test_another_path_says_what_there_is(server: MetricsServer) -> None:
    assert get(server, "/").status_code == 404


def test_a_port_in_use_is_told_plainly(server: MetricsServer) -> None:
    with pytest.raises(InUse, match="--metrics-port"):
        MetricsServer(WorkerMetrics(), Health([]), server.port)


def test_a_stopwatch_adds_the_laps_of_a_stage() -> None:
    ticks = iter([0.0, 1.0, 3.0, 6.0])
    watch = Stopwatch(lambda: next(ticks))
    for stage in ("a", "b", "a"):
        watch.lap(stage)
    assert watch.seconds == {"a": 4.0, "b": 2.0}
