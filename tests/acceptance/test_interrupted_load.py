"""A load that is interrupted while it publishes, and repeated: the stores are those of a load in one go."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.processes.installation import Installation, installation
from tests.support.waiting import wait_until

FILES = 3_000


def test_an_interrupted_load_repeated_leaves_what_one_load_leaves(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for number in range(FILES):
        (files / f"{number}.md").write_text(f"# Station {number}\n\nIt measured the river at {number % 97} metres.")
    with installation(tmp_path / "data", THALWEG_EMBEDDING__PROVIDER="hashing") as thalweg:
        loading = subprocess.Popen(
            [sys.executable, "-m", "thalweg", "load", str(files), "--data-dir", str(thalweg.data_dir)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heed_interrupts,  # noqa: PLW1509 -- no thread of ours is in the middle of anything here
        )
        wait_until(lambda: documents(thalweg) > 0, "some of it is searchable", 60)
        loading.send_signal(signal.SIGINT)
        _, said = loading.communicate(timeout=30)
        assert loading.returncode == 1
        assert "To go on, do the same again" in said

        again = thalweg.run_json("load", str(files))
        assert again["outcomes"].keys() <= {"indexed", "unchanged", "superseded"}
        assert again["outcomes"]["unchanged"] > 0
        assert documents(thalweg) == FILES
        digest = thalweg.run_json("verify")["digest"]
        assert thalweg.run_json("load", str(files))["outcomes"] == {"unchanged": FILES}
        assert thalweg.run_json("verify")["digest"] == digest
    with installation(tmp_path / "other", THALWEG_EMBEDDING__PROVIDER="hashing") as other:
        assert other.run_json("load", str(files))["outcomes"] == {"indexed": FILES}
        assert other.run_json("verify")["digest"] == digest


def heed_interrupts() -> None:
    """Whoever runs the tests in the background of a shell has them, and all they start, ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def documents(thalweg: Installation) -> int:
    status = httpx.get(f"{thalweg.url}/v1/status", timeout=30).json()
    return int(status["counts"]["documents"])
