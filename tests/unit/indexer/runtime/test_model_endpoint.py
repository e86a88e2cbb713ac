"""The endpoint of a model: answers bounded in bytes and time, and what each status means."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import httpx
import pytest
from pydantic import SecretStr

from indexer.runtime import model_endpoint
from indexer.runtime.model_endpoint import EndpointErrors, ModelEndpoint

BODY = {"text": "ä"}


class Pieces(httpx.SyncByteStream):
    """A body that comes in pieces, with something done before each."""

    def __init__(self, pieces: list[bytes], before: Callable[[], None] = lambda: None) -> None:
        self._pieces = pieces
        self._before = before

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._before()
            yield piece


class Unavailable(Exception):
    def __init__(self, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Busy(Unavailable):
    """429."""


class Refused(Exception):
    """The settings are wrong."""


class Unusable(Exception):
    """Something else came."""


ERRORS = EndpointErrors(Unavailable, Busy, Refused, Unusable)


@contextmanager
def endpoint(response: httpx.Response, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelEndpoint]:
    """One that gives this answer to every request, which has to hold the key and the body."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer key"
        assert json.loads(request.read()) == BODY
        return response

    client = partial(httpx.Client, transport=httpx.MockTransport(answer))
    monkeypatch.setattr(model_endpoint.httpx, "Client", client)
    made = ModelEndpoint(
        "The model",
        "http://model.test/v1",
        "/ask",
        model="m",
        api_key=SecretStr("key"),
        seconds=5.0,
        settings="THALWEG_MODEL",
        not_taken="the text ({}); it may be too long",
        errors=ERRORS,
    )
    yield made
    made.close()


def test_whole_answer_is_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    with endpoint(httpx.Response(200, stream=Pieces([b"ab", b"cd"])), monkeypatch) as model:
        assert model.post(BODY, 4) == b"abcd"


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (429, Busy, "takes no more just now (429)."),
        (503, Unavailable, "failed (503)."),
        (401, Refused, "refuses the key (401): set THALWEG_MODEL__API_KEY."),
        (404, Refused, "does not know the model 'm', or is no such endpoint (404): set THALWEG_MODEL__MODEL or"),
        (302, Refused, "is no such endpoint (302)"),
        (413, Unusable, "does not take the text (413); it may be too long."),
    ],
)
def test_each_status_is_reported_without_the_body(
    status: int, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    response = httpx.Response(status, headers={"retry-after": "7"}, stream=Pieces([b"secret"] * 1_000))
    with endpoint(response, monkeypatch) as model, pytest.raises(error) as raised:
        model.post(BODY, 100)
    assert str(raised.value).startswith("The model at http://model.test/v1 ")
    assert message in str(raised.value)
    assert getattr(raised.value, "retry_after", 7.0) == 7.0


def test_no_more_than_the_bound_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = Pieces([b"x" * 60] * 1_000)
    with endpoint(httpx.Response(200, stream=endless), monkeypatch) as model, pytest.raises(Unusable, match="than 100"):
        model.post(BODY, 100)


def test_answer_that_trickles_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def wait() -> None:
        now[0] += 2.0

    trickling = httpx.Response(200, stream=Pieces([b"x"] * 10, before=wait))
    with endpoint(trickling, monkeypatch) as model, pytest.raises(Unavailable, match="within 5 s"):
        model.post(BODY, 100)
    assert now[0] == 6.0


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'[{"a":', Unavailable),
        (b'{"a": 1', Unavailable),
        (b'{"a": 1}', Unusable),
        (b"<html>", Unusable),
        (b"\xff\xfe", Unusable),
        (b"", Unusable),
    ],
)
def test_answer_of_another_form_is_unusable_unless_cut(
    content: bytes, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(httpx.Response(200), monkeypatch) as model, pytest.raises(error):
        model.decoded(content, list[int], "numbers")
