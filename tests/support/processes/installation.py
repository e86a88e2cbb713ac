"""Thalweg as a user starts it: `thalweg up` in a terminal of its own, on free ports and an empty data directory."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support.waiting import wait_until

READY_SECONDS = 120.0
CATCH_UP_SECONDS = 200
HASHING = {"THALWEG_EMBEDDING__PROVIDER": "hashing"}
ROOT = Path(__file__).parents[3]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Installation:
    """A running `thalweg up` and what a user does with it."""

    process: subprocess.Popen[str]
    data_dir: Path
    url: str
    kafka: str
    log: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(
        self, *arguments: str, check: bool = True, text_in: str | None = None, timeout: float = 240
    ) -> subprocess.CompletedProcess[str]:
        """One command, as typed in a second terminal."""
        done = subprocess.run(
            [sys.executable, "-m", "thalweg", *arguments, "--data-dir", str(self.data_dir)],
            capture_output=True,
            text=True,
            input=text_in or "",  # nobody at a terminal, wherever the tests run
            env=os.environ | self.environment,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done

    def run_json(self, *arguments: str, **options: Any) -> Any:
        return json.loads(self.run(*arguments, "--json", **options).stdout)

    def verify(self) -> dict[str, Any]:
        """The report of `thalweg verify`, as soon as the graph has caught up, however busy the machine is."""
        return dict(self.run_json("verify", "--wait", str(CATCH_UP_SECONDS)))

    def search(self, **parameters: Any) -> dict[str, Any]:
        answer = httpx.get(f"{self.url}/v1/search", params=parameters, timeout=70)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def child(self, word: str) -> psutil.Process:
        """The running part (`worker`, `serve`, or Kafka's `kafka.Kafka`) among the children."""
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                command = process.cmdline()
            except (psutil.ZombieProcess, psutil.NoSuchProcess):  # it has just ended
                continue
            if word in command and (word == "kafka.Kafka" or "thalweg" in " ".join(command)):
                return process
        raise AssertionError(f"no {word} is running")

    def said(self) -> str:
        """What `thalweg up` has written so far."""
        return self.log.read_text()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def installation(data_dir: Path, program: str = "thalweg", **environment: str) -> Iterator[Installation]:
    """Start everything, wait until it says it is ready, and stop it at the end."""
    port, kafka_port = free_port(), free_port()
    log = data_dir.parent / f"{data_dir.name}-up.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", program, "up", "--data-dir", str(data_dir)),
                *("--port", str(port), "--kafka-port", str(kafka_port)),
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "THALWEG_WORKER__PUBLISH_GRAPH": "false"} | environment,
        )
    running = Installation(process, data_dir, f"http://127.0.0.1:{port}", f"127.0.0.1:{kafka_port}", log, environment)
    try:
        wait_until(lambda: _ready(running), "everything is ready", READY_SECONDS)
        yield running
    finally:
        running.stop()


def _ready(running: Installation) -> bool:
    if running.process.poll() is not None:
        raise AssertionError(f"`thalweg up` ended with {running.process.returncode}:\n{running.said()}")
    try:
        return "ready" in running.said() and httpx.get(f"{running.url}/readyz", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False
