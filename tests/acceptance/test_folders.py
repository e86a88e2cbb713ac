"""A folder that is synced by Kafka and through the service, and watched, as somebody does it at a terminal."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from schemas.errors import Exit
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

COLLECTION = "followed"
SYNC = ("--collection", COLLECTION, "--sync", "--json")


def held(thalweg: Installation) -> set[str]:
    listed = httpx.get(f"{thalweg.url}/v1/documents", params={"collection": COLLECTION}, timeout=30).json()
    return {document["id"] for document in listed["documents"]}


def test_a_folder_is_kept_equal_with_its_collection(hashing: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("mill", "weir", "lock"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe {name} by the river.")
    assert hashing.run_json("load", str(folder), *SYNC)["outcomes"] == {"indexed": 3}
    posted = {"id": "posted.md", "collection": COLLECTION, "content": "# Posted\n\nNobody's file."}
    token = httpx.post(f"{hashing.url}/v1/documents", json=posted, timeout=30).json()["token"]
    hashing.search(q="file", collection=COLLECTION, after=token)

    (folder / "lock.md").unlink()
    asked = hashing.run("load", str(folder), *SYNC, check=False, text_in="")
    assert asked.returncode == Exit.USAGE
    assert "lock.md" in asked.stderr
    assert held(hashing) == {"mill.md", "weir.md", "lock.md", "posted.md"}
    synced = hashing.run_json("load", str(folder), *SYNC, "--yes", "--url", hashing.url)
    assert (synced["left_folder"], synced["outcomes"]) == (["lock.md"], {"indexed": 2, "deleted": 1})
    assert held(hashing) == {"mill.md", "weir.md", "posted.md"}

    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "README.md").write_text("# Nobody means this")
    (folder / ".gitignore").write_text("/weir.md\n")
    ignoring = hashing.run_json("load", str(folder), *SYNC, "--yes", "--url", hashing.url)
    assert (ignoring["left_folder"], ignoring["left_out"]["gitignore"]) == (["weir.md"], [str(folder / "weir.md")])
    assert ignoring["left_out"]["dependencies"] == [f"{folder / 'node_modules'}/"]
    assert held(hashing) == {"mill.md", "posted.md"}
    (folder / ".gitignore").unlink()
    assert hashing.run_json("load", str(folder), *SYNC)["outcomes"] == {"indexed": 1, "unchanged": 1}
    _follow(hashing, folder, tmp_path / "watch.log")

    away = hashing.run("load", str(folder), *SYNC, "--url", "http://127.0.0.1:1", check=False)
    assert away.returncode == Exit.UNREACHABLE
    ids = sorted(held(hashing))
    deleted = hashing.run_json("delete", *ids, "--collection", COLLECTION, "--url", hashing.url)
    assert deleted["outcomes"] == {"deleted": len(ids)}
    assert held(hashing) == set()


def _follow(thalweg: Installation, folder: Path, log: Path) -> None:
    """Write, rename and delete beside a `thalweg load --watch`, and end that."""
    command = [sys.executable, "-m", "thalweg", "load", str(folder), "--collection", COLLECTION, "--watch"]
    with log.open("w") as output:
        watching = subprocess.Popen(
            [*command, "--data-dir", str(thalweg.data_dir)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | thalweg.environment | {"PYTHONUNBUFFERED": "1"},
        )

    def told(line: str) -> None:
        wait_until(lambda: line in log.read_text(), f"{line!r} is told", 60)

    try:
        told("Following ")
        (folder / "bridge.md").write_text("# Bridge\n\nA bridge of stone.")
        told("created  bridge.md: indexed")
        (folder / "bridge.md~").write_text("what an editor leaves")
        (folder / "bridge.md").rename(folder / "arch.md")
        told("renamed  bridge.md → arch.md: indexed")
        (folder / "mill.md").unlink()
        told("deleted  mill.md: deleted")
        (folder / ".gitignore").write_text("/weir.md\n")
        told("ignored  weir.md (by .gitignore): deleted")
        (folder / ".gitignore").unlink()
        told("created  weir.md: indexed")
        assert "~" not in log.read_text().partition("Following ")[2].partition("\n")[2]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == Exit.OK
    finally:
        if watching.poll() is None:
            watching.kill()
            watching.wait()
    wait_until(lambda: held(thalweg) == {"arch.md", "weir.md", "posted.md"}, "the service shows it", 30)
