"""`thalweg status --watch`: rates and plot from what was observed, on a terminal and in a log, through a restart."""

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from query_api.cli.display import PlainConsole, show_status
from query_api.cli.watch import History, Observation, observe, watch_line, watch_view
from schemas.errors import Exit, Failure, Unreachable, WrongSetting
from tests.support.http_server import Request, Response, http_server

DEADLINE_SECONDS = 60.0
TEXT, GRAPH = "thalweg.documents.v1", "thalweg.contributions.g0001.v1"


def status(text: int = 10, graph: int = 5, lag: int | None = 0, **more: Any) -> dict[str, Any]:
    """What `/v1/status` tells, with these offsets reached."""
    end = None if lag is None else text + 1 + lag
    place = {"topic": TEXT, "partition": 0, "reached": text, "end": end, "records": lag, "seconds": 1.25}
    in_graph = {"topic": GRAPH, "partition": 0, "reached": graph, "end": 6, "records": 0, "seconds": 0.0}
    worker = {"state": "running", "heard_seconds_ago": 0.1, "waiting_for": {}, "crashes_in_ten_minutes": 0}
    return {
        "version": "0.1.0", "uptime_seconds": 9.0, "kafka_servers": "127.0.0.1:9092", "generation": "g0001",
        "readiness": {
            "ready": True, "reasons": [], "notes": ["The disk is [nearly] full."], "kafka": "reachable",
            "snapshot_age_seconds": 4.0,
        },
        "positions": "0:10", "graph_position": graph, "graph_base_position": 3, "lag": [place, in_graph],
        "lag_records": lag, "lag_seconds": 1.25, "lag_known_seconds_ago": 0.1, "worker": worker,
        "freshness": {"seconds": 0.5, "measured_seconds_ago": 7.0}, "counts": {"documents": 1_200, "misplaced": 0},
        "dead_letters_last_day": 3, "dead_letters_by_reason": {"too_large": 2, "not_json": 1},
        "dead_letters_open": 2, "dead_letters_open_by_reason": {"too_large": 2},
        "provenance_buffered": 0, "provenance_dropped": 0, "streams_open": 2, "searches_running": 1,
        "searches_waiting": 0, "memory_bytes": 1024**3, "disk_free_bytes": 2 * 1024**3,
    } | more  # fmt: skip


def observed(*told: tuple[float, dict[str, Any] | None]) -> History:
    history = History()
    for at, state in told:
        history.add(Observation(at, state, None if state is not None else "It does not answer."))
    return history


def shown(history: History, width: int = 100) -> str:
    output = io.StringIO()
    PlainConsole(file=output, width=width).print(watch_view(history), highlight=False)
    return output.getvalue()


def test_throughput_is_what_each_partition_came_on_by() -> None:
    history = observed((0, status(10, 5)), (2, status(30, 5)), (4, status(50, 6)))
    assert history.records_per_second() == {(TEXT, 0): 10.0, (GRAPH, 0): 0.25}
    assert observed((0, status())).records_per_second() == {}
    assert "20.0 records/s" in watch_line(Observation(0, status()), observed((0, status(10)), (1, status(30))))


