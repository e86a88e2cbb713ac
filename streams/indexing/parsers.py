"""Parsing and chunking, in limited child processes."""

import asyncio
from collections.abc import Sequence

from indexer.chunking.splitter import ChunkingParameters
from indexer.documents import PreparedDocument
from indexer.pipeline import decode_prepared, decode_sentences, encode_sentences_task, encode_task
from indexer.runtime.processors import usable_processors
from indexer.sandbox.sandbox import Sandbox, SandboxFailure, SandboxLimits
from schemas.events import DEFAULT_CONTENT_TYPE, DocumentUpsert
from schemas.ids import DocumentKey
from streams.errors import ParserFailure
from streams.settings import WorkerSettings

_TASK = "indexer.pipeline:prepare_bytes"
_MOST_BY_DEFAULT = 2
_FIRST_DOCUMENT = DocumentUpsert(
    key=DocumentKey("warm-up", "1"), content=b"# Warm-up\n\nA few words.", content_type=DEFAULT_CONTENT_TYPE
)


class Parsers:
    """Reads several documents at a time. Its methods raise UnparsableDocument; ParserFailure when no document is to
    blame."""

    def __init__(self, sandbox: Sandbox, processes: int, max_metadata_bytes: int) -> None:
        self._sandbox = sandbox
        self._processes = processes
        self._max_metadata_bytes = max_metadata_bytes

    async def warm_up(self) -> None:
        """Start every child, so that the first document does not wait for it. Raises ParserFailure."""
        first = encode_task(_FIRST_DOCUMENT, ChunkingParameters())
        await asyncio.gather(*(self._run(first) for _ in range(self._processes)))

    async def sentences(self, upsert: DocumentUpsert, chunking: ChunkingParameters) -> list[list[str]]:
        """The sentences of each section."""
        return decode_sentences(await self._run(encode_sentences_task(upsert, chunking)))

    async def prepare(
        self, upsert: DocumentUpsert, chunking: ChunkingParameters, revision: str | None, turns: Sequence[int]
    ) -> PreparedDocument:
        return decode_prepared(
            await self._run(encode_task(upsert, chunking, revision, turns, self._max_metadata_bytes))
        )

    async def _run(self, task: bytes) -> bytes:
        try:
            return await self._sandbox.run(task)
        except SandboxFailure as failure:
            raise ParserFailure(str(failure)) from failure

    async def close(self) -> None:
        await self._sandbox.close()


def open_parsers(settings: WorkerSettings) -> Parsers:
    worker = settings.worker
    limits = SandboxLimits(
        cpu_seconds=worker.parser_cpu_seconds,
        wall_seconds=worker.parser_wall_seconds,
        memory_bytes=worker.parser_memory_bytes,
        output_bytes=worker.parser_output_bytes,
    )
    processes = worker.parsers or min(_MOST_BY_DEFAULT, usable_processors())
    return Parsers(Sandbox(_TASK, limits, processes=processes), processes, settings.limits.max_metadata_bytes)
