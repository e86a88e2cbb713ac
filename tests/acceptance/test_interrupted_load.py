"""A load that is interrupted while it publishes, and repeated: the stores are those of a load in one go."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

FILES = 1_200


def test_an_interrupted_load_repeated_leaves_what_one_load_leaves(hashing: Installation, tmp_path: Path) -> None:
    for number in range(FILES):
        (tmp_path / f"{number}.md").write_text(f"# Station {number}\n\nIt measured the river at {number % 97} metres.")
    load = ("load", str(tmp_path), "--collection", "stations")
    before = documents(hashing)
    loading = subprocess.Popen(
        [sys.executable, "-m", "thalweg", *load, "--data-dir", str(hashing.data_dir)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 -- no thread of ours is in the middle of anything here
    )
    wait_until(lambda: documents(hashing) > before, "some of it is searchable", 60)
    loading.send_signal(signal.SIGINT)
    _, said = loading.communicate(timeout=30)
    assert loading.returncode == 1
    assert "To go on, do the same again" in said

    again = hashing.run_json(*load)
    assert again["outcomes"].keys() <= {"indexed", "unchanged", "superseded"}
    assert again["outcomes"]["unchanged"] > 0
    assert documents(hashing) - before == FILES
    report = hashing.verify()
    assert report["ok"]
    assert hashing.run_json(*load)["outcomes"] == {"unchanged": FILES}, "all of it is as one load leaves it"
    assert hashing.verify()["digest"] == report["digest"]


def heed_interrupts() -> None:
    """Whoever runs the tests in the background of a shell has them, and all they start, ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def documents(thalweg: Installation) -> int:
    status = httpx.get(f"{thalweg.url}/v1/status", timeout=30).json()
    return int(status["counts"]["documents"])
