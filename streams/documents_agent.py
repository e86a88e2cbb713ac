"""The documents agent: takes records, hands them to the numbered commit, acknowledges."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from streams.indexing.commit import DocumentIndexer, slices
from streams.indexing.records import SourceRecord
from streams.progress.partitions import Progress
from streams.taking import Taken, report_done, taken_in_hand

STAGE = "text"


@dataclass(frozen=True)
class DocumentsAgent:
    """`commit_documents` and `commit_bytes` bound one commit, whatever came in one batch."""

    topic: str
    indexer: DocumentIndexer
    progress: Progress
    commit_documents: int
    commit_bytes: int

    async def run(self, batches: Taken) -> None:
        """Steps 1 to 7 of each slice are `DocumentIndexer.commit`; step 8, and only then, acknowledges it.

        The commits follow each other; while one is under way, the next slice of the batch is already being parsed, and
        encoded when the encoder is free.
        """
        try:
            async for events in batches:
                await self._commit(events)
        finally:
            self.indexer.stop_looking_ahead()

    async def _commit(self, events: Sequence[Any]) -> None:
        records = taken_in_hand(self.progress, STAGE, self.topic, events)
        parts = list(slices(records, max_records=self.commit_documents, max_bytes=self.commit_bytes))
        done = 0
        for part, following in zip_longest(parts, parts[1:], fillvalue=()):
            await self._index(part, following)
            for event in events[done : done + len(part)]:  # 8
                event.ack()
            done += len(part)
            report_done(self.progress, STAGE, self.topic, part, records[done:])

    async def _index(self, part: Sequence[SourceRecord], following: Sequence[SourceRecord]) -> None:
        looking = asyncio.create_task(self.indexer.look_ahead(following))
        try:
            await self.indexer.index(part)
        finally:
            looking.cancel()
