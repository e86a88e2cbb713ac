"""A language model that is asked for a text: what is sent, and a clean end for every way in which it fails."""

import asyncio
import logging
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from indexer.errors import ChatModelFailure
from indexer.runtime.chat_model import ChatModel
from schemas.answers import TokenUsage
from tests.support.fakes.model_endpoints import (
    BREAKING_OFF,
    BROKEN,
    CUT,
    HANGING,
    Answer,
    ChatEndpoint,
    busy,
    chat_endpoint,
    streamed,
)

SECRET = "sk-very-secret-0123456789"
DIARY = "my private diary"
ASKED = [{"role": "system", "content": "Answer."}, {"role": "user", "content": DIARY}]
SAID = "The harbour is deep – 46 m. 🌊"
WHOLE = b"".join(streamed(SAID))


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint(key=SECRET, writes=lambda _: SAID) as running:
        yield running


@asynccontextmanager
async def opened(endpoint: ChatEndpoint, seconds: float = 5.0, retries: int = 0) -> AsyncIterator[ChatModel]:
    model = ChatModel(endpoint.settings(timeout_seconds=seconds), retries)
    try:
        yield model
    finally:
        await model.close()


async def asked(model: ChatModel, usage: TokenUsage | None = None) -> str:
    deadline = asyncio.get_running_loop().time() + model.seconds
    reply = model.reply(ASKED, usage or TokenUsage(model="reader"), most_tokens=77, deadline=deadline)
    return "".join([piece async for piece in reply])


async def test_the_text_and_the_tokens_of_a_reply(endpoint: ChatEndpoint) -> None:
    usage = TokenUsage(model="reader")
    async with opened(endpoint) as model:
        assert await asked(model, usage) == SAID
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (4, 8, 12)
    [body] = endpoint.bodies
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("reader", 0, 77)
    assert "tools" not in body


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (busy(), "429"),
        (BROKEN, "failed .500"),
        (Answer(503), "failed .503"),
        (HANGING, r"within 0\.5 s"),
        (BREAKING_OFF, "broke off"),
        (CUT, "broke off|something other"),
        (Answer(instead=WHOLE[: WHOLE.index("–".encode()) + 1]), "broke off|something other"),
        (Answer(instead=WHOLE[: WHOLE.index("–".encode()) + 1] + b"\n\n"), "something other"),
        (Answer(401), "THALWEG_LANGUAGE_MODEL__API_KEY"),
        (Answer(404), "THALWEG_LANGUAGE_MODEL__MODEL"),
        (Answer(302, (("Location", "http://127.0.0.1:9/v1"),)), "THALWEG_LANGUAGE_MODEL__BASE_URL"),
        (Answer(400), "longer than it can read"),
        (Answer(instead=b"<html>It works!</html>"), "empty answer, or something other"),
        (Answer(instead=b"<html>no</html>" * 700_000), r"more than 4,194,304 bytes"),
        (Answer(instead=b"data: " + b"x" * 10_000_000), r"more than 4,194,304 bytes"),
        (Answer(500, instead=b"x" * 10_000_000), r"more than 4,194,304 bytes|failed .500"),
        (Answer(instead=b"data: nonsense\n\n"), "something other"),
        (Answer(instead=b"data: 5\n\ndata: [DONE]\n\n"), "something other"),
        (Answer(instead=b'data: {"choices": "many"}\n\n'), "something other"),
        (Answer(instead=b'data: {"choices": [{"delta": {"content": {"a": 1}}}]}\n\n'), "broke off"),
        (Answer(instead=b'data: {"error": {"message": "out of memory"}}\n\n'), "something other"),
        (Answer(instead=b""), "empty answer"),
        (Answer(instead=b"data: [DONE]\n\n"), "empty answer"),
    ],
)
async def test_a_bad_reply_ends_cleanly_without_key_or_text(
    endpoint: ChatEndpoint, caplog: pytest.LogCaptureFixture, answer: Answer, says: str
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.script = [answer]
    async with opened(endpoint, 0.5 if answer.hangs else 30.0) as model:
        with pytest.raises(ChatModelFailure, match=says) as caught:
            await asked(model)
        shown = "".join(traceback.format_exception(caught.value)) + repr(model)
        assert (SECRET in shown, DIARY in shown, SECRET in caplog.text) == (False, False, False)
        assert str(caught.value).startswith(f"The language model at {endpoint.url} ")
        assert await asked(model) == SAID


async def test_an_endpoint_that_is_away_cannot_be_reached() -> None:
    with chat_endpoint() as endpoint:
        pass
    async with opened(endpoint) as model:
        with pytest.raises(ChatModelFailure, match="cannot be reached"):
            await asked(model)


async def test_it_is_asked_again_where_it_was_busy(endpoint: ChatEndpoint) -> None:
    soon = (("Retry-After-Ms", "1"),)
    endpoint.script = [Answer(429, soon), Answer(500, soon)]
    async with opened(endpoint, retries=2) as model:
        assert await asked(model) == SAID
    assert len(endpoint.bodies) == 3


async def test_nothing_but_the_request_is_sent(endpoint: ChatEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "somebody-elses")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-custom: somebody-elses\nauthorization: Bearer somebody-elses")
    async with opened(endpoint) as model:
        await asked(model)
    endpoint.key = None
    async with opened(endpoint) as model:
        await asked(model)
    first, second = endpoint.headers
    assert (first["authorization"], second.get("authorization")) == (f"Bearer {SECRET}", None)
    assert second.keys() <= {"host", "accept", "connection", "user-agent", "content-type", "content-length"}
    assert "somebody-elses" not in str(endpoint.headers)


async def test_closing_the_iterator_ends_the_request(endpoint: ChatEndpoint) -> None:
    async with opened(endpoint) as model:
        reply = model.reply(
            ASKED,
            TokenUsage(model="reader"),
            most_tokens=9,
            deadline=asyncio.get_running_loop().time() + 5,
        )
        async for piece in reply:
            assert piece == SAID[:5]
            break
        await reply.aclose()
        assert await asked(model) == SAID


async def test_a_reply_that_trickles_is_late_as_a_whole(endpoint: ChatEndpoint) -> None:
    async def read_slowly(model: ChatModel) -> None:
        deadline = asyncio.get_running_loop().time() + 0.3
        async for _ in model.reply(ASKED, TokenUsage(model="reader"), most_tokens=9, deadline=deadline):
            await asyncio.sleep(0.4)

    async with opened(endpoint) as model:
        await asked(model)
        with pytest.raises(ChatModelFailure, match="did not answer within"):
            await read_slowly(model)


def test_the_client_is_imported_when_it_is_needed() -> None:
    program = "import sys, query_api.service_context; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
