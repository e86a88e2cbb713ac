"""The commands `thalweg reviews …`, at a service that is a double."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import app as base_commands
from query_api.cli import reviews

REVIEW = {
    "id": "5" * 32, "collection": "a", "kind": "duplicate", "state": "open", "about": None, "statements": [],
    "score": 0.75, "reason": "Initials may stand for words.",
    "name": None, "by": None, "position": None, "overruled": False,
    "entities": [
        {"id": "a" * 32, "name": "M. [bold]Okafor", "type": "person", "mentions": 1},
        {"id": "b" * 32, "name": "", "type": "", "mentions": 0},
    ],
}  # fmt: skip


STATED = [
    {
        "subject": {"label": team}, "predicate": "owns", "object": {"label": "Kestrel"}, "further": [], "strength": 0.8,
        "by_people": [],
        "evidence": [
            {"sentence": f"{team} owns Kestrel.", "title": "T", "collection": "a", "document_id": f"{team}.md"}
        ],
    }
    for team in ("Petrel", "Heron")
]  # fmt: skip
CONFLICT = REVIEW | {"kind": "conflict", "about": "owner", "statements": STATED}


class ReviewsClient:
    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.asked.append((path, params))
        shown = CONFLICT if (params or {}).get("kind") == "conflict" else REVIEW
        return {"reviews": [shown], "next_cursor": "c1"}

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        self.asked.append((path, json.loads(body)))
        return {"id": "5" * 32, "collection": "a", "position": "0:3"}

    def close(self) -> None:
        return


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[str, ReviewsClient]:
    client = ReviewsClient()
    for module in (base_commands, reviews):
        monkeypatch.setattr(module, "service_client", lambda url, data_dir: client)
    result = CliRunner().invoke(reviews.app, ["reviews", *arguments])
    assert result.exit_code == 0, result.output
    return result.output, client


def test_reviews_are_listed_with_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    told, client = run(monkeypatch, "list", "--collection", "a", "--limit", "1")
    assert client.asked == [("/v1/reviews", {"collection": "a", "state": "open", "min_score": 0.0, "limit": 1})]
    assert "M. [bold]Okafor (person)" in told
    assert "b" * 32 in told
    assert "Initials may stand for words." in told
    assert "--cursor c1" in told
    told, client = run(monkeypatch, "list", "--limit", "1")
    assert "collection" not in client.asked[0][1]
    assert told.splitlines()[1].split()[1:4] == ["a", "open,", "0.75"]
    assert "Looked in all collections" in told
    told, _ = run(monkeypatch, "list", "--limit", "1", "--json")
    assert json.loads(told)["reviews"] == [REVIEW]


def test_conflict_is_listed_with_both_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    listed, client = run(monkeypatch, "list", "--kind", "conflict", "--limit", "1")
    assert client.asked[0][1]["kind"] == "conflict"
    assert "open, conflict, 0.75" in " ".join(listed.split())
    for team in ("Petrel", "Heron"):
        assert f"{team} owns Kestrel. [a/{team}.md]" in listed


@pytest.mark.parametrize("decision", ["accept", "reject", "undo"])
def test_a_decision_is_sent(monkeypatch: pytest.MonkeyPatch, decision: str) -> None:
    told, client = run(monkeypatch, "decide", "a/b", decision, "--collection", "a", "--by", "ada")
    assert client.asked == [("/v1/reviews/a%2Fb", {"collection": "a", "decision": decision, "by": "ada"})]
    assert "0:3" in told
