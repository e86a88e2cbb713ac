"""`thalweg collections chunking`, at a service that is a double."""

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from query_api import collections_cli
from query_api.cli import app as query_commands
from schemas.exits import Exit


class SettingsClient:
    """Takes every choice, and notes it."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return {"path": path, "params": params}

    def put(self, path: str, body: bytes) -> dict[str, Any]:
        self.asked = {"path": path, "body": json.loads(body)}
        return {"position": "0:3"}

    def delete(self, path: str) -> dict[str, Any]:
        self.asked = {"path": path}
        return {"position": "0:4"}

    def close(self) -> None:
        return


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Any, SettingsClient]:
    made, app = SettingsClient(), typer.Typer()
    monkeypatch.setattr(collections_cli, "service_client", lambda url, data_dir: made)
    app.add_typer(query_commands)
    app.add_typer(collections_cli.app)
    return CliRunner().invoke(app, list(arguments)), made


def test_a_collections_chunking_is_shown_chosen_and_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("collections", "chunking", "my notes")
    path = "/v1/collections/my%20notes/chunking"
    result, _ = run(monkeypatch, *command, "--json")
    assert json.loads(result.output) == {"path": path, "params": None}
    result, stub = run(monkeypatch, *command, "--child-characters", "200", "--method", "semantic")
    assert stub.asked == {"path": path, "body": {"child_characters": 200, "method": "semantic"}}
    assert "0:3" in result.output
    result, stub = run(monkeypatch, *command, "--reset")
    assert (stub.asked, result.exit_code) == ({"path": path}, 0)
    result, stub = run(monkeypatch, *command, "--reset", "--language", "de")
    assert (stub.asked, result.exit_code) == ({}, Exit.USAGE)
