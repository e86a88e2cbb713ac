"""The contract of whatever asks a model over HTTP: each client keeps every promise, whichever model it asks."""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from email.utils import formatdate
from typing import Any, NamedTuple

import pytest

from indexer import errors
from indexer.embedding.openai import EndpointEncoder
from indexer.extraction.language_model import LanguageModel
from query_api import rerankers
from query_api.rerankers.endpoint import EndpointReranker
from tests.support.fakes.model_endpoints import (
    BREAKING_OFF,
    BROKEN,
    HANGING,
    Answer,
    Endpoint,
    busy,
    chat_endpoint,
    embeddings_endpoint,
    reranking_endpoint,
)

SECRET = "sk-very-secret-0123456789"
DIARY = "my private diary"
ENCODER_SIZE = 384


class Port(NamedTuple):
    """A client of an endpoint: how it is opened with a time limit, how it is asked of a text, and what it raises."""

    endpoint: Callable[..., Any]
    open: Callable[[Any, float], Any]
    ask: Callable[[Any, str], object]
    busy: type[Exception]
    unavailable: type[Exception]
    refused: type[Exception]
    unusable: type[Exception]
    settings: str


PORTS = {
    "encoder": Port(
        embeddings_endpoint,
        lambda endpoint, seconds: EndpointEncoder(
            endpoint.settings(), ENCODER_SIZE, request_seconds=seconds, request_texts=8
        ),
        lambda encoder, text: encoder.encode([text, "another page"]),
        errors.EncoderBusy,
        errors.EncoderUnavailable,
        errors.EncoderRefused,
        errors.TextNotEncoded,
        "THALWEG_EMBEDDING",
    ),
    "reranker": Port(
        reranking_endpoint,
        lambda endpoint, seconds: EndpointReranker(endpoint.settings(), seconds),
        lambda reranker, text: reranker.scores("who keeps one", [text, "another page"]),
        rerankers.RerankerUnavailable,
        rerankers.RerankerUnavailable,
        rerankers.RerankerRefused,
        rerankers.TextsNotScored,
        "THALWEG_RERANKER",
    ),
    "language model": Port(
        chat_endpoint,
        lambda endpoint, seconds: LanguageModel(endpoint.settings(timeout_seconds=seconds)),
        lambda model, text: model.extract(text, []),
        errors.ExtractorUnavailable,
        errors.ExtractorUnavailable,
        errors.ExtractorRefused,
        errors.UnusableAnswer,
        "THALWEG_LANGUAGE_MODEL",
    ),
}


@pytest.fixture(params=PORTS.values(), ids=PORTS)
def port(request: pytest.FixtureRequest) -> Port:
    made: Port = request.param
    return made


@pytest.fixture
def endpoint(port: Port) -> Iterator[Endpoint]:
    with port.endpoint(key=SECRET) as running:
        yield running


def asked(port: Port, endpoint: Endpoint, seconds: float = 5.0) -> object:
    with closing(port.open(endpoint, seconds)) as client:
        return port.ask(client, DIARY)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (busy(), "busy", "429"),
        (BROKEN, "unavailable", "failed .500"),
        (Answer(503), "unavailable", "failed .503"),
        (Answer(408), "unavailable", "failed .408"),
        (HANGING, "unavailable", r"within 0\.2 s"),
        (BREAKING_OFF, "unavailable", "broke off"),
        (Answer(headers=(("Content-Encoding", "gzip"),)), "unavailable", "broke off"),
        (Answer(401), "refused", "{settings}__API_KEY"),
        (Answer(403), "refused", "{settings}__API_KEY"),
        (Answer(404), "refused", "{settings}__MODEL"),
        (Answer(405), "refused", "{settings}__BASE_URL"),
        (Answer(204), "refused", "no such endpoint .204"),
        (Answer(400), "unusable", "too long|does not take the text"),
        (Answer(instead=b"<html>It works!</html>"), "unusable", "something other than"),
        (Answer(instead=b"\xff\xfe"), "unusable", "something other than"),
        (Answer(instead=b""), "unusable", "something other than"),
    ],
)
def test_bad_answer_says_what_to_do_without_key_or_text(
    port: Port, endpoint: Endpoint, caplog: pytest.LogCaptureFixture, answer: Answer, kind: str, says: str
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.script = [answer]
    expected: type[Exception] = getattr(port, kind)
    with closing(port.open(endpoint, 0.2 if answer.hangs else 5.0)) as client:
        with pytest.raises(expected, match=says.format(settings=port.settings)) as caught:
            port.ask(client, DIARY)
        shown = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(client) + repr(vars(client))
        assert type(caught.value) is expected
        assert endpoint.url in str(caught.value)
        assert (SECRET in shown, DIARY in shown) == (False, False)
        port.ask(client, "The next one is fine.")


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7, 7), ("0.5", 0.5, 0.5), (formatdate(4_000_000_000, usegmt=True), 1e8, 4e9), ("-3", 0, 0)],
)
def test_busy_endpoint_says_how_long_to_wait(
    port: Port, endpoint: Endpoint, header: str, least: float, most: float
) -> None:
    endpoint.script = [busy(header)]
    with pytest.raises(port.busy) as caught:
        asked(port, endpoint)
    assert least <= caught.value.retry_after_seconds <= most  # type: ignore[attr-defined]


def test_wait_that_cannot_be_read_is_none(port: Port, endpoint: Endpoint) -> None:
    endpoint.script = [busy("soon"), busy("nan"), busy()]
    for _ in range(3):
        with pytest.raises(port.busy) as caught:
            asked(port, endpoint)
        assert caught.value.retry_after_seconds is None  # type: ignore[attr-defined]


def test_key_is_sent_as_it_is_and_none_where_there_is_none(
    port: Port, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "somebody-elses")
    asked(port, endpoint)
    endpoint.key = None
    asked(port, endpoint)
    assert [each.get("authorization") for each in endpoint.headers] == [f"Bearer {SECRET}", None]
    assert "somebody-elses" not in str(endpoint.headers)


def test_endpoint_that_is_away_cannot_be_reached(port: Port) -> None:
    with port.endpoint() as endpoint:
        client = port.open(endpoint, 5.0)
    with closing(client), pytest.raises(port.unavailable, match="cannot be reached"):
        port.ask(client, DIARY)


def test_half_a_surrogate_pair_is_repaired_before_it_is_sent(port: Port, endpoint: Endpoint) -> None:
    with closing(port.open(endpoint, 5.0)) as client:
        port.ask(client, "a lone surrogate \ud800")
    assert "\ud800" not in str(endpoint.bodies)
