"""Every bomb through the limited child process: refused with its reason, and the worker does not grow."""

import time
from collections.abc import AsyncIterator, Callable

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.errors import UnparsableDocument
from indexer.pipeline import encode_task
from indexer.sandbox.sandbox import Sandbox
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey
from tests.memory import held_bytes
from tests.unit.indexer.parsing.bombs import BOMBS, Bomb

MOST_GROWTH_BYTES = 50 * 2**20
WORDS = DocumentUpsert(key=DocumentKey("default", "words"), content=b"Some words.", content_type="text/plain")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox("indexer.pipeline:prepare_bytes") as opened:
        await opened.run(encode_task(WORDS, ChunkingParameters()))  # start and imports are not the bomb's time
        yield opened


@pytest.mark.parametrize("bomb", BOMBS, ids=str)
async def test_a_bomb_is_defused(bomb: Bomb, sandbox: Sandbox, record_property: Callable[[str, object], None]) -> None:
    upsert = DocumentUpsert(key=DocumentKey("default", "b"), content=bomb.build(), content_type=bomb.content_type)
    task = encode_task(upsert, ChunkingParameters())
    before, started = held_bytes(), time.monotonic()
    reason, message = None, ""
    try:
        await sandbox.run(task)
    except UnparsableDocument as error:
        reason, message = error.reason, str(error)
    record_property("seconds", round(time.monotonic() - started, 2))
    assert (reason, bomb.says in message) == (bomb.reason, True), message
    assert held_bytes() - before < MOST_GROWTH_BYTES
    assert await sandbox.run(encode_task(WORDS, ChunkingParameters()))
