"""A document during its commit: its decoded event, then prepared and embedded, then linked; or refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import NO_EXTRACTOR, revision_of
from indexer.documents import PreparedDocument
from indexer.extraction.extractor import Extraction
from schemas.events import DocumentDelete, DocumentEvent, DocumentUpsert
from schemas.ids import DocumentKey, Position
from streams.kafka.records import DeadLetter, SourceRecord, Stage


class Choices(NamedTuple):
    """What collections have chosen: how documents are chunked, and the version of the extractor."""

    chunking: Mapping[str, ChunkingParameters] = {}
    extractors: Mapping[str, str] = {}


@dataclass(frozen=True)
class DecodedEvent:
    """A record and its event. `revision` is None for a delete; `chunking` and `extractor`, a version, are None where
    its collection chose none."""

    record: SourceRecord
    event: DocumentEvent
    revision: str | None
    chunking: ChunkingParameters | None = None
    extractor: str | None = None

    @classmethod
    def from_record(cls, record: SourceRecord, event: DocumentEvent, choices: Choices) -> "DecodedEvent":
        collection = event.key.collection
        chunking, extractor = choices.chunking.get(collection), choices.extractors.get(collection)
        revision = revision_of(event, chunking, extractor) if isinstance(event, DocumentUpsert) else None
        return cls(record, event, revision, chunking, extractor)

    @property
    def extracts(self) -> bool:
        """Whether anything is to be extracted from it."""
        return self.extractor != NO_EXTRACTOR

    @property
    def key(self) -> DocumentKey:
        return self.event.key

    @property
    def upsert(self) -> DocumentUpsert:
        """Raises TypeError for a delete."""
        if isinstance(self.event, DocumentDelete):
            raise TypeError(f"{self.key} is deleted by {self.position}; there is no content.")
        return self.event

    @property
    def position(self) -> Position:
        return self.record.position

    @property
    def timestamp_ms(self) -> int:
        return self.record.timestamp_ms

    @property
    def version(self) -> int | None:
        return self.event.version

    @property
    def deletes(self) -> bool:
        return isinstance(self.event, DocumentDelete)


@dataclass(frozen=True)
class EmbeddedDocument:
    """`vectors` is (n_chunks, dimension); `encoded` counts the texts that were encoded for this document. `spans` are
    the entities tagged in each chunk's text, None where there is no tagger, or nothing to be extracted; `extractions`
    what the extractor of its collection found in each chunk, None where that failed, and empty where it chose none."""

    event: DecodedEvent
    prepared: PreparedDocument
    hashes: tuple[str, ...]
    vectors: NDArray[np.float32]
    encoded: int
    spans: tuple[bytes | None, ...]
    extractions: tuple[Extraction | None, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class LinkedDocument(EmbeddedDocument):
    """A document ready to be stored, with its encoded contribution to the graph and the numbers of what is in it."""

    contribution: bytes
    entities: int
    statements: int


@dataclass(frozen=True)
class Refused:
    """A record that no retry can help, and the stage in which that showed; its event, where it could be decoded."""

    record: SourceRecord
    stage: Stage
    error: Exception
    event: DocumentEvent | None = None

    def letter(self, topic: str) -> DeadLetter:
        return self.record.dead_letter(topic, self.stage, self.error)
