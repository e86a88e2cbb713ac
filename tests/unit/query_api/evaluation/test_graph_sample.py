"""Entities and statements drawn from a service, each with its sentence, for a person to judge."""

import io
from typing import Any

from rich.console import Console

from query_api.client import ServiceClient
from query_api.evaluation.graph_sample import draw_sample, show_sample
from schemas.progress_bars import Bar

BEACON = {
    "id": "b" * 32,
    "collection": "company",
    "label": "Beacon [1]",
    "type": "product",
    "confidence": 0.9,
    "mentions": 3,
    "names": 1,
}
SENTENCE = {"sentence": "Beacon requires Kafka.", "document_id": "beacon", "title": "Beacon", "chunk_id": "c"}
STATEMENT = {
    "subject": {"label": "Beacon"},
    "predicate": "depends_on",
    "object": {"label": "Kafka"},
    "strength": 0.9,
    "evidence": [SENTENCE],
}


class Scripted(ServiceClient):
    """Answers from a graph of one entity and one statement, which nothing evidences where it is `silent`."""

    def __init__(self, *, silent: bool = False) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.silent = silent

    def get(self, path: str, params: Any = None) -> dict[str, Any]:
        self.asked.append((path, params))
        if path == "/v1/entities":
            return {"entities": [BEACON], "next_cursor": None}
        if path == "/v1/statements":
            return {"statements": [STATEMENT | ({"evidence": []} if self.silent else {})]}
        return BEACON | {"example": None if self.silent else SENTENCE}


def test_what_is_drawn_has_its_sentence_and_document() -> None:
    client = Scripted()
    drawn = draw_sample(client, "company", 5, 7, Bar)
    assert client.asked == [
        ("/v1/entities", {"sample": 7, "limit": 5, "collection": "company"}),
        (f"/v1/entities/{BEACON['id']}", {"limit": 1}),
        ("/v1/statements", {"sample": 7, "limit": 5, "collection": "company"}),
    ]
    assert (drawn["seed"], drawn["collection"]) == (7, "company")
    (entity,), (statement,) = drawn["entities"], drawn["statements"]
    assert (entity["label"], entity["type"], entity["sentence"]) == ("Beacon [1]", "product", "Beacon requires Kafka.")
    assert (statement["subject"], statement["predicate"], statement["object"]) == ("Beacon", "depends_on", "Kafka")
    assert (statement["document_id"], statement["title"]) == ("beacon", "Beacon")


def test_a_sample_is_shown_numbered_for_a_person() -> None:
    shown = io.StringIO()
    show_sample(Console(file=shown, width=200), draw_sample(Scripted(), None, 5, 7, Bar))
    assert shown.getvalue().splitlines() == [
        "Entities (1)",
        "   1 Beacon [1]: product",
        "     Beacon requires Kafka. [beacon]",
        "Statements (1)",
        "   1 Beacon -depends_on-> Kafka",
        "     Beacon requires Kafka. [beacon]",
    ]


def test_what_no_sentence_says_is_marked() -> None:
    drawn = draw_sample(Scripted(silent=True), None, 5, 7, Bar)
    assert drawn["statements"][0]["sentence"] is None
    shown = io.StringIO()
    show_sample(Console(file=shown, width=200), drawn)
    assert shown.getvalue().count("(no sentence)") == 2
