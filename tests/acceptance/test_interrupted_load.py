"""A load that is interrupted while it publishes, and repeated: the stores are those of a load in one go."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

DOCUMENTS = 1_200


def test_interrupted_load_repeated_leaves_equal_stores(hashing: Installation, tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": f"{each}", "content": f"Station {each} is {each % 97} m high."}) for each in range(DOCUMENTS)
    ]
    (tmp_path / "stations.jsonl").write_text("\n".join(lines))
    load = ("load", "--collection", "stations")
    with subprocess.Popen(
        [sys.executable, "-m", "thalweg", *load, "-", "--data-dir", str(hashing.data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 -- no thread of ours is in the middle of anything here
    ) as loading:
        assert loading.stdin is not None
        loading.stdin.write("".join(f"{line}\n" for line in lines[: DOCUMENTS // 2]))
        loading.stdin.flush()  # and stays open: the load waits for the others
        wait_until(lambda: stations(hashing) > 0, "some of it is searchable", 60)
        loading.send_signal(signal.SIGINT)
        _, said = loading.communicate(timeout=30)
    assert loading.returncode == 1
    assert "To go on, do the same again" in said

    load = (*load, str(tmp_path / "stations.jsonl"))
    again = hashing.run_json(*load)
    assert again["outcomes"].keys() <= {"indexed", "unchanged", "superseded"}
    assert again["outcomes"]["unchanged"] > 0
    assert stations(hashing) == DOCUMENTS
    report = hashing.verify()
    assert report["ok"]
    assert hashing.run_json(*load)["outcomes"] == {"unchanged": DOCUMENTS}, "all of it is as one load leaves it"
    assert hashing.verify()["digest"] == report["digest"]


def heed_interrupts() -> None:
    """Whoever runs the tests in the background of a shell has them, and all they start, ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stations(thalweg: Installation) -> int:
    collections = httpx.get(f"{thalweg.url}/v1/collections", timeout=30).json()["collections"]
    return sum(each["documents"] for each in collections if each["name"] == "stations")
