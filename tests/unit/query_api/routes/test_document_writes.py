"""Writes to `/v1/documents`: what is refused before it reaches the log."""

from pathlib import Path
from typing import Any

import pytest

from schemas.settings import LimitSettings
from tests.support.fakes.engine import ScriptedEngine
from tests.support.fakes.keeping_writer import KeepingWriter
from tests.support.fakes.service import Running, problem, service_over


async def test_writes_are_refused_while_kafka_is_away_and_searches_go_on(running: Running) -> None:
    response = await running.http.post("/v1/documents", json={"id": "a", "content": "text"})
    assert problem(response)["status"] == 503
    assert response.headers["retry-after"]
    batch = await running.http.post("/v1/documents", json=[{"id": "a", "content": "text"}])
    assert problem(batch)["status"] == 503
    assert (await running.http.delete("/v1/documents/a")).status_code == 503
    assert (await running.get("/v1/search", q="river")).status_code == 200
    ready = await running.get("/readyz")
    assert (ready.status_code, ready.json()["kafka"]) == (200, "unreachable")


@pytest.mark.parametrize(
    ("request_", "status", "says"),
    [
        ({"json": {"content": "text"}}, 422, "id"),
        ({"json": {"id": "a"}}, 422, "content"),
        ({"json": {"id": "a", "content": " "}}, 422, "empty"),
        ({"json": {"id": "a", "content": 7}}, 422, "content"),
        ({"json": {"id": "a", "content": "x", "content_type": "video/mp4"}}, 415, "/v1/formats"),
        ({"json": {"id": "a", "content": "x" * 2_000}}, 413, "limit"),
        ({"json": {"documents": "all"}}, 422, "documents"),
        ({"json": []}, 422, "1 to"),
        ({"content": b'{"id": "a"', "headers": {"Content-Type": "application/json"}}, 400, "JSON"),
        ({"content": b"text", "headers": {"Content-Type": "text/plain"}}, 422, "?id="),
        ({"content": b"text", "params": {"id": "a"}}, 415, "Content-Type"),
        ({"data": {"id": "a"}}, 415, "application/json"),
        ({"content": b"text", "params": {"id": "a"}, "headers": {"Content-Type": "image/png"}}, 415, "image/png"),
        (
            {"content": b"t", "params": {"id": "a", "collection": "x/y"}, "headers": {"Content-Type": "text/plain"}},
            422,
            "slash",
        ),
        ({"files": {"file": ("a.mp4", b"film", "video/mp4")}}, 415, "video/mp4"),
        ({"files": {"file": ("a.md", b"x")}, "data": {"colour": "red"}}, 422, "colour"),
        ({"data": {"collection": "a"}, "files": {"file": ("", b"")}}, 422, ""),
    ],
)
async def test_a_document_the_worker_would_not_take_is_refused_before_it_is_published(
    tmp_path: Path, request_: dict[str, Any], status: int, says: str
) -> None:
    limits = LimitSettings(max_document_bytes=1_000)
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False, limits=limits) as running:
        body = problem(await running.http.post("/v1/documents", **request_))
    assert body["status"] == status
    assert says in body["detail"]


async def test_a_refusal_says_in_words_what_was_wrong_and_what_to_do(running: Running) -> None:
    film = {"id": "a", "content": "x", "content_type": "video/mp4"}
    body = problem(await running.http.post("/v1/documents", json=film))
    assert (body["reason"], body["reason_title"]) == ("unknown_media_type", "Not a format that Thalweg reads")
    assert body["advice"].startswith("Convert it")
    [member] = problem(await running.http.post("/v1/documents", json=[film]))["refused"]
    assert (member["reason"], member["advice"]) == ("unknown_media_type", body["advice"])


async def test_a_document_that_comes_twice_in_a_batch_is_told_so(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = KeepingWriter()
    monkeypatch.setattr(running.service.writer, "publish", log.publish)
    batch = [{"id": "a", "content": "first"}, {"id": "b", "content": "b"}, {"id": "a", "content": "second"}]
    files = [("file", ("a.md", b"first")), ("file", ("b.md", b"b")), ("file", ("a.md", b"second"))]
    for request in ({"json": batch}, {"files": files}):
        log.values.clear()
        response = await running.http.post("/v1/documents", **request)
        assert response.status_code == 202
        answer = response.json()
        assert [(each["index"], each["position"]) for each in answer["accepted"]] == [(1, "0:0"), (2, "0:1")]
        [refused] = answer["refused"]
        assert (refused["index"], refused["status"], refused["reason"]) == (0, 409, "duplicate_id")
        assert "as the member 2" in refused["detail"]
        assert [b"first" in (value or b"") for value in log.values] == [False, False]


async def test_a_batch_the_log_does_not_take_is_no_conflict(running: Running) -> None:
    response = await running.http.post("/v1/documents", json=[{"id": "a", "content": "x"}] * 2)
    assert problem(response)["status"] == 503
    assert response.headers["retry-after"]


async def test_fields_that_no_document_has_are_named_with_what_may_be_meant(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = KeepingWriter()
    monkeypatch.setattr(running.service.writer, "publish", log.publish)
    sent = {"id": "a", "content": "x", "collectoin": "notes", "author": "Ada"}
    named = [{"name": "collectoin", "suggestion": "collection"}, {"name": "author", "suggestion": None}]
    one = await running.http.post("/v1/documents", json=sent)
    assert (one.status_code, one.json()["unknown_fields"]) == (202, named)
    put = await running.http.put("/v1/documents/a", json=sent)
    assert put.json()["unknown_fields"] == named
    batch = (await running.http.post("/v1/documents", json=[{"id": "b", "content": "x"}, sent])).json()
    assert [each["unknown_fields"] for each in batch["accepted"]] == [[], named]
    raw = await running.http.post("/v1/documents?id=c", content=b"x", headers={"Content-Type": "text/plain"})
    assert raw.json() == {"token": raw.json()["token"], "documents": 1, "unknown_fields": []}
    gone = await running.http.delete("/v1/documents/a")
    assert "unknown_fields" not in gone.json()
    assert not any(b"collectoin" in (value or b"") for value in log.values)


async def test_many_and_long_unknown_fields_are_cut(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.service.writer, "publish", KeepingWriter().publish)
    sent = {"id": "a", "content": "x"} | {f"{at:02}{'n' * 500}": at for at in range(30)}
    named = (await running.http.post("/v1/documents", json=sent)).json()["unknown_fields"]
    assert [(each["name"][:2], len(each["name"])) for each in named] == [(f"{at:02}", 80) for at in range(10)]
