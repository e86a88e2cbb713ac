"""`thalweg entities list` and `show`, at a service that is a double."""

from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import app as cli_app
from query_api.cli import entities

BEACON = {"id": "b" * 32, "collection": "company", "label": "Beacon", "type": "product", "mentions": 4, "names": 1}
KAFKA = {"id": "c" * 32, "label": "Kafka", "type": "product"}
SENTENCE = {
    "sentence": "Beacon requires Kafka.", "chunk_id": "1", "collection": "company", "document_id": "beacon",
    "title": "Beacon",
}  # fmt: skip
DETAIL = BEACON | {
    "definition": {"text": "Beacon is a service.", "source": SENTENCE},
    "aliases": [{"surface": "Beacon", "mentions": 3}, {"surface": "BEACON", "mentions": 1}],
    "statements": [
        {
            "subject": BEACON,
            "predicate": "depends_on",
            "object": KAFKA,
            "further": [{"role": "time", "entity": {"label": "2024"}}],
            "strength": 0.9,
            "by_people": [],
            "stated": 1,
            "evidence": [SENTENCE],
        }
    ],
    "documents": [{"document_id": "beacon", "title": "Beacon", "mentions": 4, "about": True}],
    "neighbours": [{"entity": KAFKA, "predicates": [], "shared_chunks": 2, "strength": 0.0}],
    "consolidated": [
        {"entity": {"id": None, "label": "Lisbon", "type": "place"}, "documents": 2, "document_ids": ["a"]}
    ],
    "withdrawn": [
        {
            "subject": BEACON,
            "predicate": "depends_on",
            "object": {"id": None, "label": "Redis", "type": None},
            "further": [],
            "strength": 0.9,
            "by_people": [],
            "stated": 1,
            "evidence": [SENTENCE | {"sentence": None}],
        }
    ],
}


class Answering:
    """A client of a service that gives one answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def get(self, path: str, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((path, params))
        return self.answer

    def close(self) -> None:
        pass


def shown(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], *arguments: str) -> tuple[str, Answering]:
    client = Answering(answer)
    monkeypatch.setattr(cli_app, "service_client", lambda url, data_dir: client)
    result = CliRunner().invoke(entities.app, ["entities", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout, client


def test_a_list_shows_a_line_each_and_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    text, client = shown(monkeypatch, {"entities": [BEACON], "next_cursor": "x1"}, "list", "--prefix", "be")
    assert text.splitlines()[1].split() == ["b" * 32, "product", "4", "company", "Beacon"]
    assert "--cursor x1" in text
    assert client.asked[0][0] == "/v1/entities"
    assert client.asked[0][1]["prefix"] == "be"
    nothing, _ = shown(monkeypatch, {"entities": [], "next_cursor": None}, "list")
    assert nothing == "There are no entities.\nLooked in all collections; --collection names one.\n"
    named, _ = shown(monkeypatch, {"entities": [], "next_cursor": None}, "list", "--collection", "company")
    assert named == "There are no such entities.\n"


def test_an_entity_is_shown_with_its_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("show", "TCP/IP", "--collection", "company", "--since", "7d", "--as-of", "12")
    text, client = shown(monkeypatch, DETAIL, *asked)
    assert client.asked == [
        ("/v1/entities/TCP%2FIP", {"collection": "company", "limit": 10, "since": "7d", "as_of": "12"})
    ]
    for line in (
        "Beacon is a service. [beacon]",
        "also written BEACON",
        "Beacon ─depends_on→ Kafka, time 2024 (0.9)",
        "Beacon requires Kafka. [company/beacon]",
        "beacon: Beacon (4 mentions, about it)",
        "Kafka (2 chunks)",
        "Lisbon (in 2 documents)",
        "no longer stated",
        "Beacon ─depends_on→ Redis (0.9)",
    ):
        assert line in text
