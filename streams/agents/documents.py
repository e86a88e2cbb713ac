"""The documents agent: takes records, hands them to the numbered commit, acknowledges."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streams.agents.batching import Coming, CommitPace, Taken, report_done, taken_in_hand
from streams.indexing.commit import DocumentIndexer, slices
from streams.kafka.source_record import SourceRecord
from streams.runtime.progress import Progress

STAGE = "text"


@dataclass(frozen=True)
class DocumentsAgent:
    """`commit_documents` and `commit_bytes` bound one commit, whatever came in one batch; `pace` is told of
    the commits that a batch did not fill."""

    topic: str
    indexer: DocumentIndexer
    progress: Progress
    commit_documents: int
    commit_bytes: int
    pace: CommitPace

    async def run(self, batches: Taken) -> None:
        """Steps 1 to 7 of each slice are `DocumentIndexer.commit`; step 8, and only then, acknowledges it.

        The commits follow each other; while one is under way, the next slice, be it of the next batch, is already being
        parsed, and encoded when the encoder is free.
        """
        coming = Coming(batches)
        try:
            while (events := await coming.take()) is not None:
                await self._commit(events, coming)
        finally:
            await coming.leave()
            self.indexer.stop_looking_ahead()

    async def _commit(self, events: Sequence[Any], coming: Coming) -> None:
        records = taken_in_hand(self.progress, STAGE, self.topic, events)
        parts = self._parts(records)
        done = 0
        for number, part in enumerate(parts, start=1):
            following = parts[number] if number < len(parts) else None
            is_backlog = len(parts) > 1 or len(part) >= self.commit_documents
            looking = asyncio.create_task(self._look_ahead(following, coming if is_backlog else None))
            began = time.monotonic()
            try:
                await self.indexer.index(part)
            finally:
                looking.cancel()
            if not is_backlog:
                self.pace.committed(time.monotonic() - began)
            for event in events[done : done + len(part)]:  # 8
                event.ack()
            done += len(part)
            report_done(self.progress, STAGE, self.topic, part, records[done:])

    async def _look_ahead(self, following: Sequence[SourceRecord] | None, coming: Coming | None) -> None:
        """At the next slice of the batch; behind its last one at the first of the next batch.

        That is seen early only in a backlog, where a batch fills a commit: else it is to grow until its turn.
        """
        if following is None and coming is not None:
            events = await coming.peek() or ()
            following = next(iter(self._parts([SourceRecord.of(event.message) for event in events])), ())
        await self.indexer.look_ahead(following or ())

    def _parts(self, records: Sequence[SourceRecord]) -> list[Sequence[SourceRecord]]:
        return list(slices(records, max_records=self.commit_documents, max_bytes=self.commit_bytes))
