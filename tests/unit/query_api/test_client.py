"""The command line's side: frames read from a stream, problems in plain words, hits and status on a terminal."""

import io
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import httpcore
import httpx
import pytest
from rich.console import Console

from query_api.cli.display import show_end, show_hit, snippet
from query_api.client import (
    DEFAULT_URL,
    NotFound,
    Refused,
    ServiceBusy,
    ServiceClient,
    ServiceUnavailable,
    locate_service,
    parse_events,
)
from schemas.errors import Exit, Failure, Unreachable, WrongSetting
from schemas.runtime import INSTALLATION_HEADER, Running, announce, installation_of
from tests.support.fakes.engine import make_hit


def client(answer: Callable[[httpx.Request], httpx.Response], key: str | None = None) -> ServiceClient:
    return ServiceClient("http://127.0.0.1:1", key, httpx.MockTransport(answer))


def test_frames_are_read_comments_and_unknown_fields_are_not() -> None:
    lines = [": keep-alive", "", "event: hit", "id: r_1.2", 'data: {"rank":', "data: 1}", "retry: 5", "", "event: cut"]
    assert list(parse_events(lines)) == [("hit", {"rank": 1}, "r_1.2")]


def test_a_stream_is_handed_on_frame_by_frame_with_the_key() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept"] == "text/event-stream"
        assert request.headers["authorization"] == "Bearer secret"
        assert request.url.params["q"] == "río & sea"
        return httpx.Response(200, text='event: done\ndata: {"hits": 0}\n\n')

    assert list(client(answer, "secret").events("/v1/search", {"q": "río & sea"})) == [("done", {"hits": 0}, None)]


def test_a_stream_that_ends_in_an_error_is_a_failure_in_its_words() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        told = json.dumps({"title": "Search not answered", "detail": "The disk is gone."})
        return httpx.Response(200, text=f"event: meta\ndata: {{}}\n\nevent: error\ndata: {told}\n\n")

    events = client(answer).events("/v1/search", {})
    assert next(events).name == "meta"
    with pytest.raises(Failure, match=r"Search not answered: The disk is gone\."):
        next(events)


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (400, Refused),
        (422, Refused),
        (401, WrongSetting),
        (503, ServiceUnavailable),
        (404, NotFound),
        (405, NotFound),
        (409, Failure),
    ],
)
def test_a_problem_is_told_in_its_own_words(status: int, failure: type[Failure]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json={"title": "Not yet indexed", "detail": "It reached 0:7."})

    for ask in (lambda: client(answer).get("/v1/status"), lambda: list(client(answer).events("/v1/search", {}))):
        with pytest.raises(failure, match=r"Not yet indexed: It reached 0:7\.") as caught:
            ask()
        assert type(caught.value) is failure


def test_a_collection_that_is_not_there_is_a_wrong_name() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        told = {"title": "No such collection", "detail": "There are documents in a.", "reason": "unknown_collection"}
        return httpx.Response(404, json=told)

    with pytest.raises(WrongSetting, match=r"There are documents in a\.") as caught:
        client(answer).post("/v1/collections/b/relink", b"{}")
    assert caught.value.exit_code == Exit.USAGE


def test_a_service_that_is_not_there_is_unreachable() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(Unreachable, match="thalweg up") as caught:
        client(answer).get("/v1/status")
    assert caught.value.exit_code == Exit.UNREACHABLE


