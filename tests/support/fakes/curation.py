"""The log of a service in memory: what is published on the curation topic is followed at once."""

from collections.abc import Sequence

import pytest

from query_api.index.follower import FollowedRecord, Span
from query_api.ingest.producer import OutgoingRecord
from schemas.ids import Position
from tests.support.fakes.service import Running


class CurationLog:
    """Takes the place of a service's writer. `documents` are the records published on the documents topic."""

    def __init__(self, running: Running) -> None:
        self._service = running.service
        self.records: list[OutgoingRecord] = []
        self.documents: list[OutgoingRecord] = []
        self.follows = True
        """Whether the service's follower reads what is published."""
        self._service.snapshots.curation._begin({0: Span(0, 0)})

    async def publish(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Position]:
        if topic == self._service.topics.documents:
            self.documents.extend(records)
            return [Position(0, len(self.documents) - 1) for _ in records]
        assert topic == self._service.topics.curation
        first = len(self.records)
        self.records.extend(records)
        if self.follows:
            await self.follow(first)
        return [Position(0, first + at) for at in range(len(records))]

    async def follow(self, first: int = 0) -> None:
        """Have the service read the records from an offset on."""
        followed = [
            FollowedRecord(0, first + at, record.key, record.value) for at, record in enumerate(self.records[first:])
        ]
        await self._service.snapshots.curation._take(followed)


def curation_log(running: Running, monkeypatch: pytest.MonkeyPatch) -> CurationLog:
    log = CurationLog(running)
    monkeypatch.setattr(running.service.writer, "publish", log.publish)
    return log
