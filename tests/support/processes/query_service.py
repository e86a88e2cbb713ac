"""The query service as a process of its own, without Kafka, and how it bears what it is sent."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support.constants import PROGRAM, given
from tests.support.waiting import wait_until

MIB = 1024 * 1024
PROBE_EVERY_SECONDS = 0.02
ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+")


class ServiceProcess:
    """A running `thalweg serve`."""

    def __init__(self, process: psutil.Process, url: str) -> None:
        self.process = process
        self.url = url

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=120, trust_env=False)

    @property
    def resident_bytes(self) -> int:
        return int(self.process.memory_info().rss)


class Probe:
    """`/livez` asked all the time by a thread: the longest it took, in seconds, and the most memory seen, in bytes."""

    def __init__(self, service: ServiceProcess) -> None:
        self._service = service
        self._stop = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.slowest_seconds = 0.0
        self.most_bytes = 0
        self.answers = 0

    def __enter__(self) -> "Probe":
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        with self._service.client() as http:
            http.get("/livez")  # the connection is there, and the block begins
            self._begun.set()
            stopped = False
            while not stopped:  # once more after the block: of what was short, too
                stopped = self._stop.wait(PROBE_EVERY_SECONDS)
                begun = time.perf_counter()
                http.get("/livez").raise_for_status()
                self.slowest_seconds = max(self.slowest_seconds, time.perf_counter() - begun)
                self.most_bytes = max(self.most_bytes, self._service.resident_bytes)
                self.answers += 1


@contextmanager
def service_process(
    data_dir: Path,
    kafka: Mapping[str, str] | None = None,
    log_file: Path | None = None,
    constants: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[ServiceProcess]:
    """The service on a free port, with `THALWEG_SERVICE__…` settings by name, until the end of the block. `kafka` are
    `THALWEG_KAFKA__…` settings, `constants` those of the product that are changed."""
    environment = {f"THALWEG_SERVICE__{name.upper()}": str(value) for name, value in settings.items()}
    environment |= {f"THALWEG_KAFKA__{name.upper()}": value for name, value in (kafka or {}).items()}
    environment |= given(constants or {})
    environment |= {"THALWEG_EMBEDDING__PROVIDER": "hashing", "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"}
    program = PROGRAM if constants else "thalweg"
    command = [sys.executable, "-m", program, "serve", "--data-dir", str(data_dir), "--port", "0"]
    log = log_file or data_dir.with_suffix(".log")
    with (
        log.open("wb") as told,
        subprocess.Popen(command, stdout=told, stderr=told, env=os.environ | environment) as process,
    ):
        try:
            wait_until(lambda: ADDRESS.search(log.read_text()), log.read_text)
            url = ADDRESS.search(log.read_text())
            assert url is not None
            service = ServiceProcess(psutil.Process(process.pid), url[0])
            with service.client() as http:
                wait_until(lambda: answers(http), log.read_text)
            yield service
        finally:
            process.terminate()


def answers(http: httpx.Client) -> bool:
    try:
        return http.get("/livez").status_code == 200
    except httpx.TransportError:
        return False