def test_a_service_that_is_just_coming_up_is_asked_again() -> None:
    """Nothing listens there at first; the first look at the port begins to listen."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{place.getsockname()[1]}"
        with pytest.raises(Unreachable):
            ServiceClient(url, None).get("/v1/status")
        asking = threading.Thread(target=answer_once, args=(place,))

        def begin(*_: object) -> None:
            if not asking.is_alive():
                place.listen()
                asking.start()

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(httpcore.NetworkBackend, "sleep", begin)
            assert ServiceClient(url, None, starting=True).get("/v1/status") == {}
        asking.join()


def answer_once(place: socket.socket) -> None:
    connection, _ = place.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


@pytest.mark.parametrize("url", ["foo", "localhost:8420", "ftp://a"])
def test_what_is_no_address_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(WrongSetting, match="not the address of a service, such as http://127"):
        ServiceClient(url, None).get("/v1/status")


def test_something_else_that_answers_there_is_told() -> None:
    with pytest.raises(Failure, match="not a Thalweg service"):
        client(lambda request: httpx.Response(200, text="<html>")).get("/v1/status")
    with pytest.raises(Failure, match="502"):
        client(lambda request: httpx.Response(502, text="<html>")).get("/v1/status")


def test_service_is_the_given_the_announced_else_the_default(tmp_path: Path) -> None:
    nowhere, mine = tmp_path / "nowhere", tmp_path / "mine"
    mine.mkdir()
    assert locate_service(None, nowhere) == (DEFAULT_URL, ""), "a machine without a data directory"
    assert locate_service("http://other:1/", nowhere, named=True) == ("http://other:1", "")
    for folder, named in ((nowhere, True), (mine, False), (mine, True)):
        with pytest.raises(
            Unreachable, match=f"running on the data directory {folder}.*thalweg up --data-dir {folder}"
        ):
            locate_service(None, folder, named=named)

    announce(mine, Running(pid=os.getpid(), kafka="127.0.0.1:9"), "worker")
    with pytest.raises(Unreachable, match="No query service is running"):
        locate_service(None, mine)
    announce(mine, Running(pid=os.getpid(), kafka="127.0.0.1:9", service_url="http://127.0.0.1:7777"))
    assert locate_service(None, mine) == ("http://127.0.0.1:7777", installation_of(mine))
    assert locate_service("http://other:1/", mine) == ("http://other:1", "")


@pytest.mark.parametrize("status", [200, 404, 421])
def test_answer_of_another_installation_is_refused(status: int) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers[INSTALLATION_HEADER])
        return httpx.Response(status, json={"title": "T", "detail": "D"}, headers={INSTALLATION_HEADER: "theirs"})

    asking = ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(answer), installation="mine")
    calls = (
        lambda: asking.get("/v1/status"),
        lambda: asking.delete("/v1/collections/a"),
        lambda: list(asking.events("/v1/search", {"q": "x"})),
        lambda: asking.get_bytes("/v1/dead-letters/0:1", {}),
    )
    for call in calls:
        with pytest.raises(Unreachable, match="another installation answers") as caught:
            call()
        assert ("refused" in str(caught.value)) == (status == 421)
    assert asked == ["mine"] * len(calls)


def test_answer_that_names_no_installation_is_refused() -> None:
    """An older version, or another program; a proxy's refusal is shown as such."""
    answers = [httpx.Response(200, json={}), httpx.Response(502, text="Bad gateway")]
    asking = ServiceClient(
        "http://127.0.0.1:1", None, httpx.MockTransport(lambda _: answers.pop(0)), installation="mine"
    )
    with pytest.raises(Unreachable, match="another installation"):
        asking.get("/v1/status")
    with pytest.raises(Failure, match="502"):
        asking.get("/v1/status")


def shown(width: int = 200) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=width, soft_wrap=True), text


def test_a_hit_shows_title_section_scores_and_its_path_with_evidence() -> None:
    console, text = shown()
    hit = json.loads(make_hit(1, "The [bold]river[/bold] is\n high.").model_dump_json(by_alias=True))
    show_hit(console, hit)
    lines = text.getvalue().splitlines()
    assert lines[0].split() == ["1", "Note", "1", "›", "Today"], "a heading that is the title is not said twice"
    assert "default/notes/1.md" in lines[1]
    assert "vector 0.9  graph 0.5" in lines[1]
    assert lines[2].strip() == "The [bold]river[/bold] is high."
    assert lines[3].strip() == "river ─mentions→ Note 1"
    assert "“The [bold]river[/bold] is high.”" in lines[4]


