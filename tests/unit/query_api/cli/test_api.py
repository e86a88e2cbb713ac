"""`thalweg api`: any request to the service, at a service that is a double."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from query_api.cli import api
from query_api.cli import app as base_commands
from query_api.client import ServiceClient
from schemas.errors import Exit

PATHS = {
    "/v1/status": {"get": {"summary": "The state of the service"}},
    "/v1/nodes": {"get": {"summary": "List nodes"}, "post": {"summary": "Make a node"}},
    "/v1/nodes/{node_id}": {"get": {"summary": "A node"}, "delete": {"summary": "Delete a node"}},
}
ANSWER = b'{"b":2,"a":"\\u001b[2J"}'
FRAMES = b'event: hit\ndata: {"rank": 1}\n\n: still here\n\nevent: done\ndata: {"hits": 1}\n\n'


class Service:
    """Has the routes of PATHS, keeps what it is asked, and answers `answer` to every request that one takes."""

    def __init__(self) -> None:
        self.asked: list[httpx.Request] = []
        self.answer = httpx.Response(200, content=ANSWER, headers={"content-type": "application/json"})

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/openapi.json":
            return httpx.Response(200, json={"paths": PATHS})
        self.asked.append(request)
        if request.url.path.startswith("/v1/no"):
            return self.answer
        problem = {"title": "Not Found", "detail": "Nothing is there."}
        return httpx.Response(404, json=problem, headers={"content-type": "application/problem+json"})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service()

    def connect(url: str | None, data_dir: Path | None) -> ServiceClient:
        return ServiceClient("http://127.0.0.1:1", "a secret", httpx.MockTransport(made), busy_seconds=0)

    monkeypatch.setattr(base_commands, "service_client", connect)
    return made


def run(*arguments: str, exit_code: int = Exit.OK, sent: bytes | None = None) -> Any:
    result = CliRunner().invoke(api.app, list(arguments), input=sent)
    assert result.exit_code == exit_code, result.output
    return result


def test_answer_in_a_pipe_is_printed_as_it_came(service: Service) -> None:
    assert run("GET", "/v1/nodes").stdout_bytes == ANSWER
    [request] = service.asked
    assert request.headers["authorization"] == "Bearer a secret"
    service.answer = httpx.Response(200, content=b"a 1\nb \xff\n", headers={"content-type": "text/plain"})
    assert run("GET", "/v1/nodes").stdout_bytes == b"a 1\nb \xff\n"


def test_answer_on_a_terminal_is_laid_out_and_harmless(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal:
        def __getattr__(self, name: str) -> Any:
            return (lambda: True) if name == "isatty" else getattr(stdout, name)

    stdout = sys.stdout
    for as_json, shown in ((False, '{\n  "b": 2,\n  "a": "\\u001b[2J"\n}\n'), (True, ANSWER.decode() + "\n")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", Terminal())
            api.api("GET", "/v1/nodes", as_json=as_json)
        assert capsys.readouterr().out == shown


def test_parameters_come_from_the_path_and_from_options(service: Service) -> None:
    run("get", "/v1/nodes?type=team&limit=", "--query", "collection=a b", "-q", "edges=x=1", "-q", "edges=y")
    [request] = service.asked
    assert request.method == "GET"
    assert request.url.params.multi_items() == [
        ("type", "team"), ("limit", ""), ("collection", "a b"), ("edges", "x=1"), ("edges", "y"),
    ]  # fmt: skip


def test_body_is_text_a_file_or_standard_input(service: Service, tmp_path: Path) -> None:
    body, file = b'{"label": "Otter"}', tmp_path / "node.json"
    file.write_bytes(body)
    run("POST", "/v1/nodes", "--body", body.decode())
    run("POST", "/v1/nodes", "--body", str(file))
    run("PUT", "/v1/nodes/otter", "--body", "-", sent=body)
    run("POST", "/v1/nodes")
    assert [(each.content, each.headers.get("content-type")) for each in service.asked] == [
        *[(body, "application/json")] * 3, (b"", None),
    ]  # fmt: skip


def test_stream_is_a_line_for_each_event(service: Service) -> None:
    service.answer = httpx.Response(200, content=FRAMES, headers={"content-type": "text/event-stream; charset=utf-8"})
    lines = run("GET", "/v1/nodes", "--stream").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"event": "hit", "data": {"rank": 1}}, {"event": "done", "data": {"hits": 1}},
    ]  # fmt: skip
    assert service.asked[0].headers["accept"] == "text/event-stream"


def test_stream_that_ends_with_an_error_fails(service: Service) -> None:
    frame = b'event: error\ndata: {"title": "Overloaded", "detail": "Try again."}\n\n'
    service.answer = httpx.Response(200, content=frame, headers={"content-type": "text/event-stream"})
    failed = run("GET", "/v1/nodes", exit_code=Exit.FAILED)
    assert json.loads(failed.stdout)["event"] == "error"
    assert failed.stderr == "thalweg: Overloaded: Try again.\n"


@pytest.mark.parametrize("status", [400, 404, 409, 422, 500])
def test_error_ends_with_the_sentence_of_its_problem(service: Service, status: int) -> None:
    service.answer = httpx.Response(status, json={"title": "Refused", "detail": "The label is too long."})
    failed = run("POST", "/v1/nodes", "--body", "{}", exit_code=Exit.FAILED)
    assert (failed.stdout, failed.stderr) == ("", "thalweg: Refused: The label is too long.\n")


def test_routes_are_listed_where_no_path_is_given(service: Service) -> None:
    told = run().stdout.splitlines()
    assert told[0].split(maxsplit=2) == ["GET", "/v1/status", "The state of the service"]
    assert len(told) == 5
    assert run("delete").stdout.split() == ["DELETE", "/v1/nodes/{node_id}", "Delete", "a", "node"]


def test_unknown_route_is_refused_with_the_nearest(service: Service) -> None:
    refused = run("GET", "/v1/stats", exit_code=Exit.USAGE)
    assert refused.stdout == ""
    assert "Make a node" in refused.stderr
    assert refused.stderr.splitlines()[-1].endswith(
        "has no route /v1/stats; above are those it has. Did you mean /v1/status?"
    )


def test_known_route_by_another_method_is_refused(service: Service) -> None:
    service.answer = httpx.Response(405, json={"title": "Method Not Allowed", "detail": "No."})
    refused = run("PUT", "/v1/nodes/a", "--body", "{}", exit_code=Exit.USAGE)
    assert refused.stderr == "thalweg: /v1/nodes/a takes DELETE, GET, not PUT.\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["FETCH", "/v1/nodes"], "'FETCH' is not a method of the service: it takes GET, POST, PUT and DELETE."),
        (["/v1/nodes"], "The method comes first: thalweg api GET /v1/nodes"),
        (["GET", "v1/nodes"], "does not begin with a slash"),
        (["GET", "http://localhost:8420/v1/nodes"], "is a whole address"),
        (["GET", "//localhost:8420/v1/nodes"], "is a whole address"),
        (["GET", ""], "does not begin with a slash"),
        (["GET", "/v1/nodes#a"], "is not a path"),
        (["GET", "/v1/n\udcff"], "is not a path"),
        (["GET", "/v1/nodes", "--query", "label=\udcff"], "'\\udcff' is not UTF-8"),
        (["GET", "/v1/no\ndes"], "is not a path"),
        (["GET", "/v1/nodes", "--query", "limit"], "--query 'limit' is not name=value"),
        (["GET", "/v1/nodes", "--query", "=1"], "--query '' is not name=value"),
        (["GET", "/v1/nodes", "--body", "{}"], "GET takes no --body"),
        (["POST", "/v1/nodes", "--body", "{"], "--body is not JSON"),
        (["POST", "/v1/nodes", "--body", "label=x"], "neither a JSON object or list nor a file: No such file"),
        (["POST", "/v1/nodes", "--body", __file__], "test_api.py is not JSON"),
        (["POST", "/v1/nodes", "--body", "-"], "Standard input is not JSON"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(service: Service, arguments: list[str], told: str) -> None:
    refused = run(*arguments, exit_code=Exit.USAGE)
    assert told in refused.stderr
    assert service.asked == []
