"""`/v1/search` and `/v1/retrievals`: what is asked, what is answered, what is refused."""

import asyncio
import json
from typing import Any

import pytest
from fastapi import Request
from structlog.testing import capture_logs

from indexer.errors import TransientStoreError
from kafka_client.topic_lag import LagMonitor
from kafka_client.topic_offsets import Span
from query_api.retrieval.search_context import SearchFailed
from query_api.routes.search import AnswerRequest, Origin, in_conversation
from tests.support.fakes.service import PAGES, Running, events, problem
from tests.support.waiting import eventually


async def test_a_search_is_answered_as_json_with_its_snapshot_and_its_paths(running: Running) -> None:
    response = await running.get("/v1/search", q="the river", k=1)
    assert response.status_code == 200
    answer = response.json()
    assert answer["snapshot"]["positions"] == "0:7"
    assert answer["snapshot"]["graph_position"] == 3
    assert [hit["rank"] for hit in answer["hits"]] == [1]
    assert answer["hits"][0]["path"][0]["from"] == "river"
    assert answer["retrieval_id"].startswith("r_")


async def test_a_question_in_the_body_is_the_same_question(running: Running) -> None:
    response = await running.http.post("/v1/search", json={"q": "the river", "k": 2})
    assert len(response.json()["hits"]) == 2


async def test_a_client_that_accepts_events_gets_frames(running: Running) -> None:
    response = await running.http.get("/v1/search", params={"q": "river"}, headers={"Accept": "text/event-stream"})
    assert response.headers["content-type"].startswith("text/event-stream")
    frames = events(response)
    assert [name for name, _, _ in frames] == ["meta", "stage", "hit", "hit", "done"]
    resumed = await running.http.get(
        "/v1/search", params={"q": "river"}, headers={"Accept": "text/event-stream", "Last-Event-ID": frames[2][1]}
    )
    assert events(resumed) == frames[3:]


@pytest.mark.parametrize("name", ["lastEventId", "lastEventID", "Last-Event-ID", "last_event_id"])
async def test_polyfills_resume_by_the_address(running: Running, name: str) -> None:
    headers = {"Accept": "text/event-stream"}
    first = await running.http.get("/v1/search", params={"q": "river", name: ""}, headers=headers)
    frames = events(first)
    assert "connection" not in first.headers
    assert len(frames) == 5
    params = {"q": "river", name: frames[2][1]}
    assert events(await running.http.get("/v1/search", params=params, headers=headers)) == frames[3:]
    assert problem(await running.get("/v1/search", **params))["status"] == 422


async def test_a_client_that_has_the_last_frame_is_told_to_come_back_no_more(running: Running) -> None:
    headers = {"Accept": "text/event-stream"}
    frames = events(await running.http.get("/v1/search", params={"q": "river"}, headers=headers))
    headers["Last-Event-ID"] = frames[-1][1]
    started = running.engine.started
    again = await running.http.get("/v1/search", params={"q": "river"}, headers=headers)
    assert (again.status_code, again.content) == (204, b"")
    assert running.engine.started == started


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_the_trace_of_a_request_goes_into_its_retrieval_and_its_log_line(running: Running, accept: str) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    headers = {"Accept": accept, "traceparent": trace}
    with capture_logs() as logs:
        response = await running.http.get("/v1/search", params={"q": "river"}, headers=headers)
    body = response.json() if accept == "application/json" else events(response)[0][2]
    retrieval = (await running.get(f"/v1/retrievals/{body['retrieval_id']}")).json()
    assert retrieval["traceparent"] == trace
    (line,) = [line for line in logs if line["event"] == "search"]
    assert line["trace"] == "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_search_without_usage_is_recorded_as_not_counted(running: Running, accept: str) -> None:
    for usage, is_counted in (({"Thalweg-Usage": "none"}, False), ({}, True)):
        response = await running.http.get("/v1/search", params={"q": "river"}, headers={"Accept": accept} | usage)
        body = response.json() if accept == "application/json" else events(response)[0][2]
        retrieval = (await running.get(f"/v1/retrievals/{body['retrieval_id']}")).json()
        assert (retrieval["query"], retrieval["counted"]) == ("river", is_counted)


async def test_search_with_an_unknown_usage_is_refused(running: Running) -> None:
    refused = problem(await running.http.get("/v1/search", params={"q": "river"}, headers={"Thalweg-Usage": "off"}))
    assert refused["status"] == 422
    assert "Thalweg-Usage" in refused["detail"]
    assert "'none'" in refused["detail"]


