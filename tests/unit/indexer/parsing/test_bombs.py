"""Every bomb through the limited child process: refused with its reason, and the worker does not grow."""

from collections.abc import AsyncIterator

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import PreparationTask, encode_task
from indexer.errors import UnparsableDocument
from indexer.sandbox.child import SandboxLimits
from indexer.sandbox.sandbox import Sandbox
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey
from tests.support.effort import held_bytes
from tests.unit.indexer.parsing.bombs import BOMBS, Bomb

MOST_GROWTH_BYTES = 50 * 2**20
LIMITS = SandboxLimits(wall_seconds=280)  # bombs are judged by processor time: this machine may have other work
ONE_OF_EACH_FORMAT = {
    "Markdown quotes 100,000 deep",
    "reStructuredText substitutions",
    "HTML tags crossed 50,000 times",
    "entities of entities",
    "JSON with a number of 5 MB",
    "a line of 20 MB",
    "CSV with a line of 20 MB",
    "TSV of 20 MB of quotation marks",
    "DOCX with 300 MB of zeros",
    "PPTX of a million slides",
    "XLSX with cells far apart",
    "EPUB with a chapter of 300 MB",
    "PDF with forms in forms",
    "mail in mail 2,000 deep",
    "mailbox of 500,000 messages",
    "LaTeX of 100,000 open sections",
    "subtitles of 400,000 cues",
    "a notebook 100,000 deep",
    "AsciiDoc of 1 MB of marks",
    "Org of 1 MB of marks",
}
WORDS = DocumentUpsert(key=DocumentKey("default", "words"), content=b"Some words.", content_type="text/plain")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox("indexer.document_pipeline:prepare_bytes", LIMITS) as opened:
        await opened.run(
            encode_task(PreparationTask(WORDS, ChunkingParameters()))
        )  # start and imports are not the bomb's time
        yield opened


def test_every_format_has_its_bomb_in_each_run() -> None:
    every_run = [bomb for bomb in BOMBS if bomb.name in ONE_OF_EACH_FORMAT]
    assert {bomb.content_type for bomb in every_run} == {bomb.content_type for bomb in BOMBS}
    assert len(every_run) == len(ONE_OF_EACH_FORMAT)


@pytest.mark.parametrize(
    "bomb",
    [pytest.param(each, marks=() if each.name in ONE_OF_EACH_FORMAT else pytest.mark.nightly) for each in BOMBS],
    ids=str,
)
async def test_a_bomb_is_defused(bomb: Bomb, sandbox: Sandbox) -> None:
    upsert = DocumentUpsert(key=DocumentKey("default", "b"), content=bomb.build(), content_type=bomb.content_type)
    task = encode_task(PreparationTask(upsert, ChunkingParameters()))
    before = held_bytes()
    reason, message = None, ""
    try:
        await sandbox.run(task)
    except UnparsableDocument as error:
        reason, message = error.reason, str(error)
    assert (reason, bomb.says in message) == (bomb.reason, True), message
    assert held_bytes() - before < MOST_GROWTH_BYTES
    assert await sandbox.run(encode_task(PreparationTask(WORDS, ChunkingParameters())))