def test_the_last_line_names_what_is_missing() -> None:
    console, text = shown()
    done = {"retrieval_id": "r_1", "hits": 1, "timings": {"total": 0.02}, "failed_channels": {"graph": "too late"}}
    show_end(console, done, {"snapshot": {"positions": "0:7", "generation": "g0001"}})
    assert "1 hit in 20 ms, as of 0:7 (g0001). Retrieval r_1" in text.getvalue()
    assert "Without the graph channel: too late" in text.getvalue()


def test_a_long_text_is_cut_to_a_snippet() -> None:
    assert len(snippet("word " * 1_000)) <= 240
    assert snippet("word " * 1_000).endswith("…")


class Crowded:
    """A service that refuses the first requests, each with its own status."""

    def __init__(self, *refusals: int) -> None:
        self.refusals = list(refusals)
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.refusals:
            told = {"title": "Too many searches", "detail": "Ask again.", "reason": "overloaded"}
            return httpx.Response(self.refusals.pop(0), json=told, headers={"Retry-After": "3"})
        if request.headers["accept"] == "text/event-stream":
            return httpx.Response(200, text='event: done\ndata: {"hits": 0}\n\n')
        return httpx.Response(200, json={"hits": []})


@pytest.mark.parametrize("stream", [False, True])
def test_a_service_with_too_many_searches_is_asked_again_when_it_says(stream: bool) -> None:
    crowded = Crowded(503, 429, 503)
    slept: list[float] = []
    asking = ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(crowded), sleep=slept.append)
    if stream:
        assert list(asking.events("/v1/search", {"q": "x"})) == [("done", {"hits": 0}, None)]
    else:
        assert asking.get("/v1/search", {"q": "x"}) == {"hits": []}
    assert crowded.asked == 4
    assert len(slept) == 3
    assert all(3 <= seconds <= 4.5 for seconds in slept)


def test_one_that_stays_so_is_told_in_its_own_words() -> None:
    asking = ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(Crowded(503)), busy_seconds=0)
    with pytest.raises(ServiceBusy, match=r"Too many searches: Ask again\."):
        asking.get("/v1/search", {"q": "x"})


def test_a_batch_waits_while_the_service_can_take_nothing() -> None:
    answers = [
        httpx.Response(503, json={"title": "Kafka unavailable", "detail": "Later."}, headers={"Retry-After": "5"}),
        httpx.Response(429, json={"title": "Busy", "detail": "Later."}, headers={"Retry-After": "2"}),
        httpx.Response(202, json={"token": "0:1", "accepted": [{"index": 0}], "refused": []}),
        httpx.Response(503, json={"title": "Kafka unavailable", "detail": "Later."}),
        httpx.Response(202, json={"token": "0:2"}),
    ]
    asked: list[tuple[str, str, bytes]] = []
    pauses: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.raw_path.decode(), request.content))
        return answers.pop(0)

    patient = ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(answer), sleep=pauses.append)
    assert patient.publish([b'{"id": "a"}', b'{"id": "b"}'])["token"] == "0:1"
    assert asked == [("POST", "/v1/documents", b'[{"id": "a"},{"id": "b"}]')] * 3
    assert [5 <= pauses[0] <= 7.5, 2 <= pauses[1] <= 3] == [True, True]
    assert patient.withdraw("m", "../a b.md")["token"] == "0:2"
    assert asked[-1][:2] == ("DELETE", "/v1/documents/%2E%2E%2Fa%20b%2Emd?collection=m")


def test_a_batch_of_which_nothing_is_taken_says_why_of_each() -> None:
    refused = [{"index": 0, "status": 413, "reason": "too_large", "detail": "Too large."}]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(413, json={"title": "Document refused", "detail": "Too large.", "refused": refused})

    assert client(answer).publish([b"{}"]) == {"token": "", "accepted": [], "refused": refused}


def test_a_service_that_stays_away_fails_a_batch_in_its_own_words() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, json={"title": "Kafka unavailable", "detail": "Later.", "refused": [{"index": 0}]})

    impatient = ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(answer), busy_seconds=0)
    with pytest.raises(ServiceUnavailable, match=r"Kafka unavailable: Later\."):
        impatient.publish([b"{}"])
