"""The log of a service in memory: what is published on the curation topic is followed at once, what is published on the
documents topic is indexed."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import PreparedDocument
from kafka_client.topic_offsets import Span
from query_api.index.follower import FollowedRecord
from query_api.index.store_opening import GraphFile
from query_api.ingest.producer import OutgoingRecord
from schemas.events import DocumentUpsert, decode_document_event
from schemas.graph_delta import AboutEdge, Contribution
from schemas.ids import Position
from schemas.settings import LimitSettings
from tests.support.fakes.service import Running
from tests.support.fakes.text_stores import Page


@dataclass(frozen=True)
class PreparedPage(Page):
    """A page of a record: what people made is in its contribution."""

    prepared: PreparedDocument | None = None

    def contribution(self) -> Contribution:
        assert self.prepared is not None
        return msgspec.structs.replace(
            super().contribution(),
            about=[AboutEdge(each.name, each.surface, each.weight) for each in self.prepared.about],
            nodes=list(self.prepared.nodes),
            relations=list(self.prepared.relations),
        )


class CurationLog:
    """Takes the place of a service's writer. `documents` are the records published on the documents topic."""

    def __init__(self, running: Running) -> None:
        self._service = running.service
        self._engine = running.engine
        self._first = running.engine.reader.positions[0].offset + 1
        self.records: list[OutgoingRecord] = []
        self.documents: list[OutgoingRecord] = []
        self.ends_asked = 0
        self.follows = True
        """Whether what is published is read, and indexed."""
        self._service.snapshots.curation._begin({0: Span(0, 0)})
        self.saved: list[OutgoingRecord] = []
        """The records of the topic of saved items."""
        self._service.saved._begin({0: Span(0, 0)})

    async def publish(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Position]:
        if topic == self._service.topics.documents:
            self.documents.extend(records)
            if self.follows:
                self.index()
            return [Position(0, self._first + len(self.documents) - 1)]
        if topic == self._service.topics.saved:
            return await self._publish_saved(records)
        assert topic == self._service.topics.curation
        first = len(self.records)
        self.records.extend(records)
        if self.follows:
            await self.follow(first)
        return [Position(0, first + at) for at in range(len(records))]

    async def _publish_saved(self, records: Sequence[OutgoingRecord]) -> list[Position]:
        first = len(self.saved)
        self.saved.extend(records)
        await self._service.saved._take(
            [FollowedRecord(0, at, each.key, each.value, 1_000 + at) for at, each in enumerate(records, first)]
        )
        return [Position(0, first + at) for at in range(len(records))]

    async def end_now(self, topic: str) -> int:
        if topic == self._service.topics.saved:
            return len(self.saved)
        assert topic == self._service.topics.curation
        self.ends_asked += 1
        return len(self.records)

    async def put(self, key: bytes, value: bytes | None) -> None:
        """Have somebody else write a record of the curation topic."""
        await self.publish(self._service.topics.curation, [OutgoingRecord(key, value)])

    async def follow(self, first: int = 0) -> None:
        """Have the service read the records from an offset on."""
        followed = [
            FollowedRecord(0, first + at, record.key, record.value) for at, record in enumerate(self.records[first:])
        ]
        await self._service.snapshots.curation._take(followed)

    def index(self) -> None:
        """Index all documents that were published."""
        reader, engine = self._engine.reader, self._engine
        pages = dict(reader.pages)
        for offset, record in enumerate(self.documents, start=self._first):
            event = decode_document_event(record.key, record.value, record.headers, LimitSettings())
            pages.pop(event.key, None)
            if isinstance(event, DocumentUpsert):
                made = prepare(event, ChunkingParameters())
                texts = [[passage.text] for passage in made.chunked.passages]
                collection, identifier = event.key
                pages[event.key] = PreparedPage(
                    identifier, made.title, texts, collection=collection, prepared=made, offset=offset
                )
        count = len(self.documents)
        reader.pages.clear()
        engine.graphs[f"made {count}"] = [page.contribution() for page in pages.values()]
        engine.graph_file = GraphFile(f"made {count}", 100 + count)
        reader.put(*pages.values(), p0=(self._first + count - 1, 100 + count))


def curation_log(running: Running, monkeypatch: pytest.MonkeyPatch) -> CurationLog:
    log = CurationLog(running)
    monkeypatch.setattr(running.service.writer, "publish", log.publish)
    monkeypatch.setattr(running.service.log_watch, "end_now", log.end_now)
    monkeypatch.setattr(running.service.saved, "_end_now", log.end_now)
    return log
