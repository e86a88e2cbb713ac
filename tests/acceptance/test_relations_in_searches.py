"""The sample of a graph that people made, with the real model: what two of its edges lead to is found, and goes."""

from pathlib import Path
from typing import Any

import httpx

from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

SAMPLE = Path(__file__).parents[2] / "deploy" / "samples" / "islands.jsonl"
EDGE = "engine-d6.depends_on.thirza-munn"
QUESTIONS = (
    "who can repair the gearbox of the Fulmar?",
    "what is needed to keep the Fulmar running?",
    "what does the Fulmar depend on?",
    "on whom does the Fulmar depend?",
    "gearbox trouble on the Fulmar",
    "who has drawings of the gearbox of the Fulmar?",
    "how is the Fulmar driven?",
    "who knows the engine of the Fulmar?",
    "what powers the Fulmar?",
    "does the Fulmar depend on one person alone?",
)
METHODS: tuple[dict[str, Any], ...] = (
    {"mode": "hybrid"},
    {"mode": "graph"},
    {"mode": "graph", "graph_method": "expansion"},
)
WAY = [("question", "Fulmar"), ("Fulmar", "D6 engine"), ("D6 engine", "Thirza Munn")]


def found(thalweg: Installation, question: str, **request: Any) -> dict[str, Any] | None:
    hits = thalweg.search(q=question, collection="islands", **request)["hits"]
    return next((hit for hit in hits if hit["document_id"] == "node:thirza-munn"), None)


def edges(thalweg: Installation) -> dict[str, Any]:
    answer = httpx.get(f"{thalweg.url}/v1/edges", params={"collection": "islands", "limit": 1}, timeout=70)
    return dict(answer.json())


def test_node_two_edges_away_is_found_until_its_edge_is_deleted(thalweg: Installation) -> None:
    thalweg.run("load", str(SAMPLE))
    wait_until(lambda: edges(thalweg)["total"] == 120, "the edges in the graph", 30)
    for question in QUESTIONS:
        for method in METHODS:
            hit = found(thalweg, question, **method)
            assert hit is not None, (question, method)
            assert [(step["from"], step["to"]) for step in hit["path"]] == WAY, (question, method)
            assert [step["edge"] for step in hit["path"][1:]] == ["powered_by", "depends_on"]
    note = found(thalweg, QUESTIONS[0], edges="relation")
    assert note is not None
    assert note["path"][-1]["evidence"] == "Nobody else has the drawings of the gearbox."
    assert found(thalweg, QUESTIONS[0], mode="graph", edges="link") is None

    gone = httpx.delete(f"{thalweg.url}/v1/edges/{EDGE}", params={"collection": "islands"}, timeout=70).json()
    asked = {"after": gone["token"], "wait_seconds": 30}
    for question in QUESTIONS:
        for method in METHODS:
            hit = found(thalweg, question, **method, **asked)
            assert hit is None or WAY[1:] != [(step["from"], step["to"]) for step in hit["path"]][1:]
            assert hit is None, (question, method)


def test_sample_answers_its_questions(thalweg: Installation) -> None:
    thalweg.run("load", str(SAMPLE))
    for line in SAMPLE.with_suffix(".tsv").read_text().splitlines()[1:]:
        question, _, node = line.partition("\t")
        hits = thalweg.search(q=question, collection="islands", k=3)["hits"]
        assert node in [each["document_id"] for each in hits], question
