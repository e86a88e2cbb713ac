"""The same stream twice, a killed worker, a broker that hangs: the stores end up as if nothing had happened.

These stories need no meaning, so they run on the hashing encoder.
"""

import json
import lzma
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes.installation import ROOT, Installation, installation
from tests.support.waiting import wait_until

SAMPLE = ROOT / "deploy" / "samples" / "peps.jsonl.xz"
HASHING = {"THALWEG_EMBEDDING__PROVIDER": "hashing"}
HANG_SECONDS = 30.0


def final_tree() -> set[str]:
    """The documents that live after the last event."""
    live: set[str] = set()
    with lzma.open(SAMPLE, "rt") as lines:
        for event in map(json.loads, lines):
            (live.discard if event.get("deleted") else live.add)(event["id"])
    return live


def listed(running: Installation) -> set[str]:
    found: set[str] = set()
    cursor: str | None = None
    while True:
        parameters = {"collection": "peps", "limit": 20} | ({"cursor": cursor} if cursor else {})
        page = httpx.get(f"{running.url}/v1/documents", params=parameters).raise_for_status().json()
        found |= {document["id"] for document in page["documents"]}
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def verified(running: Installation) -> dict[str, Any]:
    report = running.run_json("verify", "--wait-seconds", "60")
    assert report["ok"], report
    assert report["stale_rows"] == 0, "rows of replaced revisions are left"
    return dict(report)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Installation, str]]:
    """An installation that took the sample once, in peace, and the digest it came to."""
    with installation(tmp_path_factory.mktemp("undisturbed") / "data", **HASHING) as running:
        running.run("load", str(SAMPLE))
        yield running, verified(running)["digest"]


def test_the_stream_leaves_the_final_tree_and_a_second_pass_changes_nothing(
    undisturbed: tuple[Installation, str],
) -> None:
    running, digest = undisturbed
    assert listed(running) == final_tree()
    running.run("load", str(SAMPLE))
    assert listed(running) == final_tree()
    assert verified(running)["digest"] == digest


def begin_load(running: Installation) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "thalweg", "load", str(SAMPLE), "--data-dir", str(running.data_dir), "--json"]
    return subprocess.Popen([*command, "--patience", "120"], stdout=subprocess.DEVNULL)


def some_are_indexed(running: Installation) -> bool:
    return 5 <= len(listed(running)) < len(final_tree())


def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    undisturbed: tuple[Installation, str], tmp_path: Path
) -> None:
    environment = HASHING | {"THALWEG_WORKER__COMMIT_DOCUMENTS": "10"}
    with installation(tmp_path / "data", **environment) as running:
        loading = begin_load(running)
        wait_until(lambda: some_are_indexed(running), "a load half-way", 60)
        running.child("worker").kill()
        assert loading.wait(180) == 0
        assert listed(running) == final_tree()
        assert verified(running)["digest"] == undisturbed[1]


def test_searches_go_on_while_kafka_hangs_and_ingestion_resumes_by_itself(
    undisturbed: tuple[Installation, str], tmp_path: Path
) -> None:
    environment = HASHING | {"THALWEG_WORKER__COMMIT_DOCUMENTS": "10"}
    with installation(tmp_path / "data", **environment) as running:
        loading = begin_load(running)
        wait_until(lambda: some_are_indexed(running), "a load half-way", 60)
        kafka = running.child("kafka.Kafka")
        kafka.suspend()
        try:
            until = time.monotonic() + HANG_SECONDS
            while time.monotonic() < until:
                answer = running.search(q="which proposal changes the grammar", collection="peps")
                assert answer["hits"]
                assert not answer["failed_channels"]
        finally:
            kafka.resume()
        assert loading.wait(240) == 0
        assert listed(running) == final_tree()
        assert verified(running)["digest"] == undisturbed[1]
