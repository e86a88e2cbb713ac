"""The graph of an installation, as a file, in another one: the same, however often it is imported."""

import json
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes.installation import HASHING, Installation, installation

WIKI = Path("tests/bench/folders/wiki/documents.jsonl")
ISLANDS = Path("deploy/samples/islands.jsonl")


def export(thalweg: Installation, collection: str, file: Path, file_format: str = "jsonl") -> dict[str, Any]:
    """What the file says of itself."""
    params = {"collection": collection, "format": file_format}
    answer = httpx.get(f"{thalweg.url}/v1/graph/export", params=params, timeout=70)
    file.write_bytes(answer.raise_for_status().content)
    said: dict[str, Any] = json.loads(file.read_bytes().splitlines()[-1])["graph"] if file_format == "jsonl" else {}
    return said


def test_graph_is_the_same_in_another_installation(hashing: Installation, tmp_path: Path) -> None:
    edges = [
        {"id": "e-1", "source": "thirza-munn", "target": "sea/teams/dispatch.md", "predicate": "reads"},
        {"id": "e-2", "source": "thirza-munn", "target": "Dispatch", "predicate": "knows", "weight": 0.3},
    ]
    wiki, islands = tmp_path / "wiki.jsonl", tmp_path / "islands.jsonl"
    wiki.write_text("".join(WIKI.read_text().splitlines(keepends=True)[:12]))
    islands.write_text(ISLANDS.read_text().replace('"collection": "islands"', '"collection": "sea"'))
    hashing.run("load", "--collection", "sea", str(wiki), str(islands))
    for edge in edges:
        made = httpx.post(f"{hashing.url}/v1/edges", json={"collection": "sea", **edge}, timeout=70).raise_for_status()
    after = {"after": made.json()["token"], "wait_seconds": 60, "collection": "sea"}
    assert len(httpx.get(f"{hashing.url}/v1/edges", params=after, timeout=70).json()["edges"]) == 100
    for file_format in ("csv", "graphml"):
        export(hashing, "sea", tmp_path / f"sea.{file_format}", file_format)
    first = export(hashing, "sea", tmp_path / "sea.jsonl")
    refused = hashing.run("graph", "import", str(tmp_path / "sea.jsonl"), check=False)
    assert refused.returncode == 1
    assert "is in the collection, and says itself" in refused.stdout
    with installation(tmp_path / "other", **HASHING) as other:
        rehearsed = other.run_json("graph", "import", str(tmp_path / "sea.graphml"), "--dry-run")
        assert (rehearsed["published"], rehearsed["graph"]) == (0, first)
        once = other.run_json("graph", "import", str(tmp_path / "sea.jsonl"))
        assert (once["graph"], once["refused"]) == (first, [])
        assert export(other, "sea", tmp_path / "other.jsonl")["digest"] == first["digest"]
        again = other.run_json("graph", "import", str(tmp_path / "sea.csv"), "--url", other.url)
        assert again["published"] == once["published"]
        assert export(other, "sea", tmp_path / "again.jsonl") == first
