"""Search streams: who gets one, how it is resumed, and that nobody's search runs for nobody."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge

from indexer.errors import TransientStoreError
from query_api.errors import ApiProblem
from query_api.sse.resume_buffer import RecordedStream, ReplayBuffer
from query_api.sse.stream import SearchStreams, accepts_events
from schemas.answers import AnswerDelta
from schemas.frames import Stage
from schemas.search import SearchRequest
from tests.support.fakes.engine import ScriptedEngine, Words, make_hit
from tests.support.fakes.text_stores import world
from tests.support.waiting import eventually

REQUEST = SearchRequest(q="the river")
SNAPSHOT = world([])[0]


@pytest.mark.parametrize(
    ("accept", "stream"),
    [
        (None, False),
        ("*/*", False),
        ("application/json", False),
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("application/json, text/event-stream", True),
        ("application/json, text/event-stream;q=0.5", False),
        ("text/event-stream;q=0", False),
        ("text/event-stream;q=nonsense", False),
    ],
)
def test_a_stream_is_for_clients_that_accept_one(accept: str | None, stream: bool) -> None:
    assert accepts_events(accept) is stream


class Streams:
    """SearchStreams over a scripted engine."""

    def __init__(self, engine: ScriptedEngine, **limits: int) -> None:
        self.engine = engine
        self.clients = Gauge("clients", "now", registry=CollectorRegistry())
        self.replay = ReplayBuffer(10, 60, 10**9)
        self.of = SearchStreams(self._retrieve, self.replay, self.clients, **limits)

    def _retrieve(
        self, request: SearchRequest, retrieval_id: str, snapshot: Any, **_: Any
    ) -> AsyncGenerator[Any, None]:
        return self.engine.search(request, retrieval_id, snapshot, Words(), None)  # type: ignore[arg-type]

    def begin(self) -> RecordedStream:
        return self.of.begin(REQUEST, SNAPSHOT, instead_of=None)


async def read_all(streams: Streams, stream: RecordedStream, after: int = -1) -> list[tuple[str, str, Any]]:
    return [parsed(frame) async for frame in streams.of.frames(stream, after)]


def parsed(frame: bytes) -> tuple[str, str, Any]:
    event, identifier, data = frame.decode().strip().split("\n")
    return event.removeprefix("event: "), identifier.removeprefix("id: "), json.loads(data.removeprefix("data: "))


async def test_a_stream_tells_snapshot_stages_hits_and_end_each_with_its_number() -> None:
    streams = Streams(ScriptedEngine(hits=[make_hit(1), make_hit(2)]))
    stream = streams.begin()
    frames = await read_all(streams, stream)
    assert [name for name, _, _ in frames] == ["meta", "stage", "hit", "hit", "done"]
    assert [identifier for _, identifier, _ in frames] == [f"{stream.retrieval_id}.{n}" for n in range(5)]
    assert streams.clients._value.get() == 0


async def test_the_search_stops_when_its_only_reader_leaves() -> None:
    engine = ScriptedEngine(hits=[make_hit(1), make_hit(2)], hold_at=1)
    streams = Streams(engine)
    stream = streams.begin()
    frames = streams.of.frames(stream, -1)
    for _ in range(3):
        await anext(frames)
    assert streams.clients._value.get() == 1
    await frames.aclose()  # type: ignore[attr-defined]
    await eventually(lambda: engine.cancelled == 1)
    assert not stream.finished
    assert streams.clients._value.get() == 0


async def test_an_interrupted_stream_is_finished_when_its_reader_comes_back() -> None:
    engine = ScriptedEngine(hits=[make_hit(1), make_hit(2), make_hit(3)], hold_at=1)
    streams = Streams(engine)
    stream = streams.begin()
    frames = streams.of.frames(stream, -1)
    first = [parsed(await anext(frames)) for _ in range(3)]
    await frames.aclose()  # type: ignore[attr-defined]
    engine.go_on.set()
    resumed = streams.of.resumable(first[-1][1], REQUEST)
    assert resumed is not None
    rest = await read_all(streams, *resumed)
    assert [name for name, _, _ in first + rest] == ["meta", "stage", "hit", "hit", "hit", "done"]
    assert [body["rank"] for name, _, body in first + rest if name == "hit"] == [1, 2, 3]
    assert engine.started == 2


async def test_a_reader_whose_old_connection_is_not_known_to_be_dead_joins_the_running_search() -> None:
    engine = ScriptedEngine(hits=[make_hit(1), make_hit(2)], hold_at=1)
    streams = Streams(engine)
    stream = streams.begin()
    old = streams.of.frames(stream, -1)
    for _ in range(3):
        await anext(old)
    joined = asyncio.create_task(read_all(streams, stream, 2))
    await eventually(lambda: stream.readers == 2)
    await old.aclose()  # type: ignore[attr-defined]
    engine.go_on.set()
    assert [name for name, _, _ in await joined] == ["hit", "done"]
    assert engine.started == 1


async def test_a_finished_stream_is_replayed_without_searching_again() -> None:
    engine = ScriptedEngine(hits=[make_hit(1)])
    streams = Streams(engine)
    stream = streams.begin()
    await read_all(streams, stream)
    resumed = streams.of.resumable(f"{stream.retrieval_id}.1", REQUEST)
    assert resumed is not None
    assert [name for name, _, _ in await read_all(streams, *resumed)] == ["hit", "done"]
    assert engine.started == 1
    assert stream.snapshot is None


async def test_frames_that_are_gone_or_of_another_question_are_not_resumed() -> None:
    streams = Streams(ScriptedEngine())
    stream = streams.begin()
    await read_all(streams, stream)
    assert streams.of.resumable("r_unknown.3", REQUEST) is None
    assert streams.of.resumable(f"{stream.retrieval_id}.99", REQUEST) is None
    assert streams.of.resumable(f"{stream.retrieval_id}.0", SearchRequest(q="another river")) is None
    assert streams.of.resumable(None, REQUEST) is None


@pytest.mark.parametrize(("form", "is_resumed"), [("extract", True), ("model", False)])
async def test_a_written_answer_that_was_cut_off_is_not_continued_by_another(form: str, *, is_resumed: bool) -> None:
    request = SearchRequest(q="the river", answer=True, answer_form=form)  # type: ignore[arg-type]
    streams = Streams(ScriptedEngine())
    stream = streams.of.begin(request, SNAPSHOT, instead_of=None)
    streams.replay.add(stream)
    stream.append("stage", Stage(name="vector", seconds=0.1, candidates=1))
    assert streams.of.resumable(f"{stream.retrieval_id}.0", request) is not None
    stream.append("answer.delta", AnswerDelta(index=0, text="The river is high. [1]", citations=[1]))
    assert (streams.of.resumable(f"{stream.retrieval_id}.1", request) is not None) is is_resumed


async def test_a_new_stream_instead_of_lost_frames_begins_with_reset() -> None:
    streams = Streams(ScriptedEngine())
    stream = streams.of.begin(REQUEST, SNAPSHOT, instead_of="r_old.7")
    frames = await read_all(streams, stream)
    assert [name for name, _, _ in frames] == ["reset", "meta", "stage", "done"]
    assert frames[0][2]["reason"] == "The frames after 'r_old.7' are gone. This is a new retrieval."
    assert frames[0][1] == f"{stream.retrieval_id}.0"


async def test_an_id_that_came_with_another_question_is_said_to_be_that() -> None:
    streams = Streams(ScriptedEngine())
    earlier = streams.begin()
    await read_all(streams, earlier)
    event_id = f"{earlier.retrieval_id}.1"
    stream = streams.of.begin(SearchRequest(q="another river"), SNAPSHOT, instead_of=event_id)
    name, _, body = (await read_all(streams, stream))[0]
    assert name == "reset"
    assert f"'{event_id}' belongs to another search" in body["reason"]
    assert "gone" not in body["reason"]


@pytest.mark.parametrize(
    ("failure", "title"),
    [
        (RuntimeError("a secret path"), "Internal error"),
        (TransientStoreError("The disk is full."), "Search not answered"),
    ],
)
async def test_a_search_that_fails_after_it_began_ends_with_an_error_frame(failure: Exception, title: str) -> None:
    streams = Streams(ScriptedEngine(hits=[make_hit(1), make_hit(2)], fail_at=1, failure=failure))
    frames = await read_all(streams, streams.begin())
    assert [name for name, _, _ in frames] == ["meta", "stage", "hit", "error"]
    assert frames[-1][2]["title"] == title
    assert "secret" not in frames[-1][2]["detail"]


async def test_no_more_streams_than_allowed_are_open() -> None:
    streams = Streams(ScriptedEngine(hits=[make_hit(1)]), max_streams=1)
    streams.of.response(streams.begin(), -1)
    with pytest.raises(ApiProblem) as caught:
        streams.of.response(streams.begin(), -1)
    assert caught.value.status == 503


async def test_documents_that_are_followed_take_no_places_from_searches() -> None:
    async def for_ever() -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""

    streams = Streams(ScriptedEngine(hits=[make_hit(1)]), max_streams=1, max_status_streams=2)
    for _ in range(2):
        streams.of.following(for_ever())
    with pytest.raises(ApiProblem) as caught:
        streams.of.following(for_ever())
    assert caught.value.status == 503
    streams.of.response(streams.begin(), -1)


async def test_a_place_is_given_back_though_the_client_left_before_the_first_frame() -> None:
    streams = Streams(ScriptedEngine(hits=[make_hit(1)]), max_streams=1)

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        await asyncio.sleep(0)

    for _ in range(3):
        response = streams.of.response(streams.begin(), -1)
        await response({"type": "http", "method": "GET"}, gone, send)
