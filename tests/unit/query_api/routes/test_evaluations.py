"""`/v1/evaluations`: questions in a request, progress, a report, and what is refused."""

from typing import Any

import pytest

from query_api.evaluation import ranking_measures as metrics
from query_api.evaluation.in_process import Evaluations
from query_api.retrieval.search_context import SearchFailed
from tests.support.fakes.service import Running
from tests.support.waiting import eventually

QUESTIONS = [
    {"id": "q1", "text": "river", "relevant": {"notes/river.md": 1, "ada": 0}, "kind": "exact"},
    {"id": "q2", "text": "ada", "relevant": {"ada": 2}},
]
ASKED = {"collection": "a", "questions": QUESTIONS, "approaches": ["hybrid", "keyword"], "k": 5}


async def finished(running: Running, evaluation_id: str) -> dict[str, Any]:
    evaluations: Evaluations = running.http._transport.app.state.evaluations  # type: ignore[attr-defined]
    await eventually(lambda: evaluations.get(evaluation_id).status != "running")  # type: ignore[union-attr]
    state: dict[str, Any] = (await running.get(f"/v1/evaluations/{evaluation_id}")).json()
    return state


async def test_an_evaluation_is_accepted_followed_and_reported(running: Running) -> None:
    begun = await running.http.post("/v1/evaluations", json=ASKED)
    assert begun.status_code == 202, begun.text
    state = begun.json()
    assert begun.headers["location"] == f"/v1/evaluations/{state['id']}"
    assert (state["status"], state["searches"]) == ("running", 4)
    done = await finished(running, state["id"])
    assert (done["status"], done["asked"], done["message"]) == ("done", 4, None)
    [found] = done["report"]["collections"]
    assert [approach["name"] for approach in found["approaches"]] == ["hybrid", "keyword"]
    assert {"nDCG@5", "R@5"} <= found["approaches"][0]["measures"].keys()
    assert found["kinds"][0]["kind"] == "exact"
    assert found["documents"] == 3
    [listed] = (await running.get("/v1/evaluations")).json()["evaluations"]
    assert (listed["id"], listed["report"]) == (state["id"], None)


async def test_it_is_nobodys_retrieval(running: Running) -> None:
    before = len(running.service.provenance)
    begun = await running.http.post("/v1/evaluations", json=ASKED)
    await finished(running, begun.json()["id"])
    assert len(running.service.provenance) == before


async def test_one_runs_at_a_time(running: Running) -> None:
    running.service.retriever.under_way = 1  # a search of somebody's, which goes first
    begun = await running.http.post("/v1/evaluations", json=ASKED)
    refused = await running.http.post("/v1/evaluations", json=ASKED)
    assert refused.status_code == 409
    assert "One evaluation runs at a time" in refused.json()["detail"]
    running.service.retriever.under_way = 0
    assert (await finished(running, begun.json()["id"]))["status"] == "done"


def changed(question: int, **fields: Any) -> dict[str, Any]:
    questions = [dict(each) for each in QUESTIONS]
    questions[question] |= fields
    return {**ASKED, "questions": questions}


@pytest.mark.parametrize(
    ("asked", "status", "detail"),
    [
        ({**ASKED, "questions": []}, 422, "questions"),
        (changed(1, id="q1"), 422, "the id 'q1' is that of two questions"),
        (
            changed(0, relevant={"nowhere.md": 1}),
            422,
            "1 judged document is not in the collection 'a': nowhere.md. Correct",
        ),
        (changed(0, relevant={}), 422, "relevant"),
        (changed(0, relevant={"ada": 0}), 422, "no relevant document"),
        (changed(0, relevant={"ada": True}), 422, "true is none"),
        ({**ASKED, "k": True}, 422, "`k`: give a number; true is none"),
        (changed(0, text="  "), 422, "text"),
        ({**ASKED, "collection": "nothing"}, 404, "holds no document"),
        ({**ASKED, "approaches": ["magic"]}, 422, "There is no approach 'magic'"),
        ({**ASKED, "approaches": ["hybrid", "reranked"]}, 422, "'reranked' is not offered. No re-ranker is configured"),
        ({**ASKED, "k": 0}, 422, "k"),
        ({**ASKED, "speed": 1}, 422, "no parameter 'speed'"),
    ],
)
async def test_bad_input_is_refused_with_a_sentence(
    running: Running, asked: dict[str, Any], status: int, detail: str
) -> None:
    answer = await running.http.post("/v1/evaluations", json=asked)
    assert answer.status_code == status, answer.text
    assert detail in answer.json()["detail"]
    assert (await running.get("/v1/evaluations")).json()["evaluations"] == []


async def test_all_unknown_documents_are_told_at_once_with_the_ids_that_are_meant(running: Running) -> None:
    asked = changed(0, relevant={"notes/rivers.md": 1, "ada": 1, "zzz": 0})
    problem = (await running.http.post("/v1/evaluations", json=asked)).json()
    assert problem["reason"] == "unknown_documents"
    assert problem["unknown_documents"] == [
        {"id": "notes/rivers.md", "questions": ["q1"], "suggestions": ["notes/river.md"]},
        {"id": "zzz", "questions": ["q1"], "suggestions": []},
    ]
    assert "notes/rivers.md (did you mean notes/river.md?), zzz. Correct or load them" in problem["detail"]


async def test_unknown_documents_are_left_out_where_that_is_asked_for_and_told(running: Running) -> None:
    asked = changed(0, relevant={"nowhere.md": 1, "ada": 0}) | {"unknown_documents": "leave_out"}
    begun = await running.http.post("/v1/evaluations", json=asked)
    assert (begun.status_code, begun.json()["searches"]) == (202, 2)
    done = await finished(running, begun.json()["id"])
    assert done["left_out_documents"] == ["nowhere.md"]
    assert done["left_out_questions"] == ["q1"]
    assert done["report"]["collections"][0]["questions"] == 1


async def test_nothing_is_measured_on_no_question(running: Running) -> None:
    questions = [{"id": "q1", "text": "river", "relevant": {"nowhere.md": 1}}]
    asked = {**ASKED, "questions": questions, "unknown_documents": "leave_out"}
    answer = await running.http.post("/v1/evaluations", json=asked)
    assert answer.status_code == 422
    assert "leaves no question with a relevant document" in answer.json()["detail"]


async def test_an_unknown_one_is_404(running: Running) -> None:
    answer = await running.get("/v1/evaluations/e_0")
    assert answer.status_code == 404
    assert "kept until the service stops" in answer.json()["detail"]


async def test_a_search_that_breaks_ends_it_with_the_reason(running: Running) -> None:
    running.engine.fail_at, running.engine.failure = 0, SearchFailed("The disk is gone.")
    begun = await running.http.post("/v1/evaluations", json=ASKED)
    failed = await finished(running, begun.json()["id"])
    assert (failed["status"], failed["report"]) == ("failed", None)
    assert failed["message"].startswith("The disk is gone.")


async def test_without_the_extra_it_is_refused_before_anything_is_searched(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    refused = await running.http.post("/v1/evaluations", json=ASKED)
    assert refused.status_code == 501
    assert ".[evaluate]" in refused.json()["detail"]
    assert (await running.get("/v1/evaluations")).json()["evaluations"] == []
