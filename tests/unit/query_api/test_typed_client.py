"""The clients for programs: typed answers, streams that are resumed, writes with tokens; awaited, the same."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from query_api.client import RESUME_SECONDS, Refused, ServiceClient, ServiceUnavailable
from query_api.typed_client import Client
from schemas.answers import Answer
from schemas.errors import Failure, Unreachable, WrongSetting
from schemas.frames import Done, Meta, Reset
from schemas.hits import Hit
from tests.support.fakes.engine import make_hit
from thalweg import AsyncClient

SNAPSHOT = {"generation": "g1", "graph_position": 3, "table_versions": {}, "positions": "0:7", "as_of": "2026-11-27"}
META = {"retrieval_id": "r_1", "query": "river", "mode": "hybrid", "collection": None, "snapshot": SNAPSHOT}
META |= {"budget_seconds": 5}
DONE = {"retrieval_id": "r_1", "hits": 2, "timings": {}, "next_offset": None}
ANSWER = {**META, "hits": [], "timings": {}, "next_offset": None}

Handler = Callable[[httpx.Request], httpx.Response]


def hit(rank: int) -> dict[str, Any]:
    return make_hit(rank).model_dump(by_alias=True)


def service(answer: Handler, sleep: Callable[[float], None] = lambda _: None, key: str | None = None) -> ServiceClient:
    return ServiceClient("http://127.0.0.1:1", key, httpx.MockTransport(answer), busy_seconds=0, sleep=sleep)


def client(answer: Handler, sleep: Callable[[float], None] = lambda _: None) -> Client:
    return Client(service=service(answer, sleep))


def sent(request: httpx.Request) -> Any:
    return json.loads(request.content)


def frame(seq: int, name: str, data: object) -> bytes:
    return f"event: {name}\nid: r_1.{seq}\ndata: {json.dumps(data)}\n\n".encode()


class Streaming:
    """Answers with one of the parts after the other; each breaks off at its end."""

    def __init__(self, *parts: bytes | int) -> None:
        self._parts = list(parts)
        self.resumed_by: list[str | None] = []
        self.slept: list[float] = []
        self.asked: list[Any] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.resumed_by.append(request.headers.get("last-event-id"))
        self.asked.append(sent(request))
        part = self._parts.pop(0) if self._parts else 503
        if isinstance(part, int):
            return httpx.Response(part, json={"title": "Starting", "detail": "Not yet."})

        def body() -> Iterator[bytes]:
            yield part
            if b"event: done" not in part:
                raise httpx.RemoteProtocolError("peer closed connection")

        return httpx.Response(200, content=body())

    def frames(self, **parameters: Any) -> list[Any]:
        return list(client(self, self.slept.append).stream("river", **parameters))


def test_a_search_is_sent_whole_and_its_hits_are_typed() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", "/v1/search")
        assert sent(request) == {"q": "río & sea", "k": 2, "filter": ["status=Final"], "names": []}
        return httpx.Response(200, json={**ANSWER, "hits": [hit(1)]})

    found = client(answer).search("río & sea", k=2, filter=["status=Final"], names=[], after=None)
    assert found.hits == [make_hit(1)]
    assert found.hits[0].path[0].source == "river"


def test_an_answer_is_its_sentences() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/answers"
        return httpx.Response(200, json={**ANSWER, "answer": {"text": "", "refused": True, "reason": "Nothing."}})

    assert client(answer).ask("river") == Answer(text="", refused=True, reason="Nothing.")


def test_a_stream_is_its_frames_and_those_of_a_newer_service_are_left_out() -> None:
    whole = frame(0, "meta", META) + frame(1, "weather", {}) + frame(2, "hit", hit(1)) + frame(3, "done", DONE)
    streaming = Streaming(whole)
    assert [type(each) for each in streaming.frames(k=1)] == [Meta, Hit, Done]
    assert (streaming.asked, streaming.slept) == ([{"q": "river", "k": 1}], [0])


def test_a_stream_that_breaks_off_continues_after_the_last_whole_frame() -> None:
    cut = frame(2, "hit", hit(2))[:-20]
    streaming = Streaming(
        frame(0, "meta", META) + frame(1, "hit", hit(1)) + cut, 503, frame(2, "hit", hit(2)) + frame(3, "done", DONE)
    )
    frames = streaming.frames()
    assert [each.rank for each in frames if isinstance(each, Hit)] == [1, 2]
    assert isinstance(frames[-1], Done)
    assert streaming.resumed_by == [None, "r_1.1", "r_1.1"]
    assert streaming.slept == [0, *RESUME_SECONDS[:2]]
    assert streaming.asked == [{"q": "river"}] * 3


def test_where_the_rest_is_gone_a_reset_says_so() -> None:
    again = frame(0, "reset", {"reason": "gone"}) + frame(1, "hit", hit(1)) + frame(2, "done", DONE)
    frames = Streaming(frame(0, "hit", hit(1)), again).frames()
    assert [type(each) for each in frames] == [Hit, Reset, Hit, Done]


def test_a_stream_that_does_not_come_back_is_a_failure() -> None:
    streaming = Streaming(frame(0, "meta", META))
    with pytest.raises(ServiceUnavailable, match="Not yet"):
        streaming.frames()
    assert streaming.slept == [0, *RESUME_SECONDS]


def test_a_stream_whose_end_a_proxy_drops_is_a_failure() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=frame(0, "meta", META))

    with pytest.raises(Unreachable, match="broke off before its end"):
        list(client(answer).stream("river"))


def test_a_search_that_never_began_is_not_resumed() -> None:
    streaming = Streaming(503)
    with pytest.raises(ServiceUnavailable):
        streaming.frames()
    assert (streaming.resumed_by, streaming.slept) == ([None], [0])


def test_an_error_in_a_stream_is_a_failure_in_its_own_words() -> None:
    streaming = Streaming(frame(0, "meta", META) + frame(1, "error", {"title": "Lost", "detail": "The disk."}))
    with pytest.raises(Failure, match=r"Lost: The disk\."):
        streaming.frames()


def test_documents_are_published_and_deleted_with_tokens() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            assert request.url.raw_path == b"/v1/documents/a%2Fb?collection=notes"
            return httpx.Response(202, json={"token": "0:8", "documents": 1})
        assert sent(request) == [{"id": "a/b", "content": "Hej"}, {"id": ""}]
        accepted = [{"index": 0, "id": "a/b", "collection": "notes", "position": "0:7"}]
        refused = [{"index": 1, "status": 422, "reason": "missing_id", "detail": "The id is empty."}]
        return httpx.Response(202, json={"token": "0:7", "documents": 1, "accepted": accepted, "refused": refused})

    made = client(answer)
    written = made.publish([{"id": "a/b", "content": "Hej"}, {"id": ""}])
    assert (written.token, written.accepted[0].position, written.refused[0].reason) == ("0:7", "0:7", "missing_id")
    assert made.delete("a/b", "notes").token == "0:8"


def test_a_batch_of_which_none_is_taken_says_why() -> None:
    refused = [{"index": 0, "status": 422, "reason": "missing_id", "detail": "The id is empty."}]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(422, json={"title": "Refused", "detail": "All.", "refused": refused})

    written = client(answer).publish([{}])
    assert (written.token, written.documents, len(written.refused)) == ("", 0, 1)


@pytest.mark.parametrize(("token", "position"), [("0:7", {"position": "0:7"}), ("", {})])
def test_the_status_of_a_write_or_of_the_newest(token: str, position: dict[str, str]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert dict(request.url.params) == {"collection": "default", **position}
        return httpx.Response(200, json={"id": "a", "collection": "default", "status": "indexed", "final": True})

    assert client(answer).status("a", token=token).final


@pytest.mark.parametrize("value", [{1}, b"x", object()])
def test_what_json_cannot_hold_is_refused_before_it_is_sent(value: object) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError("nothing is sent")

    for call in (lambda: client(answer).search("river", k=value), lambda: client(answer).publish([{"id": value}])):
        with pytest.raises(WrongSetting, match="cannot be sent as JSON"):
            call()


def test_a_wrong_parameter_is_refused_in_the_services_words() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(422, json={"title": "Bad request", "detail": "There is no parameter `kk`."})

    with pytest.raises(Refused, match="There is no parameter `kk`"):
        client(answer).search("river", kk=1)


@pytest.mark.parametrize("body", [{}, {**ANSWER, "mode": "dowsing"}, {**ANSWER, "hits": [{}]}])
def test_an_answer_of_another_version_is_a_failure_that_names_the_place(body: dict[str, Any]) -> None:
    with pytest.raises(Failure, match=r"SearchAnswer that this version of the client cannot read, at \('"):
        client(lambda request: httpx.Response(200, json=body)).search("river")


def test_the_key_is_the_argument_else_that_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    sent_keys = []

    def send(self: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        sent_keys.append(request.headers.get("authorization"))
        return httpx.Response(200, json=ANSWER, request=request)

    monkeypatch.setattr(httpx.Client, "send", send)
    monkeypatch.setenv("THALWEG_SERVICE__API_KEY", "of-the-environment")
    for key in (None, "given"):
        with Client("http://127.0.0.1:1", key) as made:
            made.search("river")
    assert sent_keys == ["Bearer of-the-environment", "Bearer given"]


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines"])
def test_a_key_that_no_header_can_hold_is_refused(key: str) -> None:
    with pytest.raises(WrongSetting, match="key"):
        Client("http://127.0.0.1:1", key)


async def test_awaited_the_same_methods_answer() -> None:
    streaming = Streaming(frame(0, "meta", META), frame(1, "hit", hit(1)) + frame(2, "done", DONE))

    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers["accept"] == "text/event-stream":
            return streaming(request)
        return httpx.Response(200, json={**ANSWER, "hits": [hit(k) for k in range(1, sent(request)["k"] + 1)]})

    async with AsyncClient(service=service(answer)) as made:
        found = await asyncio.gather(*(made.search("river", k=k) for k in (1, 2, 3)))
        assert [len(each.hits) for each in found] == [1, 2, 3]
        assert [type(each) async for each in made.stream("river")] == [Meta, Hit, Done]
    assert streaming.resumed_by == [None, "r_1.0"]


async def test_calls_run_at_once() -> None:
    together = threading.Barrier(20, timeout=10)

    def answer(request: httpx.Request) -> httpx.Response:
        together.wait()
        return httpx.Response(200, json=ANSWER)

    async with AsyncClient(service=service(answer)) as made:
        await asyncio.gather(*(made.search("river") for _ in range(20)))


async def test_a_stream_that_is_cancelled_is_closed_by_the_thread_that_reads_it() -> None:
    reading, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    class Body(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield frame(0, "meta", META)
            reading.set()
            go_on.wait(10)
            yield frame(1, "hit", hit(1))

        def close(self) -> None:
            closed.set()

    async def read(made: AsyncClient) -> None:
        async for _ in made.stream("river"):
            pass

    made = AsyncClient(service=service(lambda request: httpx.Response(200, stream=Body())))
    task = asyncio.create_task(read(made))
    assert await asyncio.to_thread(reading.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not closed.is_set()
    go_on.set()
    assert await asyncio.to_thread(closed.wait, 10)
    await made.close()


def test_the_clients_are_loaded_when_they_are_asked_for() -> None:
    program = (
        "import sys, thalweg; assert 'query_api.typed_client' not in sys.modules; "
        "from thalweg import Client, AsyncClient; print(Client.__module__, hasattr(thalweg, 'Server'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "query_api.typed_client False\n"


async def test_conversations_are_begun_read_renamed_and_deleted() -> None:
    asked: list[tuple[str, str, Any]] = []
    about = {"id": "c1", "title": "Rivers", "message_count": 1, "created": "2026-11-27", "changed": "2026-11-27"}
    message = {"role": "user", "text": "river?", "retrieval_id": "r_1", "at": "2026-11-27"}

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.raw_path.decode(), sent(request) if request.content else None))
        if request.method == "DELETE":
            return httpx.Response(204)
        if request.method == "GET":
            more = {"conversations": [about]} if request.url.path.endswith("conversations") else {"messages": [message]}
            return httpx.Response(200, json=about | more)
        return httpx.Response(200, json=about)

    made = client(answer)
    begun = made.begin_conversation(collection="a", documents=["b"])
    assert (begun.id, made.conversation(begun.id).messages[0].text) == ("c1", "river?")
    made.rename_conversation("c1", "Streams")
    async with AsyncClient(service=service(answer)) as awaited:
        assert (await awaited.conversations(limit=2, cursor="x")).conversations[0].title == "Rivers"
        await awaited.delete_conversation("c1")
    assert asked == [
        ("POST", "/v1/conversations", {"collection": "a", "documents": ["b"]}),
        ("GET", "/v1/conversations/c1?limit=200", None),
        ("PATCH", "/v1/conversations/c1", {"title": "Streams"}),
        ("GET", "/v1/conversations?limit=2&cursor=x", None),
        ("DELETE", "/v1/conversations/c1", None),
    ]


def test_a_stream_in_a_conversation_is_that_of_an_answer() -> None:
    paths: list[str] = []
    streaming = Streaming(frame(0, "meta", META) + frame(1, "done", DONE))

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return streaming(request)

    frames = list(client(answer).stream("river", conversation="c1"))
    assert (paths, len(frames), streaming.asked) == (["/v1/answers"], 2, [{"q": "river", "conversation": "c1"}])
