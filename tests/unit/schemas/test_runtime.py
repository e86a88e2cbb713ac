"""How one terminal finds what another runs, and which installation that is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.runtime import (
    RUNNING_FILE,
    Running,
    announce,
    announced,
    find_running,
    installation_of,
    is_of_processes,
    withdraw,
)

KAFKA, URL = "127.0.0.1:9092", "http://127.0.0.1:8420"


def running(**addresses: str) -> Running:
    return Running(pid=os.getpid(), **addresses)


def change(path: Path, **fields: Any) -> None:
    path.write_bytes(msgspec.json.encode(msgspec.json.decode(path.read_bytes()) | fields))


def test_announcement_is_found_until_withdrawn(tmp_path: Path) -> None:
    data = tmp_path / "data"
    announce(data, running(kafka=KAFKA, service_url=URL))
    assert find_running(data) == running(kafka=KAFKA, service_url=URL, installation=installation_of(data))
    assert data.stat().st_mode & 0o777 == 0o700
    withdraw(data)
    assert find_running(data) is None


def test_announcement_of_a_dead_process_is_not_believed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    announce(tmp_path, Running(pid=gone.pid, kafka="k", service_url="s"))
    assert find_running(tmp_path) is None
    announce(tmp_path, running(service_url=URL), "service-1")
    assert not (tmp_path / RUNNING_FILE).exists(), "and removed by the next one"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say when a process began")
def test_announcement_of_a_reused_pid_is_not_believed(tmp_path: Path) -> None:
    announce(tmp_path, running(service_url=URL))
    change(tmp_path / RUNNING_FILE, started="1")
    assert find_running(tmp_path) is None


def test_announcement_of_another_machine_is_left_alone(tmp_path: Path) -> None:
    """Of a container, say, that shares the folder: a process id means another process there."""
    announce(tmp_path, running(service_url=URL))
    change(tmp_path / RUNNING_FILE, machine="another")
    announce(tmp_path, running(service_url="http://127.0.0.1:1"), "service-1")
    found = find_running(tmp_path)
    assert found is not None
    assert found.service_url == "http://127.0.0.1:1"
    withdraw(tmp_path)
    assert (tmp_path / RUNNING_FILE).exists()


def test_copy_of_a_folder_is_another_installation(tmp_path: Path) -> None:
    announce(tmp_path / "data", running(service_url=URL))
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    assert find_running(tmp_path / "copy") is None
    assert installation_of(tmp_path / "copy") == ""
    assert installation_of(tmp_path / "copy", make=True) not in ("", installation_of(tmp_path / "data"))
    (tmp_path / "data").rename(tmp_path / "moved")
    assert find_running(tmp_path / "moved") is not None


def test_processes_announce_beside_each_other(tmp_path: Path) -> None:
    with announced(tmp_path, "worker", kafka=KAFKA) as problem:
        assert problem == ""
        assert find_running(tmp_path) == running(kafka=KAFKA)
        with announced(tmp_path, "service-1", kafka=None, service_url="http://127.0.0.1:1"):
            found = find_running(tmp_path)
            assert found is not None
            assert (found.kafka, found.service_url) == (KAFKA, "http://127.0.0.1:1")
            announce(tmp_path, running(kafka="127.0.0.1:2", service_url="http://127.0.0.1:2"))
            found = find_running(tmp_path)
            assert found is not None
            assert (found.kafka, found.service_url) == ("127.0.0.1:2", "http://127.0.0.1:2"), "that of 'thalweg up'"
            withdraw(tmp_path)
            found = find_running(tmp_path)
            assert found is not None
            assert found.service_url == "http://127.0.0.1:1"
    assert find_running(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir() if not is_of_processes(path.name)] == []


def test_folder_that_takes_no_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with announced(tmp_path / "file", "worker", kafka=KAFKA) as problem:
        assert "do not find this process by the data directory" in problem


def test_damaged_announcement_is_none(tmp_path: Path) -> None:
    (tmp_path / RUNNING_FILE).write_text("{")
    assert find_running(tmp_path) is None


def test_damaged_id_is_replaced(tmp_path: Path) -> None:
    first = installation_of(tmp_path, make=True)
    assert installation_of(tmp_path, make=True) == first
    (tmp_path / "installation.json").write_text("{")
    assert installation_of(tmp_path) == ""
    assert installation_of(tmp_path, make=True) not in ("", first)
