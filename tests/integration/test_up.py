"""`thalweg up` with a real Kafka and stand-ins for the worker and the service: order, restarts, and a clean end."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from filelock import FileLock

from schemas.errors import Exit
from schemas.runtime import find_running
from schemas.settings import KafkaSettings
from schemas.topics import topic_specs
from streams.kafka.topics import inspect_topics
from streams.ports import free_port
from tests.support.kafka import plaintext
from tests.support.waiting import wait_until

STAND_IN = '''
"""Answers /readyz like the worker or the service; a file `<part>.fails` holds the code it is to end with at once."""
import http.server, os, pathlib, signal, sys
part = sys.argv[1]
data = pathlib.Path(os.environ["THALWEG_STORAGE__DATA_DIR"])
print(part, "speaks to", os.environ["THALWEG_KAFKA__BOOTSTRAP_SERVERS"])
print(part, "is announced:", (data / "running.json").exists())
fails = data / f"{part}.fails"
if fails.exists():
    sys.exit(int(fails.read_text()))
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(str(os.getpid()).encode())
    def log_message(self, *arguments):
        pass
def end(*_):
    with (data / "ended").open("a") as file:
        file.write(part + "\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
name = "THALWEG_WORKER__METRICS_PORT" if part == "worker" else "THALWEG_SERVICE__PORT"
http.server.HTTPServer(("127.0.0.1", int(os.environ[name])), Answer).serve_forever()
'''

UP = """
import asyncio, os, sys
from streams.supervisor.supervisor import Supervisor, UpSettings
from schemas.errors import complain, plain_failures
with plain_failures():
    settings = UpSettings.load({"service": {"port": int(sys.argv[2])}})
    async def run():
        await Supervisor(settings, environment=os.environ, say=complain,
                         ready=lambda running: print("ready", running.service_url, flush=True),
                         kafka_port=0, command=(sys.executable, sys.argv[1])).run()
    asyncio.run(run())
"""


class Up:
    """A running `up`, with what it has said so far in a file."""

    def __init__(self, tmp_path: Path, data_dir: Path, port: int, **environment: str) -> None:
        stand_in = tmp_path / "stand_in.py"
        stand_in.write_text(STAND_IN)
        self.data_dir = data_dir
        self.port = port
        self.output = tmp_path / f"up-{port}.txt"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", UP, str(stand_in), str(port)],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "THALWEG_STORAGE__DATA_DIR": str(data_dir), **environment},
            )

    def said(self) -> str:
        return self.output.read_text()

    def wait_for(self, condition: Callable[[], object], seconds: float = 60) -> None:
        wait_until(condition, self.said, seconds)

    def wait_ready(self) -> None:
        self.wait_for(lambda: "ready http" in self.said() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()

    def service_pid(self) -> int | None:
        try:
            return int(httpx.get(f"http://127.0.0.1:{self.port}/readyz").text)
        except httpx.HTTPError:
            return None

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Starts an `up`; what still runs at the end of the test is ended."""
    started: list[Up] = []

    def start_one(data_dir: Path | None = None, port: int | None = None, **environment: str) -> Up:
        one = Up(tmp_path, data_dir or tmp_path / "data", port or free_port(), **environment)
        started.append(one)
        return one

    yield start_one
    for one in started:
        if one.process.poll() is None:
            one.end()


@pytest.fixture
def elsewhere(kafka: str, topic_prefix: str) -> dict[str, str]:
    """The settings of another cluster, which spare a broker where its life is not the story."""
    return {"THALWEG_KAFKA__BOOTSTRAP_SERVERS": kafka, "THALWEG_KAFKA__TOPIC_PREFIX": topic_prefix}


