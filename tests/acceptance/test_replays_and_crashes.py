"""The same stream twice, a killed worker, a broker that hangs: the stores end up as if nothing had happened."""

import json
import lzma
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes.installation import HASHING, ROOT, Installation, installation
from tests.support.waiting import wait_until

SAMPLE = ROOT / "deploy" / "samples" / "peps.jsonl.xz"


@cache
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


def hangs_as_both_say(running: Installation) -> bool:
    """Whether the service and the worker say that Kafka is away; searches are answered all the while."""
    answer = running.search(q="which proposal changes the grammar", collection="peps")
    assert answer["hits"]
    assert not answer["failed_channels"]
    status = httpx.get(f"{running.url}/v1/status", timeout=30).json()
    worker_log = (running.data_dir / "logs" / "worker.log").read_text()
    return status["readiness"]["kafka"] == "unreachable" and "kafka does not answer" in worker_log


def test_a_load_through_a_killed_worker_and_a_kafka_that_hangs_loses_nothing_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    settings = HASHING | {"THALWEG_WORKER__COMMIT_DOCUMENTS": "5"}
    with installation(tmp_path / "data", **settings) as running, ExitStack() as stack:
        command = [sys.executable, "-m", "thalweg", "load", str(SAMPLE), "--data-dir", str(running.data_dir), "--json"]
        loading = stack.enter_context(subprocess.Popen([*command, "--patience", "120"], stdout=subprocess.DEVNULL))
        stack.callback(loading.kill)
        wait_until(lambda: len(listed(running)) >= 5, "a load under way", 180)
        running.child("worker").kill()
        wait_until(lambda: "The worker is ready again." in running.said(), running.said, 180)
        assert loading.poll() is None
        kafka = running.child("kafka.Kafka")
        kafka.suspend()
        try:
            wait_until(lambda: hangs_as_both_say(running), "the service and the worker say that Kafka hangs", 120)
        finally:
            kafka.resume()
        assert loading.wait(240) == 0
        assert listed(running) == final_tree()
        digest = verified(running)["digest"]

        running.run("load", str(SAMPLE))
        assert listed(running) == final_tree()
        assert verified(running)["digest"] == digest, "an undisturbed pass over all of it changes nothing"
