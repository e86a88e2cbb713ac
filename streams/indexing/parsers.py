"""Parsing and chunking, in limited child processes."""

import asyncio
import os

from indexer.chunking import ChunkingParameters
from indexer.documents import PreparedDocument
from indexer.preparing import decode_prepared, encode_task
from indexer.sandbox import Sandbox, SandboxFailure, SandboxLimits
from schemas.events import DEFAULT_CONTENT_TYPE, DocumentUpsert
from schemas.ids import DocumentKey
from streams.errors import ParserFailure
from streams.settings import WorkerSettings

_TASK = "indexer.preparing:prepare_bytes"
_MOST_BY_DEFAULT = 2
_FIRST_DOCUMENT = DocumentUpsert(
    key=DocumentKey("warm-up", "1"), content=b"# Warm-up\n\nA few words.", content_type=DEFAULT_CONTENT_TYPE
)


class Parsers:
    """Prepares several documents at a time."""

    def __init__(self, sandbox: Sandbox, chunking: ChunkingParameters, processes: int) -> None:
        self._sandbox = sandbox
        self._chunking = chunking
        self._processes = processes

    async def warm_up(self) -> None:
        """Start every child, so that the first document does not wait for it. Raises ParserFailure."""
        await asyncio.gather(*(self.prepare(_FIRST_DOCUMENT) for _ in range(self._processes)))

    async def prepare(self, upsert: DocumentUpsert) -> PreparedDocument:
        """Raises UnparsableDocument; ParserFailure when no document is to blame."""
        try:
            answer = await self._sandbox.run(encode_task(upsert, self._chunking))
        except SandboxFailure as failure:
            raise ParserFailure(str(failure)) from failure
        return decode_prepared(answer)

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
    processes = worker.parsers or min(_MOST_BY_DEFAULT, os.cpu_count() or 1)
    return Parsers(Sandbox(_TASK, limits, processes=processes), settings.chunking.parameters(), processes)