def test_throughput_is_of_the_last_seconds_and_of_one_generation() -> None:
    assert observed((0, status(0)), (95, status(100)), (100, status(150))).records_per_second()[TEXT, 0] == 10.0
    assert observed((0, status(0)), (1, status(50, generation="g0002"))).records_per_second() == {}
    went_back = observed((0, status(50, 5)), (1, status(10, 6))).records_per_second()
    assert went_back == {(GRAPH, 0): 1.0}
    assert observed((0, status(0)), (1, None)).records_per_second() == {}


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_state_at_a_glance(width: int) -> None:
    text = shown(observed((0, status(10, lag=0)), (2, status(30, lag=1_200))), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[1].split() == ["text", "0", "30", "1,231", "1,200", "1.2", "10.0"]
    assert lines[2].split() == ["graph", "0", "5", "6", "0", "0.0", "0.0"]
    for told in (
        "2 too_large",
        "2 open; 3 came within a day",
        "2 streams open",
        "[nearly]",
        "running",
        "4 s old",
        "0.50 s",
    ):
        assert told in text


def test_many_partitions_show_those_with_lag() -> None:
    places = [
        {"topic": TEXT, "partition": number, "reached": 1, "end": 2, "records": int(number == 40), "seconds": 0.0}
        for number in range(50)
    ]
    text = shown(observed((0, status(lag=1) | {"lag": places})))
    assert re.search(r"text +40 ", text)
    assert "… 38 more" in text


def test_while_it_does_not_answer_the_last_state_stays_and_says_so() -> None:
    history = observed((0, status(10, lag=4)), (1, None))
    assert "It does not answer. Trying again" in shown(history)
    assert "4 records, the oldest" in shown(history)
    assert watch_line(history.newest, history) == "It does not answer."
    assert shown(observed((0, None))).splitlines()[0].startswith("It does not answer.")


def test_a_failure_is_observed_and_a_wrong_setting_is_none_that_time_repairs() -> None:
    def failing(error: Failure) -> Callable[[], dict[str, Any]]:
        def ask() -> dict[str, Any]:
            raise error

        return ask

    assert "may be restarting" in str(observe(failing(Unreachable("gone"))).problem)
    assert observe(failing(Failure("Too old."))).problem == "Too old."
    with pytest.raises(WrongSetting):
        observe(failing(WrongSetting("no key")))


def test_unknown_lag_is_told_as_that() -> None:
    output = io.StringIO()
    show_status(PlainConsole(file=output, width=100), status(lag=None))
    assert "unknown: Kafka last answered 0 s ago" in output.getvalue()
    assert shown(observed((0, status(lag=None)))).splitlines()[1].split()[3:5] == ["?", "?"]


class Service:
    """A service on a port of its own, which can be stopped and started again there. Each look finds ten more records
    read."""

    def __init__(self) -> None:
        self.asked = 0
        self.url = "http://127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self._running = http_server(self._answer, urlsplit(self.url).port or 0)
        self.url = self._running.__enter__()

    def stop(self) -> None:
        self._running.__exit__(None, None, None)

    def _answer(self, _request: Request) -> Response:
        self.asked += 1
        return Response(json.dumps(status(10 * self.asked)).encode())


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.stop()


def command(service: Service, *options: str) -> list[str]:
    program = "import sys, thalweg; sys.argv[0] = 'thalweg'; thalweg.main()"
    return [sys.executable, "-c", program, "status", "--watch", "--interval", "0.1", "--url", service.url, *options]


@contextmanager
def running(arguments: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The process; what is left of it at the end is killed."""
    with subprocess.Popen(arguments, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def test_without_a_terminal_each_tick_is_a_line_of_json_and_ctrl_c_ends_it(service: Service) -> None:
    with running(command(service, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        assert (first["throughput"], first["problem"]) == ([], None)
        assert second["status"]["lag"][0]["reached"] > first["status"]["lag"][0]["reached"]
        assert second["throughput"][0]["records_per_second"] > 0
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
        assert (process.returncode, errors) == (Exit.OK, b"")


def test_on_a_terminal_it_lives_through_a_restart_of_the_service(service: Service) -> None:
    screen, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    seen = ""

    def read_until(done: Callable[[], bool]) -> None:
        nonlocal seen
        seen, ends = "", time.monotonic() + DEADLINE_SECONDS
        while not done():
            assert time.monotonic() < ends, seen[-2_000:]
            if select.select([screen], [], [], 0.1)[0]:
                seen += os.read(screen, 65_536).decode(errors="replace")

    terminal = {"stdin": inner, "stdout": inner, "stderr": inner, "env": os.environ | {"TERM": "xterm-256color"}}
    with running(command(service), **terminal) as process:
        read_until(lambda: "records/s" in seen)
        service.stop()
        read_until(lambda: "may be restarting" in seen)
        service.start()
        read_until(lambda: seen.rpartition("restarting")[2].count("Ctrl-C ends it.") > 1)
        process.send_signal(signal.SIGINT)
        read_until(lambda: process.poll() is not None)
        assert process.returncode == Exit.OK
        assert "Traceback" not in seen
    os.close(inner)
    os.close(screen)


def test_where_nothing_ever_answered_it_fails_at_once(service: Service) -> None:
    service.stop()
    try:
        done = subprocess.run(command(service), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    finally:
        service.start()
    assert done.returncode == Exit.UNREACHABLE
    assert "thalweg up" in done.stderr
