"""The log of `thalweg serve` as a process of its own: one JSON object a line, from its start to its end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from schemas.errors import Exit
from tests.support.waiting import wait_until


def test_each_line_is_json_where_it_is_no_terminal(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    environment = os.environ | {
        "THALWEG_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "THALWEG_EMBEDDING__PROVIDER": "hashing",
        "THALWEG_STORAGE__DATA_DIR": str(tmp_path / "data"),
        "PYTHONUNBUFFERED": "1",
    }

    def start(port: int) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            command = [sys.executable, "-m", "thalweg", "serve", "--port", str(port)]
            return subprocess.Popen(command, stdout=output, stderr=output, env=environment)

    def events() -> list[dict[str, object]]:
        return [json.loads(line) for line in log.read_text().splitlines()]

    service = start(0)
    try:
        wait_until(lambda: any(each["event"] == "query service listening" for each in events()), "it listens", 120)
        (url,) = [str(each["url"]) for each in events() if "url" in each]
        second = start(int(url.rpartition(":")[2]))
        assert second.wait(120) == Exit.IN_USE
        wait_until(
            lambda: any(each["event"] == "topic cannot be followed" for each in events()), "it misses Kafka", 120
        )
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == Exit.OK
    finally:
        service.kill()
    assert any("is in use" in str(each["event"]) for each in events())
