"""The command that measures answers: figures by who judged them, of a service that answers from the same hits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from query_api.cli import evaluate, evaluate_answers
from query_api.client import ServiceClient
from schemas.answers import Answer
from schemas.errors import Exit
from schemas.provenance import USAGE_HEADER
from tests.support.fakes.model_endpoints import Answer as Reply
from tests.support.fakes.model_endpoints import ChatEndpoint, chat_endpoint
from tests.unit.query_api.answers.found import HITS, QUESTION, hit
from tests.unit.query_api.evaluation.folders import write_folder
from tests.unit.query_api.evaluation.judged import METADATA, RELEVANT, extracted, refused, verdicts

OTHER = "Who wrote Gamma?"
BOTH = [{"_id": "q1", "text": QUESTION, "metadata": METADATA}, {"_id": "q2", "text": OTHER}]
FOUND = [*HITS, *(hit(rank, f"Film {rank}", f"Film {rank} is a film.") for rank in (4, 5, 6))]
JUDGED_FIGURES = {
    "context_precision", "context_recall", "faithfulness", "answer_relevance", "citation_precision", "answer_coverage",
}  # fmt: skip


class AnsweringService:
    """Finds the same hits for each question. It refuses one of them."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.usage: set[str | None] = set()
        self.client = ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        params = dict(request.url.params)
        if request.url.path == "/v1/documents":
            documents = [{"id": each.document_id, "position": "0:1"} for each in FOUND]
            return httpx.Response(200, json={"documents": documents, "next_cursor": None})
        assert request.url.path == "/v1/search"
        self.asked.append(params)
        self.usage.add(request.headers.get(USAGE_HEADER))
        answer: Answer | None = None
        if params.get("answer") == "true":
            answer = refused() if params["q"] == OTHER else extracted()
        hits = [each.model_dump(mode="json", by_alias=True) for each in FOUND]
        return httpx.Response(200, json={"hits": hits, "answer": answer and answer.model_dump(mode="json")})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> AnsweringService:
    answering = AnsweringService()
    monkeypatch.setattr(evaluate_answers, "service_client", lambda url, data_dir: answering.client)
    monkeypatch.setattr(answering.client, "close", lambda: None)
    return answering


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ChatEndpoint]:
    with chat_endpoint(writes=verdicts) as running:
        monkeypatch.setenv("THALWEG_LANGUAGE_MODEL__BASE_URL", running.url)
        monkeypatch.setenv("THALWEG_LANGUAGE_MODEL__MODEL", "reader")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A question with an answer, and one with another document than those that are found."""
    corpus = [{"_id": each.document_id, "title": each.title, "text": each.text} for each in FOUND]
    judged = [("q1", document, "1") for document in RELEVANT] + [("q2", "d3", "1")]
    return write_folder(tmp_path / "films", corpus, BOTH, judged)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(evaluate.app, ["evaluate", "answers", *map(str, arguments), "--within", "world"])


def figures(*arguments: object) -> dict[str, dict[str, Any]]:
    result = run(*arguments, "--json")
    assert result.exit_code == Exit.OK, result.output
    loaded: dict[str, dict[str, Any]] = json.loads(result.stdout)
    return loaded


def test_the_scorer_judges_unless_another_is_asked(service: AnsweringService, folder: Path) -> None:
    measured = figures(folder)
    assert measured["context_precision"] == {"value": 0.6667, "of": 2, "by": "scorer"}, "1, and 1/3 of the other"
    assert measured["context_recall"] == {"value": 1.0, "of": 2, "by": "scorer"}
    assert measured["faithfulness"] == {"value": 1.0, "of": 1, "by": "scorer"}, "a refused answer has no sentence"
    assert measured["citation_precision"] == {"value": 0.3333, "of": 1, "by": "scorer"}
    assert measured["support_recall"] == {"value": 0.5, "of": 1, "by": "scorer"}
    assert measured["support_f1"] == {"value": 0.4, "of": 1, "by": "scorer"}, "one of three cited and two needed"
    assert measured["answer_coverage"] == {"value": 1.0, "of": 1, "by": "scorer"}, "of the other no answer is known"
    assert measured["refused_of_answerable"] == {"value": 0.5, "of": 2, "by": None}
    assert measured["not_judged"]["value"] == 0
    assert measured["verbatim"] == {"value": 1.0, "of": 3, "by": None}
    assert service.usage == {"none"}


def test_a_model_judges_and_says_so_and_labels_still_count_supporting_facts(
    service: AnsweringService, endpoint: ChatEndpoint, folder: Path
) -> None:
    endpoint.writes = lambda prompt: verdicts(prompt, context_precision=[False, True, False, False, False])
    measured = figures(folder, "--judge", "model")
    assert {name for name, figure in measured.items() if figure["by"] == "model"} == JUDGED_FIGURES
    assert measured["context_precision"] == {"value": 0.5, "of": 2, "by": "model"}
    assert measured["answer_relevance"] == {"value": 0.5, "of": 1, "by": "model"}
    assert measured["support_f1"] == {"value": 0.4, "of": 1, "by": "scorer"}
    assert len(endpoint.bodies) == 2
    again = run(folder, "--judge", "model")
    assert len(endpoint.bodies) == 2, "the same answers are not judged again"
    assert "reader took 0 tokens" in again.stderr
    [row] = [line.split() for line in again.stdout.splitlines() if line.startswith("context_precision")]
    assert row == ["context_precision", "0.5", "2", "model"]


def test_answers_that_the_judge_fails_at_are_counted_and_are_no_zeros(
    service: AnsweringService, endpoint: ChatEndpoint, folder: Path
) -> None:
    endpoint.script = [Reply(400)]
    result = run(folder, "--judge", "model", "--json")
    measured = json.loads(result.stdout)
    assert measured["not_judged"] == {"value": 1, "of": 2, "by": None}
    assert measured["context_precision"] == {"value": 1.0, "of": 1, "by": "model"}
    assert "1 are not judged: The language model at" in result.stderr


def test_nothing_is_asked_where_no_model_is_set(
    service: AnsweringService, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THALWEG_LANGUAGE_MODEL__BASE_URL", raising=False)
    refusal = run(folder, "--judge", "model")
    assert refusal.exit_code == Exit.USAGE
    assert "THALWEG_LANGUAGE_MODEL__BASE_URL" in refusal.output
    assert service.asked == []
    assert run(folder, "--judge", "guess").exit_code == run(folder, "--answer-form", "poem").exit_code == Exit.USAGE


def test_the_form_of_answers_is_asked_for_with_the_answer_alone(service: AnsweringService, folder: Path) -> None:
    figures(folder, "--answer-form", "model", "--questions", 1)
    forms = [asked.get("answer_form") for asked in service.asked]
    assert forms == [None, None, "model"], "the search that is compared has no answer"
    assert {asked["collection"] for asked in service.asked} == {"world"}


def test_what_nothing_answers_counts_for_answers_alone(service: AnsweringService, tmp_path: Path) -> None:
    file = tmp_path / "questions.tsv"
    file.write_text(f"{QUESTION}\td1, d2\nWho was Jane Doe?\t\n{OTHER}\t\n")
    measured = figures(file)
    assert measured["refused_of_unanswerable"] == {"value": 0.5, "of": 2, "by": None}
    assert measured["context_precision"]["of"] == 1
    assert measured["faithfulness"]["of"] == 2
    assert measured["citation_precision"] == {"value": None, "of": 0, "by": "scorer"}, "not labelled"
    assert "–" in run(file).output


def test_a_document_after_the_first_five_is_not_what_an_answer_was_made_from(
    service: AnsweringService, tmp_path: Path
) -> None:
    file = tmp_path / "questions.tsv"
    file.write_text(f"{QUESTION}\td5\n{QUESTION}\td6\n")
    measured = figures(file)
    assert measured["context_recall"] == {"value": 0.5, "of": 2, "by": "scorer"}
    assert measured["all_relevant_found"]["value"] == 0.5
