"""`thalweg graph communities`, at a service that is a double."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import app as base_commands
from query_api.cli.graph import app as graph_commands

SENTENCE = {"text": "The Elbe is [very] long.", "chunk_id": "c1", "document_id": "rivers/1"}
LISTED = {
    "id": "1" * 32,
    "collection": "a",
    "level": "medium",
    "title": "Places: Elbe, Oder",
    "size": 4,
    "type": "place",
    "parent": None,
    "summary": [SENTENCE],
}
PARENT = {"id": "2" * 32, "level": "coarse", "title": "Elbe, Otto", "size": 8}
DETAIL = LISTED | {
    "parent_community": PARENT,
    "children": [],
    "members": [{"id": "3" * 32, "label": "Elbe", "type": "place", "strength": 1.0}],
    "graph_position": 3,
}


class Client:
    asked: tuple[str, Any] = ("", None)

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        Client.asked = (path, params)
        if path == "/v1/communities":
            return {"communities": [LISTED], "next_cursor": "abc", "graph_position": 3, "made_at": "now"}
        return DETAIL

    def close(self) -> None:
        return


@pytest.fixture(autouse=True)
def service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_commands, "service_client", lambda *_: Client())


def run(*arguments: str) -> str:
    result = CliRunner().invoke(graph_commands, ["graph", "communities", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_list_shows_titles_summaries_with_their_documents_and_the_next_page() -> None:
    shown = run("--level", "medium", "-q", "elbe", "--limit", "1")
    assert Client.asked == ("/v1/communities", {"level": "medium", "q": "elbe", "limit": 1})
    assert "Places: Elbe, Oder" in shown
    assert "The Elbe is [very] long. [rivers/1]" in shown
    assert "--cursor abc" in shown


def test_one_is_shown_with_its_members_and_parent() -> None:
    shown = run("1" * 32)
    assert Client.asked == (f"/v1/communities/{'1' * 32}", {"limit": 20})
    assert "part of Elbe, Otto (coarse, 8 entities)" in shown
    assert "- Elbe (place)" in shown


def test_json_is_the_answer_of_the_service() -> None:
    assert json.loads(run("--json", "--limit", "1"))["communities"] == [LISTED]
