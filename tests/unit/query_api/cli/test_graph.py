"""The commands `thalweg graph …`, at a service that is a double."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import app as base_commands
from query_api.cli import edits, graph
from schemas.errors import Failure

NODE = {"id": "petrel", "collection": "a", "label": "Team [b]Petrel", "type": "team", "text": "Owns Beacon."}
EDGE = {
    "id": "e1",
    "collection": "a",
    "source": "petrel",
    "target": "beacon",
    "predicate": "owns",
    "missing": ["target"],
}


class GraphClient:
    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.breaks = False

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.asked.append((path, params))
        return {"nodes": [NODE], "edges": [EDGE], "next_cursor": None}

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        self.asked.append((path, json.loads(body)))
        return {"id": "x", "collection": "a", "position": "0:3", "token": None}

    def delete(self, path: str) -> dict[str, Any]:
        self.asked.append((path, None))
        return {"id": "x", "collection": "a", "position": "0:4", "token": None}

    def download(self, path: str, params: dict[str, Any]) -> Iterator[bytes]:
        self.asked.append((path, params))
        yield b"<graphml>"
        if self.breaks:
            raise Failure("It broke.")
        yield b"</graphml>"

    def close(self) -> None:
        return


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> GraphClient:
    made = GraphClient()
    for module in (base_commands, edits, graph):
        monkeypatch.setattr(module, "service_client", lambda url, data_dir: made)
    return made


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(graph.app, ["graph", *arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


def test_nodes_and_edges_are_listed(client: GraphClient) -> None:
    assert "petrel  a  Team [b]Petrel (team)" in run("nodes", "list", "--type", "team")
    assert "a  petrel ─owns→ beacon" in (told := run("edges", "list", "--node", "petrel"))
    assert "target not there" in told
    assert client.asked == [
        ("/v1/nodes", {"type": "team", "limit": 100}),
        ("/v1/edges", {"node": "petrel", "limit": 100}),
    ]


def test_nodes_and_edges_are_made_and_deleted(client: GraphClient) -> None:
    assert "0:3" in run("nodes", "add", "Team Petrel", "--type", "team", "--id", "petrel", "--property", "size=4")
    run("edges", "add", "petrel", "owns", "Beacon", "--weight", "0.5", "--collection", "a", "--json")
    run("nodes", "delete", "petrel", "--collection", "a b")
    run("edges", "delete", "e/1")
    node = {"id": "petrel", "label": "Team Petrel", "type": "team", "text": "", "properties": {"size": "4"}}
    edge = {"source": "petrel", "predicate": "owns", "target": "Beacon", "weight": 0.5, "note": "", "properties": {}}
    assert client.asked == [
        ("/v1/nodes", node),
        ("/v1/edges", edge | {"collection": "a"}),
        ("/v1/nodes/petrel?collection=a+b", None),
        ("/v1/edges/e%2F1", None),
    ]
    assert "not name=value" in run("nodes", "add", "x", "--property", "size", exit_code=2)


def test_the_graph_is_written_to_a_file_only_as_a_whole(client: GraphClient, tmp_path: Path) -> None:
    file = tmp_path / "graph.xml"
    assert run("export", "--collection", "a") == "<graphml></graphml>"
    run("export", str(file), "--format", "jsonl")
    assert file.read_bytes() == b"<graphml></graphml>"
    assert [params["format"] for _, params in client.asked] == ["graphml", "jsonl"]
    client.breaks = True
    run("export", str(tmp_path / "other.xml"), exit_code=1)
    assert not (tmp_path / "other.xml").exists()
