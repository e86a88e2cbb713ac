"""Step 3 of the commit for one document: parsed and chunked as its collection has chosen."""

from collections.abc import Sequence
from itertools import chain
from typing import Protocol

import numpy as np

from indexer.chunking.semantic import turns
from indexer.chunking.splitter import ChunkingParameters
from indexer.documents import PreparedDocument
from schemas.events import DocumentUpsert
from streams.indexing.decoded_event import DecodedEvent
from streams.indexing.embed import Encoding, WithoutVector


class DocumentReader(Protocol):
    """Reads documents elsewhere, under limits. Raises UnparsableDocument."""

    async def sentences(self, upsert: DocumentUpsert, chunking: ChunkingParameters) -> list[list[str]]: ...

    async def prepare(
        self, upsert: DocumentUpsert, chunking: ChunkingParameters, revision: str | None, turns: Sequence[int]
    ) -> PreparedDocument: ...


class Preparer:
    """What an event becomes depends on the event alone: its content, its collection's choice, the encoder's vectors."""

    def __init__(self, reader: DocumentReader, encoding: Encoding, defaults: ChunkingParameters) -> None:
        self._reader = reader
        self._encoding = encoding
        self._defaults = defaults

    async def prepare(self, event: DecodedEvent) -> PreparedDocument:
        """Where the choice is semantic, the sentences are embedded first, and the turns found by their vectors.

        Raises UnparsableDocument, or WithoutVector for a sentence that the encoder cannot take.
        """
        chunking = event.chunking or self._defaults
        found: list[int] = []
        if chunking.method == "semantic":
            sections = await self._reader.sentences(event.upsert, chunking)
            vectors = await self._encoding.encode(list(chain.from_iterable(sections)))
            failure = next((vector for vector in vectors if isinstance(vector, Exception)), None)
            if failure is not None:
                raise WithoutVector("sentences", failure)
            array = np.asarray(vectors, dtype=np.float32)
            found = await self._encoding.compute(lambda: turns([len(section) for section in sections], array))
        return await self._reader.prepare(event.upsert, chunking, event.revision, found)
