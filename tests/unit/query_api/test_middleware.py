"""Limits of request bodies: bytes of one and of all, members of a JSON text."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from query_api import middleware as module
from query_api.middleware import BodySizeMiddleware, JsonSize, json_size
from schemas.settings import LimitSettings
from tests.support.fakes.engine import ScriptedEngine
from tests.support.fakes.service import Running, problem, service_over

TEXT = {"Content-Type": "text/plain"}


async def test_room_of_a_body_is_given_back_whatever_happens() -> None:
    async def broken(_scope: Scope, receive: Receive, _send: Send) -> None:
        while await receive():
            pass

    middleware = BodySizeMiddleware(broken, max_request_bytes=10, bytes_at_once=10)
    for _ in range(2):
        parts = iter([b"x" * 6, b"x" * 4])

        async def receive(parts: Iterator[bytes] = parts) -> Message:
            return {"type": "http.request", "body": next(parts, b"x")}

        with pytest.raises(HTTPException, match="The body is over 10 bytes"):
            await middleware({"type": "http", "path": "/v1/documents", "headers": []}, receive, unsent)


async def unsent(message: Message) -> None:
    pytest.fail(f"Nothing is to be sent: {message}")


async def test_bodies_that_together_are_too_large_are_refused_until_the_others_are_answered(tmp_path: Path) -> None:
    constants = {"MAX_REQUEST_BYTES": 60_000, "REQUEST_BYTES_AT_ONCE": 100_000, "ENVELOPE_FACTOR": 0}
    limits = {f"query_api.app.{name}": value for name, value in constants.items()}
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False, constants=limits) as running:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def half_sent() -> AsyncIterator[bytes]:
            yield b"x" * 50_000
            begun.set()
            await go_on.wait()

        slow = asyncio.create_task(running.http.put("/v1/documents/slow", content=half_sent(), headers=TEXT))
        await begun.wait()
        await refused(running, b"x" * 60_000)
        await refused(running, pieces(60))
        small = await running.http.put("/v1/documents/a", content=b"x" * 10_000, headers=TEXT)
        assert problem(small)["title"] == "Kafka unavailable"
        assert (await running.http.post("/v1/search", json={"q": "x"})).status_code != 413
        go_on.set()
        assert problem(await slow)["title"] == "Kafka unavailable"
        again = await running.http.put("/v1/documents/a", content=b"x" * 60_000, headers=TEXT)
        assert problem(again)["title"] == "Kafka unavailable"


async def pieces(kilobytes: int) -> AsyncIterator[bytes]:
    for _ in range(kilobytes):
        yield b"x" * 1_000


async def refused(running: Running, body: bytes | AsyncIterator[bytes]) -> None:
    answer = await running.http.put("/v1/documents/a", content=body, headers=TEXT)
    assert problem(answer)["status"] == 503
    assert "of them at once" in problem(answer)["detail"]
    assert int(answer.headers["retry-after"]) > 0


def question(judged: int) -> str:
    return '{"id": "a", "text": "x", "relevant": {' + ", ".join(f'"d{n}": "x"' for n in range(judged)) + "}}"


@pytest.mark.parametrize(
    ("questions", "status"),
    [
        ([question(90_000)], 422),
        ([question(900)] * 100, 422),
        (["{}"] * 40_000, 422),
        (["[]"] * 300_000, 413),
        (["{}", *["0"] * 999], 422),
    ],
    ids=["judgements", "questions", "empty", "very many", "no questions"],
)
async def test_an_evaluation_of_very_many_mistakes_is_refused_shortly(
    tmp_path: Path, questions: list[str], status: int
) -> None:
    body = '{"collection": "a", "questions": [' + ", ".join(questions) + "]}"
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False) as running:
        json = {"Content-Type": "application/json"}
        refused = await running.http.post("/v1/evaluations", content=body, headers=json)
        assert problem(refused)["status"] == status
        assert len(refused.content) < 2_500


TEXTS = st.text(alphabet='ab"\\,[]{}é🛶/\n', max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def members(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else max(1, len(inner)) + sum(map(members, inner))


@given(value=VALUES, ascii_only=st.booleans(), block=st.integers(1, 40), indent=st.sampled_from([None, 1]))
def test_every_text_is_counted_as_it_decodes_wherever_blocks_end(
    value: Any, ascii_only: bool, block: int, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", block)
        top = max(1, len(value)) if isinstance(value, list | dict) else 0
        assert json_size(text, 10**9) == JsonSize(members(value), top)


@given(st.binary(max_size=60), st.integers(1, 20))
def test_any_bytes_are_counted_somehow(text: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", block)
        json_size(text, 10**9)


def test_counting_stops_soon_after_the_limit() -> None:
    assert json_size(b"[" + b"{}," * 10_000_000 + b"{}]", 1_000).members < 300_000


async def test_body_of_one_large_document_is_let_in(tmp_path: Path) -> None:
    constants = {"query_api.app.MAX_REQUEST_BYTES": 1_000, "query_api.app.REQUEST_BYTES_AT_ONCE": 1_000}
    limits = LimitSettings(max_document_bytes=10_000)
    async with service_over(
        tmp_path, ScriptedEngine(), until_ready=False, limits=limits, constants=constants
    ) as running:
        taken = await running.http.put("/v1/documents/a", content=b"x" * 10_000, headers=TEXT)
        assert problem(taken)["title"] == "Kafka unavailable"
        refused = problem(await running.http.put("/v1/documents/a", content=b"x" * 16_001, headers=TEXT))
        assert (refused["status"], refused["title"]) == (413, "Request too large")
        assert "raise THALWEG_LIMITS__MAX_DOCUMENT_BYTES" in refused["detail"]
