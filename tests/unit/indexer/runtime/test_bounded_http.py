"""Answers bounded in bytes and time."""

import json
from collections.abc import Callable, Iterator

import httpx
import pytest

from indexer.runtime.bounded_http import AnswerTooLong, BoundedAnswer, post_json

URL = "http://model.test/v1"


class Pieces(httpx.SyncByteStream):
    """A body that comes in pieces, with something done before each."""

    def __init__(self, pieces: list[bytes], before: Callable[[], None] = lambda: None) -> None:
        self._pieces = pieces
        self._before = before

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._before()
            yield piece


def posted(response: httpx.Response, seconds: float = 5.0, max_bytes: int = 100) -> BoundedAnswer:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return response

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        found = post_json(client, URL, {"text": "ä"}, seconds=seconds, max_bytes=max_bytes)
    assert json.loads(asked[0].read()) == {"text": "ä"}
    return found


def test_a_whole_answer_is_its_bytes() -> None:
    assert posted(httpx.Response(200, stream=Pieces([b"ab", b"cd"]))) == BoundedAnswer(200, b"abcd", None)
    assert posted(httpx.Response(200, stream=Pieces([b"x" * 100]))).content == b"x" * 100


def test_another_status_is_told_without_its_body() -> None:
    response = httpx.Response(429, headers={"retry-after": "7"}, stream=Pieces([b"x" * 1_000]))
    assert posted(response) == BoundedAnswer(429, b"", 7.0)


def test_no_more_than_the_bound_is_read() -> None:
    endless = Pieces([b"x" * 60] * 1_000)
    with pytest.raises(AnswerTooLong):
        posted(httpx.Response(200, stream=endless))


def test_an_answer_that_trickles_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def wait() -> None:
        now[0] += 2.0

    with pytest.raises(httpx.TimeoutException, match="more than 5 s"):
        posted(httpx.Response(200, stream=Pieces([b"x"] * 10, before=wait)))
    assert now[0] == 6.0
