"""What a worker says of itself over HTTP and in the data directory, and what the next one makes of it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from schemas.errors import InUse, WrongSetting
from schemas.runtime import WORKER_FILE, WorkerState, read_state
from streams.runtime.partition_progress import Progress
from streams.runtime.worker_health import KILLED, Health, HealthServer, Heartbeat
from streams.worker_metrics import WorkerMetrics


class Life:
    """One run of a worker on the directory."""

    def __init__(self, data_dir: Path, now_ms: int = 1_000, missing: tuple[str, ...] = ("stores",)) -> None:
        self.data_dir = data_dir
        self.health = Health(missing)
        self.progress = Progress()
        self.heartbeat = Heartbeat(data_dir, self.health, self.progress, lambda: now_ms)
        self.heartbeat.beat()

    @property
    def state(self) -> WorkerState:
        state = read_state(self.data_dir)
        assert state is not None
        return state


def test_a_worker_is_starting_until_nothing_is_missing_and_tells_what_it_waits_for(tmp_path: Path) -> None:
    life = Life(tmp_path)
    assert (life.state.phase, life.state.missing, life.state.at_ms) == ("starting", ("stores",), 1_000)
    life.health.up("stores")
    life.progress.waiting_for["lance"] = "OSError: No space left on device"
    life.heartbeat.beat()
    assert (life.state.phase, life.state.missing) == ("running", ())
    assert life.state.waiting_for == {"lance": "OSError: No space left on device"}
    life.progress.waiting_for.clear()
    life.heartbeat.beat()
    assert life.state.waiting_for == {}, "what was written before is overwritten, not appended to"


def test_a_worker_that_was_killed_is_counted_by_the_next_one(tmp_path: Path) -> None:
    Life(tmp_path, now_ms=1_000)
    Life(tmp_path, now_ms=2_000).heartbeat.failed("StoreFailure: torn")
    state = Life(tmp_path, now_ms=3_000).state
    assert state.crashes_ms == (1_000, 2_000)
    assert state.last_failure == "StoreFailure: torn"
    assert Life(tmp_path, now_ms=4_000).state.last_failure == KILLED


def test_a_worker_that_was_told_to_stop_is_no_crash(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.heartbeat.stopped()
    assert life.state.phase == "stopped"
    assert Life(tmp_path).state.crashes_ms == ()


def test_a_stop_after_a_failure_stays_a_failure(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.heartbeat.failed("first")
    life.heartbeat.failed("second")
    life.heartbeat.stopped()
    assert (life.state.phase, life.state.last_failure) == ("failed", "first")


def test_the_file_stays_as_large_as_it_is_so_that_a_full_disk_has_room_for_it(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.progress.waiting_for.update({f"store {n}": "x" * 10_000 for n in range(5)})
    before = (tmp_path / WORKER_FILE).stat()
    life.heartbeat.beat()
    after = (tmp_path / WORKER_FILE).stat()
    assert (after.st_size, after.st_ino) == (before.st_size, before.st_ino)
    assert life.state.waiting_for["store 4"].startswith("xxx")


def test_a_file_that_cannot_be_written_does_not_end_the_worker(tmp_path: Path) -> None:
    (tmp_path / WORKER_FILE).mkdir()
    Life(tmp_path).heartbeat.stopped()


@pytest.fixture
def health() -> Health:
    return Health(["kafka", "encoder"])


@pytest.fixture
def server(health: Health) -> Iterator[HealthServer]:
    metrics = WorkerMetrics()
    metrics.documents.labels("indexed").inc(3)
    made = HealthServer(metrics.registry, health, 0)
    yield made
    made.close()


def get(server: HealthServer, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{server.port}{path}", trust_env=False)


def test_it_is_alive_at_once_and_ready_when_every_part_is_up(server: HealthServer, health: Health) -> None:
    assert get(server, "/livez").status_code == 200
    answer = get(server, "/readyz")
    assert (answer.status_code, answer.text) == (503, "waiting for: kafka, encoder\n")
    health.up("kafka")
    health.up("encoder")
    assert get(server, "/readyz").status_code == 200


def test_the_metrics_carry_the_names_of_the_contract(server: HealthServer) -> None:
    text = get(server, "/metrics").text
    assert 'thalweg_documents_total{outcome="indexed"} 3.0' in text
    for name in ("thalweg_chunks_embedded_total", "thalweg_snapshot_age_seconds", "thalweg_lance_fragments"):
        assert name in text


def test_another_path_says_what_there_is(server: HealthServer) -> None:
    assert get(server, "/").status_code == 404


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/livez", "/"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.", "", "[::1", "a b"]
)
def test_a_request_by_a_foreign_host_name_is_refused(server: HealthServer, host: str, path: str) -> None:
    answer = httpx.get(f"http://127.0.0.1:{server.port}{path}", headers={"Host": host}, trust_env=False)
    assert answer.status_code == 421
    assert answer.text == (
        "The worker answers to 127.0.0.1, ::1, localhost here. For a scraper on another machine set "
        "THALWEG_WORKER__METRICS_HOST.\n"
    )


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:80", "[::1]:80"])
def test_the_names_of_loopback_are_answered(server: HealthServer, host: str) -> None:
    answer = httpx.get(f"http://127.0.0.1:{server.port}/metrics", headers={"Host": host}, trust_env=False)
    assert answer.status_code == 200


def test_on_another_address_scrapers_use_any_name() -> None:
    server = HealthServer(WorkerMetrics().registry, Health([]), 0, "0.0.0.0")
    try:
        url = f"http://127.0.0.1:{server.port}/metrics"
        assert httpx.get(url, headers={"Host": "thalweg.svc:9100"}, trust_env=False).is_success
    finally:
        server.close()


def test_a_port_in_use_is_told_plainly(server: HealthServer) -> None:
    with pytest.raises(InUse, match="--metrics-port"):
        HealthServer(WorkerMetrics().registry, Health([]), server.port)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_address_can_be_chosen_and_is_known(host: str) -> None:
    server = HealthServer(WorkerMetrics().registry, Health([]), 0, host)
    try:
        assert httpx.get(server.url, trust_env=False).is_success
        assert server.url.endswith(f":{server.port}/metrics")
    finally:
        server.close()


def test_an_address_of_another_machine_is_refused_with_the_setting() -> None:
    with pytest.raises(WrongSetting, match=r"THALWEG_WORKER__METRICS_HOST is '192.0.2.1'"):
        HealthServer(WorkerMetrics().registry, Health([]), 0, "192.0.2.1")
