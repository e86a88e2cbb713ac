"""`thalweg replay`: a part of the log applied again changes nothing where all is well, and repairs what was lost."""

import json
from pathlib import Path

import httpx
import lancedb
import pytest

from indexer.generation_folders import current_generation
from indexer.store_verification import verify_when_complete
from tests.support.processes.installation import HASHING, Installation, installation

DOCUMENTS = 40


def lines(first: int, last: int) -> str:
    made = (
        {"id": f"d{number}", "collection": "c", "content": f"Gauge {number} stands at the Thur near Andelfingen."}
        for number in range(first, last)
    )
    return "\n".join(map(json.dumps, made))


def tables_of(thalweg: Installation) -> list[lancedb.Table]:
    generation = current_generation(thalweg.data_dir)
    assert generation is not None
    connection = lancedb.connect(generation.lance_dir)
    return [connection.open_table(name) for name in ("chunks", "passages", "documents")]


def lose(thalweg: Installation, condition: str) -> None:
    """Rows that vanish from all tables beside the running worker."""
    for table in tables_of(thalweg):
        table.delete(condition)


def digest(thalweg: Installation) -> str:
    report = verify_when_complete(thalweg.data_dir, 60)
    assert report.ok, report
    return report.digest


@pytest.mark.nightly  # of stores in memory: unit tests of `indexing/replay`
def test_replay_changes_only_what_was_lost(tmp_path: Path) -> None:
    with installation(tmp_path / "data", **HASHING) as thalweg:
        thalweg.run("load", "-", text_in=lines(0, DOCUMENTS))
        token = httpx.delete(f"{thalweg.url}/v1/documents/d0", params={"collection": "c"}).json()["token"]
        thalweg.search(q="gauge", after=token, wait_seconds=60)
        before = digest(thalweg)
        versions = [table.version for table in tables_of(thalweg)]

        done = thalweg.run_json("replay", "--since", "1h")
        assert (done["state"], done["records"], done["of"]) == ("done", DOCUMENTS + 1, DOCUMENTS)
        assert (done["changed"], done["kept"], done["failed"]) == (0, 0, 0)
        assert digest(thalweg) == before
        assert [table.version for table in tables_of(thalweg)] == versions

        lose(thalweg, "document_id in ('d7', 'd8', 'd9')")
        assert thalweg.run_json("replay", "--since", "1h", "--dry-run")["changed"] == 3
        said = thalweg.run("replay", "--since", "1h").stdout
        assert f"{DOCUMENTS - 3} unchanged, 3 changed." in said
        assert digest(thalweg) == before
        hits = thalweg.search(q="gauge 8 stands at the Thur", k=DOCUMENTS, cache=False)["hits"]
        assert {"d7", "d8", "d9"} <= {hit["document_id"] for hit in hits}

        newest = httpx.get(f"{thalweg.url}/v1/replays").json()["replays"][0]
        assert (newest["state"], newest["changed"], newest["dry_run"]) == ("done", 3, False)
        outside = httpx.post(f"{thalweg.url}/v1/replays", json={"from": "0:99999"})
        assert (outside.status_code, "The log does not reach 0:99999" in outside.json()["detail"]) == (400, True)
