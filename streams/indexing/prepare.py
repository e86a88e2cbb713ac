"""Step 3 of the commit: parse, chunk and extract in limited child processes. Nothing is stored here."""

import asyncio
from dataclasses import dataclass
from itertools import chain

import numpy as np

from indexer.chunking.semantic import topic_boundaries
from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import (
    PreparationTask,
    decode_prepared,
    decode_sentences,
    encode_task,
    has_no_text,
    prepare,
)
from indexer.documents import PreparedDocument
from indexer.runtime.resources import usable_processors
from indexer.sandbox.sandbox import Sandbox, SandboxFailure, SandboxLimits
from schemas.events import DEFAULT_CONTENT_TYPE, DocumentUpsert
from schemas.ids import DocumentKey
from streams.errors import ParserFailure
from streams.indexing.document_steps import DecodedEvent
from streams.indexing.embed import EncoderThread, WithoutVector
from streams.settings import WorkerSettings

_TASK = "indexer.document_pipeline:prepare_bytes"
_LIMITS = SandboxLimits(cpu_seconds=20, wall_seconds=60.0)  # of one document; one that needs more is a dead letter
_MOST_PARSERS_BY_DEFAULT = 2
_WARM_UP = DocumentUpsert(
    key=DocumentKey("warm-up", "1"), content=b"# Warm-up\n\nA few words.", content_type=DEFAULT_CONTENT_TYPE
)


@dataclass(frozen=True)
class Parsers:
    """Child processes that parse and chunk. Methods raise UnparsableDocument, or ParserFailure when no document is to
    blame."""

    sandbox: Sandbox
    processes: int
    max_metadata_bytes: int

    @classmethod
    def open(cls, settings: WorkerSettings) -> "Parsers":
        processes = settings.worker.parsers or min(_MOST_PARSERS_BY_DEFAULT, usable_processors())
        return cls(Sandbox(_TASK, _LIMITS, processes=processes), processes, settings.limits.max_metadata_bytes)

    async def warm_up(self) -> None:
        """Start every child, so that the first document does not wait for it."""
        task = PreparationTask(_WARM_UP, ChunkingParameters())
        await asyncio.gather(*(self._run(task) for _ in range(self.processes)))

    async def sentences(self, upsert: DocumentUpsert, chunking: ChunkingParameters) -> list[list[str]]:
        """The sentences of each section."""
        return decode_sentences(await self._run(PreparationTask(upsert, chunking, output="sentences")))

    async def prepare(self, task: PreparationTask) -> PreparedDocument:
        return decode_prepared(await self._run(task))

    async def _run(self, task: PreparationTask) -> bytes:
        try:
            return await self.sandbox.run(encode_task(task))
        except SandboxFailure as failure:
            raise ParserFailure(str(failure)) from failure

    async def close(self) -> None:
        await self.sandbox.close()


@dataclass(frozen=True)
class Preparer:
    """Step 3 for one document: parsed and chunked as its collection has chosen."""

    parsers: Parsers
    encoder: EncoderThread
    defaults: ChunkingParameters

    async def prepare(self, event: DecodedEvent) -> PreparedDocument:
        """For semantic chunking the sentences are embedded first, and boundaries found by their vectors. What has no
        text needs no parser.

        Raises UnparsableDocument, or WithoutVector for a sentence that the encoder cannot take.
        """
        chunking, most_bytes = event.chunking or self.defaults, self.parsers.max_metadata_bytes
        if has_no_text(event.upsert):
            return prepare(event.upsert, chunking, event.revision, max_metadata_bytes=most_bytes)
        boundaries: list[int] = []
        if chunking.method == "semantic":
            sections = await self.parsers.sentences(event.upsert, chunking)
            vectors = []
            for encoded in await self.encoder.encode(list(chain.from_iterable(sections))):
                if isinstance(encoded, Exception):
                    raise WithoutVector("sentences", encoded)
                vectors.append(encoded.vector)
            array = np.asarray(vectors, dtype=np.float32)
            boundaries = await self.encoder.compute(
                lambda: topic_boundaries([len(section) for section in sections], array)
            )
        further = event.revision, tuple(boundaries), most_bytes, event.extracts
        return await self.parsers.prepare(PreparationTask(event.upsert, chunking, *further))
