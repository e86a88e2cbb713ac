"""The commands `thalweg entities …`, at a service that is a double."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import edits, entities


class EntitiesClient:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        self.asked.append(("POST", path, json.loads(body)))
        return {"id": "m1", "collection": "a", "position": "0:3"}

    def put(self, path: str, body: bytes) -> dict[str, Any]:
        self.asked.append(("PUT", path, json.loads(body)))
        return {"id": "e1", "collection": "a", "position": "0:4"}

    def close(self) -> None:
        return


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, exit_code: int = 0) -> tuple[str, EntitiesClient]:
    client = EntitiesClient()
    monkeypatch.setattr(edits, "service_client", lambda url, data_dir: client)
    result = CliRunner().invoke(entities.app, ["entities", *arguments])
    assert result.exit_code == exit_code, result.output
    return result.output, client


def test_entities_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    told, client = run(monkeypatch, "merge", "CDC", "Centers for Disease Control", "--name", "CDC", "--by", "ada")
    body = {"entities": ["CDC", "Centers for Disease Control"], "name": "CDC", "by": "ada"}
    assert client.asked == [("POST", "/v1/entities/merge", body)]
    assert "m1 in the collection a: in the log at 0:3." in told


def test_an_entity_is_edited_and_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = run(monkeypatch, "edit", "TCP/IP", "--type", "concept", "--split", "--collection", "a", "--json")
    body = {"type": "concept", "split": True, "collection": "a"}
    assert client.asked == [("PUT", "/v1/entities/TCP%2FIP", body)]
    _, client = run(monkeypatch, "edit", "CDC", "--reset")
    assert client.asked == [("PUT", "/v1/entities/CDC", {})]
    for arguments in (["edit", "CDC"], ["edit", "CDC", "--reset", "--name", "x"]):
        told, client = run(monkeypatch, *arguments, exit_code=2)
        assert "--reset, alone" in told
        assert client.asked == []