async def test_up_starts_all_parts_and_ends_them_in_reverse_order(start: Callable[..., Up]) -> None:
    up = start(THALWEG_SERVICE__API_KEY="a-key-that-opens-all")
    up.wait_ready()

    running = find_running(up.data_dir)
    assert running is not None
    assert running.service_url == f"http://127.0.0.1:{up.port}"
    reports = await inspect_topics(plaintext(running.kafka), topic_specs(KafkaSettings()))
    assert {report.outcome for report in reports} == {"exists"}
    assert running.kafka in (up.data_dir / "logs" / "worker.log").read_text()
    children = up.children()
    assert len(children) == 3
    with_key = [child.cmdline()[-1] for child in children if "a-key-that-opens-all" in child.environ().values()]
    assert with_key == ["serve"]

    assert up.end() == Exit.OK

    assert (up.data_dir / "ended").read_text().split() == ["serve", "worker"]
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert find_running(up.data_dir) is None
    assert up.said().count("ready http") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_up_with_another_cluster_starts_no_broker(
    start: Callable[..., Up], elsewhere: dict[str, str], number: signal.Signals
) -> None:
    up = start(**elsewhere)
    up.wait_ready()
    assert len(up.children()) == 2
    assert not (up.data_dir / "kafka").exists()
    for name, part in (("worker", "worker"), ("service", "serve")):
        assert f"{part} is announced: True" in (up.data_dir / "logs" / f"{name}.log").read_text()

    assert up.end(number) == Exit.OK
    assert (up.data_dir / "ended").read_text().split() == ["serve", "worker"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their killed parent")
def test_killed_part_is_restarted_and_killed_up_leaves_none(start: Callable[..., Up]) -> None:
    up = start()
    up.wait_ready()
    first = up.service_pid()
    assert first is not None
    os.kill(first, signal.SIGKILL)
    up.wait_for(lambda: up.service_pid() not in (None, first))
    up.wait_for(lambda: "The query service is ready again." in up.said())
    assert "The query service ended unexpectedly (killed by SIGKILL); it is started again at once." in up.said()

    running = find_running(up.data_dir)
    assert running is not None
    (kafka,) = [child for child in up.children() if "kafka.Kafka" in child.cmdline()]
    kafka.kill()
    up.wait_for(lambda: "Kafka is ready again." in up.said())
    (again,) = [child for child in up.children() if "kafka.Kafka" in child.cmdline()]
    port = int(running.kafka.partition(":")[2])
    assert port in {one.laddr.port for one in again.net_connections("tcp") if one.status == psutil.CONN_LISTEN}

    children = up.children()
    up.end(signal.SIGKILL)
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert find_running(up.data_dir) is None


@pytest.mark.parametrize(("part", "name"), [("worker", "The worker"), ("serve", "The query service")])
def test_part_that_cannot_start_ends_up_with_its_exit_code(
    start: Callable[..., Up], elsewhere: dict[str, str], tmp_path: Path, part: str, name: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / f"{part}.fails").write_text(str(int(Exit.USAGE)))
    up = start(**elsewhere)

    assert up.process.wait(60) == Exit.USAGE
    assert f"{name} did not start (exit code 2)." in up.said()
    assert f"{part} speaks to" in up.said()
    assert not (up.data_dir / "running.json").exists()


def test_a_second_up_on_the_same_directory_or_port_is_refused(
    start: Callable[..., Up], elsewhere: dict[str, str], tmp_path: Path
) -> None:
    up = start(**elsewhere)
    up.wait_ready()
    same_directory = start(up.data_dir, **elsewhere)
    same_port = start(tmp_path / "other", up.port, **elsewhere)

    assert same_directory.process.wait(60) == Exit.IN_USE
    assert re.search("Another 'thalweg up' is using the data directory .*--data-dir", same_directory.said())
    assert same_port.process.wait(60) == Exit.IN_USE
    assert f"Port {up.port} on 127.0.0.1 is in use" in same_port.said()
    (tmp_path / "held").mkdir()
    with FileLock(tmp_path / "held" / "worker.lock"):
        held = start(tmp_path / "held", **elsewhere)
        assert held.process.wait(60) == Exit.IN_USE
    assert "Another worker is using the data directory" in held.said()


def test_up_ends_at_once_while_the_model_is_downloaded(start: Callable[..., Up], tmp_path: Path, kafka: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        index = {"PIP_INDEX_URL": f"http://127.0.0.1:{silent.getsockname()[1]}/"}
        up = start(XDG_CACHE_HOME=str(tmp_path / "cache"), THALWEG_KAFKA__BOOTSTRAP_SERVERS=kafka, **index)
        up.wait_for(lambda: "Downloading the model" in up.said())
        assert up.end() == Exit.OK
    assert [path.name for path in (tmp_path / "cache/thalweg/models").iterdir()] == ["fetch.lock"]
