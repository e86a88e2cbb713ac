"""Streams that can be resumed: ids, frames kept in order, nothing told twice, and the limits of the buffer."""

import asyncio
import json
import re

import pytest

from query_api.sse.events import EventId, encode_frame, new_retrieval_id
from query_api.sse.resume_buffer import RecordedStream, ReplayBuffer
from schemas.frames import Done, Stage, StreamError
from schemas.search import SearchRequest
from tests.support.fakes.engine import make_hit

REQUEST = SearchRequest(q="the river")


def stage(name: str, seconds: float = 0.01) -> Stage:
    return Stage(name=name, seconds=seconds, candidates=3)


def done() -> Done:
    return Done(retrieval_id="r_1", hits=1, timings={}, next_offset=None)


def stream_of(*frames: tuple[str, object]) -> RecordedStream:
    stream = RecordedStream("r_1", REQUEST, None)
    for name, body in frames:
        stream.append(name, body)  # type: ignore[arg-type]
    return stream


def test_a_later_retrieval_sorts_after_an_earlier_one_and_no_id_repeats() -> None:
    ids = [new_retrieval_id() for _ in range(1_000)]
    assert len(set(ids)) == 1_000
    assert all(re.fullmatch(r"r_[0-9a-f]{28}", each) for each in ids)
    assert [each[:14] for each in ids] == sorted(each[:14] for each in ids)


@pytest.mark.parametrize("text", ["", "r_1", ".3", "r_1.", "r_1.x", "r_1.-1", "r_1.٣", "r_1." + "9" * 40])
def test_what_is_no_frame_id_is_not_taken_for_one(text: str) -> None:
    assert EventId.parse(text) is None


def test_a_frame_id_is_read_back_as_it_was_written() -> None:
    assert EventId.parse(str(EventId("r_1", 17))) == EventId("r_1", 17)


def test_a_frame_is_event_id_and_one_line_of_json() -> None:
    frame = encode_frame(EventId("r_1", 2), "hit", make_hit(1, "Two\nlines, naïve\u2028text."))
    assert frame.endswith(b"\n\n")
    event, identifier, data = frame.decode().removesuffix("\n\n").split("\n")
    assert (event, identifier) == ("event: hit", "id: r_1.2")
    body = json.loads(data.removeprefix("data: "))
    assert body["text"] == "Two\nlines, naïve\u2028text."
    assert body["path"][0]["from"] == "river"


async def test_a_reader_gets_what_is_there_and_what_comes_and_ends_after_the_last_frame() -> None:
    stream = stream_of(("stage", stage("vector")))
    seen: list[bytes] = []

    async def read() -> None:
        async for frame in stream.frames_after(-1):
            seen.append(frame)  # noqa: PERF401 -- one by one, to see what is there before the end

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    assert len(seen) == 1
    stream.append("hit", make_hit(1))
    stream.append("done", done())
    await reading
    assert [frame.split(b"\n")[0] for frame in seen] == [b"event: stage", b"event: hit", b"event: done"]
    assert stream.finished


async def test_a_reader_that_comes_back_gets_the_rest_only() -> None:
    stream = stream_of(("stage", stage("vector")), ("hit", make_hit(1)), ("hit", make_hit(2)), ("done", done()))
    frames = [frame async for frame in stream.frames_after(1)]
    assert [frame.split(b"\n")[1] for frame in frames] == [b"id: r_1.2", b"id: r_1.3"]


def test_a_search_run_again_tells_nothing_twice_even_when_its_stages_end_in_another_order() -> None:
    stream = stream_of(("stage", stage("vector")), ("hit", make_hit(1)))
    for name, body in (
        ("stage", stage("keyword")),
        ("stage", stage("vector", 0.5)),
        ("hit", make_hit(1)),
        ("hit", make_hit(2)),
        ("done", done()),
    ):
        stream.append(name, body)  # type: ignore[arg-type]
    lines = [frame.split(b"\n") for frame in stream.frames]
    assert [(line[0], line[1]) for line in lines] == [
        (b"event: stage", b"id: r_1.0"),
        (b"event: hit", b"id: r_1.1"),
        (b"event: stage", b"id: r_1.2"),
        (b"event: hit", b"id: r_1.3"),
        (b"event: done", b"id: r_1.4"),
    ]


def test_nothing_follows_the_last_frame() -> None:
    stream = stream_of(("error", StreamError(title="Broken", detail="…")))
    stream.append("hit", make_hit(1))
    assert len(stream.frames) == 1


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def kept(buffer: ReplayBuffer, name: str, frames: int = 1) -> RecordedStream:
    stream = RecordedStream(name, REQUEST, None)
    for number in range(frames):
        stream.append("hit", make_hit(number + 1))
    buffer.add(stream)
    return stream


def test_the_longest_untouched_stream_goes_first_when_there_are_too_many() -> None:
    buffer = ReplayBuffer(2, 60, 10**9, Clock())
    first = kept(buffer, "first")
    kept(buffer, "second")
    buffer.add(first)
    kept(buffer, "third")
    assert buffer.find("second") is None
    assert buffer.find("first") is first


def test_a_stream_goes_when_its_time_is_over() -> None:
    clock = Clock()
    buffer = ReplayBuffer(10, 60, 10**9, clock)
    kept(buffer, "old")
    clock.now += 61
    assert buffer.find("old") is None
    assert len(buffer) == 0


def test_streams_go_when_their_frames_are_too_large_together() -> None:
    buffer = ReplayBuffer(10, 60, 3_500, Clock())
    kept(buffer, "large", frames=5)
    kept(buffer, "small")
    assert buffer.find("large") is None
    assert buffer.find("small") is not None


def test_a_stream_that_is_being_read_stays() -> None:
    clock = Clock()
    buffer = ReplayBuffer(1, 60, 10**9, clock)
    stream = RecordedStream("read", REQUEST, None, readers=1)
    buffer.add(stream)
    clock.now += 1_000
    kept(buffer, "other")
    assert buffer.find("read") is stream


async def test_frames_that_a_reader_leaves_unread_make_room_and_it_is_told() -> None:
    buffer = ReplayBuffer(10, 60, 3_500, Clock())
    silent = RecordedStream("silent", REQUEST, None)
    for number in range(5):
        silent.append("hit", make_hit(number + 1))
    silent.readers = 1
    reading = silent.frames_after(-1)
    assert b"id: silent.0" in await anext(reading)
    buffer.add(silent)
    assert silent.size == 0
    assert buffer.find("silent") is None
    (last,) = [frame async for frame in reading]
    assert last.startswith(b"event: error\nid: silent.0\n")
    assert b"Read too slowly" in last


async def test_those_who_read_on_keep_their_frames_longest() -> None:
    buffer = ReplayBuffer(10, 60, 5_000, Clock())
    silent, reading = (RecordedStream(name, REQUEST, None, readers=1) for name in ("silent", "reading"))
    for stream in (reading, silent):
        buffer.add(stream)
        for number in range(5):
            stream.append("hit", make_hit(number + 1))
    await anext(reading.frames_after(-1))
    silent.read_at = reading.read_at - 1
    buffer.prune()
    assert (silent.evicted, reading.evicted) == (True, False)
    assert buffer.find("reading") is reading