async def test_frames_that_are_gone_are_replaced_by_a_new_retrieval(running: Running) -> None:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "r_gone.4"}
    frames = events(await running.http.get("/v1/search", params={"q": "river"}, headers=headers))
    assert [name for name, _, _ in frames] == ["reset", "meta", "stage", "hit", "hit", "done"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"q": "x", "k": 0}, "`k`"),
        ({"q": "x", "k": "many"}, "'many'"),
        ({"q": "  "}, "`q`"),
        ({}, "`q` is missing"),
        ({"q": "x", "mode": "magic"}, "'magic'"),
        ({"q": "x", "kk": 3}, "'kk'"),
        ({"q": "x", "wait_seconds": 3600}, "`wait_seconds`"),
        ({"q": "x", "filter": "status"}, "`filter.0`: 'status' is not a filter"),
        ({"q": "x", "filter": ["lang=en", "lang>a|b"]}, "`filter.1`: 'lang>a|b' compares with several values"),
        ({"q": "x", "filter": "colour=red"}, "has a field 'colour'; there are document, title, "),
        ({"q": "x", "diversity": "colour"}, "has a field 'colour'; there are document, title, "),
        ({"q": "x", "facets": "lang,colour"}, "has a field 'colour'; there are document, title, "),
        ({"q": "x", "sort": "-colour"}, "has a field 'colour'; there are document, title, "),
        ({"q": "x", "sort": "-"}, "has a field ''; there are document, title, "),
        ({"q": "x", "sort": "lang", "reranker": True}, "A re-ranker orders hits, and so does `sort`"),
        ({"q": "x", "max_per_value": 2}, "`max_per_value` is for the field named in `diversity`"),
        ({"q": "x", "filter": "updated>soon"}, "'soon' cannot be compared"),
        ({"q": "x", "edges": "link,wish"}, "'wish' is neither a kind of edge nor a predicate: `edges` takes named, "),
    ],
)
async def test_a_search_that_does_not_fit_is_refused_with_a_sentence(
    running: Running, params: dict[str, Any], says: str
) -> None:
    response = await running.get("/v1/search", **params)
    assert response.status_code == 422
    assert says in problem(response)["detail"]


