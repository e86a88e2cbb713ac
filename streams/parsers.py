"""Parsing and chunking, in limited child processes."""

import os

from indexer.chunking import ChunkingParameters
from indexer.documents import PreparedDocument
from indexer.sandbox import Sandbox, SandboxFailure, SandboxLimits
from schemas.events import DocumentUpsert
from streams.errors import ParserFailure
from streams.parsing_task import decode_answer, encode_task
from streams.settings import WorkerSettings

_TASK = "streams.parsing_task:run_task"
_MOST_BY_DEFAULT = 2


class Parsers:
    """Prepares several documents at a time."""

    def __init__(self, sandbox: Sandbox, chunking: ChunkingParameters) -> None:
        self._sandbox = sandbox
        self._chunking = chunking

    async def prepare(self, upsert: DocumentUpsert) -> PreparedDocument:
        """Raises UnparsableDocument; ParserFailure when no document is to blame."""
        try:
            answer = await self._sandbox.run(encode_task(upsert, self._chunking))
        except SandboxFailure as failure:
            raise ParserFailure(str(failure)) from failure
        return decode_answer(answer)

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
    return Parsers(Sandbox(_TASK, limits, processes=processes), settings.chunking.parameters())
