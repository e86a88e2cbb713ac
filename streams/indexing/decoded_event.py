"""The event decoded from a record."""

from dataclasses import dataclass

from indexer.chunking.splitter import ChunkingParameters
from indexer.pipeline import revision_of
from schemas.events import DocumentDelete, DocumentEvent, DocumentUpsert
from schemas.ids import DocumentKey, Position
from streams.kafka.source_record import SourceRecord


@dataclass(frozen=True)
class DecodedEvent:
    """A record's event, as `streams.indexing.versioning` wants it. `revision` is None for a delete.

    `chunking` is what the document's collection has chosen, None where it is cut as the worker is set up.
    """

    record: SourceRecord
    event: DocumentUpsert | DocumentDelete
    revision: str | None
    chunking: ChunkingParameters | None = None

    @classmethod
    def of(
        cls, record: SourceRecord, event: DocumentEvent, chunking: ChunkingParameters | None = None
    ) -> "DecodedEvent":
        revision = revision_of(event, chunking) if isinstance(event, DocumentUpsert) else None
        return cls(record, event, revision, chunking)

    @property
    def key(self) -> DocumentKey:
        return self.event.key

    @property
    def upsert(self) -> DocumentUpsert:
        """Raises TypeError for a delete."""
        if isinstance(self.event, DocumentDelete):
            raise TypeError(f"{self.key} is deleted by {self.position}; there is nothing to prepare.")
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