@pytest.mark.parametrize(("content", "status"), [(b"{nonsense", 400), (b"[]", 422), (b"x" * 300_000, 413)])
async def test_a_body_that_is_no_search_is_refused(running: Running, content: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    assert problem(await running.http.post("/v1/search", content=content, headers=headers))["status"] == status


async def test_a_search_no_channel_could_answer_is_a_503(running: Running) -> None:
    running.engine.fail_at, running.engine.failure = 0, SearchFailed("Both indexes are unreadable.")
    response = await running.get("/v1/search", q="river")
    assert problem(response)["detail"] == "Both indexes are unreadable."
    assert response.headers["retry-after"]
    running.engine.failure = TransientStoreError("Could not read the texts: the disk is gone")
    assert problem(await running.get("/v1/search", q="river"))["status"] == 503


async def test_the_unforeseen_is_a_500_that_tells_no_secrets(running: Running) -> None:
    running.engine.fail_at, running.engine.failure = 0, RuntimeError("password=hunter2")
    body = problem(await running.get("/v1/search", q="river"))
    assert body["status"] == 500
    assert "hunter2" not in json.dumps(body)


async def test_a_search_after_a_token_waits_until_it_is_reached(running: Running) -> None:
    running.engine.reader.put(p0=(8, 3))
    answer = (await running.get("/v1/search", q="river", after="0:8", wait_seconds=5)).json()
    assert answer["snapshot"]["positions"] == "0:8"


async def test_a_token_that_is_not_reached_in_time_is_an_honest_503(running: Running) -> None:
    response = await running.get("/v1/search", q="river", after="0:99", wait_seconds=0.05)
    body = problem(response)
    assert (body["status"], body["title"], body["reached"]) == (503, "Not yet indexed", "0:7")
    assert response.headers["retry-after"]
    headers = {"Accept": "text/event-stream"}
    params: dict[str, Any] = {"q": "river", "after": "0:99", "wait_seconds": 0.01}
    assert problem(await running.http.get("/v1/search", params=params, headers=headers))["status"] == 503


async def test_a_token_that_the_log_does_not_reach_is_told_from_one_that_is_late(running: Running) -> None:
    documents = running.service.topics.documents
    running.service.log_watch = LagMonitor(lambda: None, lambda: {documents: {}})
    running.service.log_watch.see(documents, {0: Span(0, 50), 1: Span(0, 9)})
    future = problem(await running.get("/v1/search", q="river", after="0:99,1:8", wait_seconds=0.01))
    assert "Nothing is written there: the log ends before 0:50. Look" in future["detail"]
    assert (
        "Nothing is written"
        not in problem(await running.get("/v1/search", q="river", after="0:49", wait_seconds=0.01))["detail"]
    )


async def test_a_search_that_waits_when_the_service_is_stopped_is_a_503_that_says_so(running: Running) -> None:
    waiting = asyncio.create_task(running.get("/v1/search", q="river", after="0:99", wait_seconds=60))
    await eventually(lambda: running.service.snapshots._waiters)
    running.service.snapshots.stop_waiting()
    response = await waiting
    assert (problem(response)["status"], problem(response)["title"]) == (503, "Stopping")
    assert response.headers["retry-after"]


@pytest.mark.parametrize("mode", ["keyword", "graph"])
async def test_write_that_the_graph_lacks_is_waited_for(running: Running, mode: str) -> None:
    running.engine.reader.put(p0=(8, 4))
    body = problem(await running.get("/v1/search", q="river", mode=mode, after="0:8", wait_seconds=0.2))
    assert (body["title"], body["reached"]) == ("Not yet indexed", "0:8")


async def test_a_malformed_token_is_a_400(running: Running) -> None:
    assert "0:17,3:1042" in problem(await running.get("/v1/search", q="x", after="yesterday"))["detail"]


async def test_a_retrieval_can_be_looked_up_at_once(running: Running) -> None:
    answer = (await running.get("/v1/search", q="river")).json()
    record = (await running.get(f"/v1/retrievals/{answer['retrieval_id']}")).json()
    assert record["query"] == "river"
    assert [hit["chunk_id"] for hit in record["hits"]] == [hit["chunk_id"] for hit in answer["hits"]]
    assert record["snapshot"]["positions"] == "0:7"
    assert record["hits"][0]["source"] == {"topic": "thalweg.documents.v1", "partition": 0, "offset": 1}
    assert problem(await running.get("/v1/retrievals/r_unknown"))["status"] == 404


def _about_ada(running: Running) -> None:
    page = PAGES[1]
    places = {"chunk_id": page.chunks()[0][0], "document_id": page.id, "collection": page.collection}
    running.engine.hits = [hit.model_copy(update=places) for hit in running.engine.hits]


async def test_subgraph_is_beside_the_hits_where_it_is_asked_for(running: Running) -> None:
    _about_ada(running)
    answer = (await running.get("/v1/search", q="who lives there", subgraph="true")).json()
    assert [(each["label"], each["hits"]) for each in answer["subgraph"]["entities"]] == [("Ada", 2)]
    assert (answer["subgraph"]["relations"], answer["subgraph"]["truncated"]) == ([], False)
    again = (await running.get("/v1/search", q="who lives there", subgraph="true")).json()
    assert (again["cached"], again["subgraph"]) == (True, answer["subgraph"])
    plain = (await running.get("/v1/search", q="who lives there")).json()
    assert (plain["cached"], plain["subgraph"]) == (False, None)


async def test_subgraph_is_a_frame_before_the_last_one(running: Running) -> None:
    _about_ada(running)
    headers = {"Accept": "text/event-stream"}
    frames = events(await running.http.get("/v1/search", params={"q": "river", "subgraph": True}, headers=headers))
    assert [name for name, _, _ in frames] == ["meta", "stage", "hit", "hit", "stage", "subgraph", "done"]
    assert frames[4][2]["name"] == "subgraph"
    assert [each["label"] for each in frames[5][2]["entities"]] == ["Ada"]


async def test_late_subgraph_is_left_out_and_named(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("query_api.retrieval.service.SUBGRAPH_SECONDS", 0.0)
    for _ in range(2):
        answer = (await running.get("/v1/search", q="river", subgraph="true")).json()
        assert (len(answer["hits"]), answer["subgraph"], answer["cached"]) == (2, None, False)
        assert answer["failed_channels"] == {"subgraph": "no answer within 0 s"}


@pytest.mark.parametrize("chosen", [{}, {"mode": "keyword", "k": 3}])
async def test_answer_is_searched_as_its_question_is(chosen: dict[str, Any], running: Running) -> None:
    """What a request leaves out is left to the question's intent."""
    asked = AnswerRequest(q="What is all of this about?", **chosen)
    search, _ = await in_conversation(Request({"type": "http"}), asked, running.service, Origin(None, True, "full"))
    assert search.answer
    assert search.model_fields_set == {"q", "answer", *chosen}
