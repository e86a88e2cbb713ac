"""How one terminal finds what another runs."""

import os
import subprocess
import sys
from pathlib import Path

from schemas.runtime import RUNNING_FILE, Running, announce, find_running, withdraw


def test_what_is_announced_is_found_until_it_is_withdrawn(tmp_path: Path) -> None:
    running = Running(pid=os.getpid(), kafka="127.0.0.1:9092", service_url="http://127.0.0.1:8420")
    announce(tmp_path / "data", running)
    assert find_running(tmp_path / "data") == running
    withdraw(tmp_path / "data")
    assert find_running(tmp_path / "data") is None


def test_the_word_of_a_dead_process_is_not_believed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    announce(tmp_path, Running(pid=gone.pid, kafka="k", service_url="s"))
    assert find_running(tmp_path) is None


def test_a_damaged_file_is_no_word_at_all(tmp_path: Path) -> None:
    (tmp_path / RUNNING_FILE).write_text("{")
    assert find_running(tmp_path) is None
