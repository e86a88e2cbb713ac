"""The documents agent: takes records, hands them to the numbered commit batch by batch, acknowledges."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.agents.batching import Batches, CommitPace, mark_done, mark_in_flight
from streams.indexing.batch import split
from streams.indexing.commit import DocumentIndexer, Prefetched
from streams.kafka.records import SourceRecord
from streams.runtime.partition_progress import Progress

STAGE = "text"
COMMIT_DOCUMENTS = 500  # in one commit: what a crash has to do again
COMMIT_BYTES = 512 * 1024  # of records in one commit: how often progress shows, and memory


@dataclass(frozen=True)
class _InFlight:
    """Records that are to be committed together. `prefetch` is None outside a backlog."""

    events: Sequence[Any]
    records: Sequence[SourceRecord]
    prefetch: asyncio.Task[Prefetched | None] | None
    begun: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class DocumentsAgent:
    """`commit_documents` and `commit_bytes` bound one commit; commits outside a backlog are charged to `pace`."""

    topic: str
    indexer: DocumentIndexer
    progress: Progress
    commit_documents: int
    commit_bytes: int
    pace: CommitPace

    async def run(self, batches: Batches) -> None:
        """Prefetch and commit, as two stages with a bounded queue between them.

        In a backlog one batch is committed while the next is embedded and the one after that parsed.
        """
        in_flight: asyncio.Queue[_InFlight | None] = asyncio.Queue(maxsize=1)
        prefetching: set[asyncio.Task[Prefetched | None]] = set()
        stages = (
            asyncio.create_task(self._take(batches, in_flight, prefetching)),
            asyncio.create_task(self._commit(in_flight)),
        )
        try:
            await asyncio.gather(*stages)
        finally:
            for task in (*stages, *prefetching):
                task.cancel()
            await asyncio.wait((*stages, *prefetching))

    async def _take(
        self,
        batches: Batches,
        in_flight: asyncio.Queue[_InFlight | None],
        prefetching: set[asyncio.Task[Prefetched | None]],
    ) -> None:
        """In a backlog, take more when the last part is being committed; else, where a batch does not fill a commit,
        when it is committed, so that the next one grows meanwhile."""
        async for events in batches:
            records = mark_in_flight(self.progress, STAGE, self.topic, events)
            parts = list(split(records, max_records=self.commit_documents, max_bytes=self.commit_bytes))
            is_backlog = len(parts) > 1 or len(records) >= self.commit_documents
            start = 0
            for part in parts:
                task = None
                if is_backlog:
                    task = asyncio.create_task(self.indexer.prefetch(part))
                    prefetching.add(task)
                    task.add_done_callback(prefetching.discard)
                batch = _InFlight(events[start : start + len(part)], part, task)
                await in_flight.put(batch)
                start += len(part)
            await (batch.begun.wait() if is_backlog else in_flight.join())
        await in_flight.put(None)

    async def _commit(self, in_flight: asyncio.Queue[_InFlight | None]) -> None:
        """Steps 1 to 7 are `DocumentIndexer.index`; step 8, and only then, acknowledges."""
        while (batch := await in_flight.get()) is not None:
            batch.begun.set()
            began = time.monotonic()
            if batch.prefetch is None:
                await self.indexer.index(batch.records)
                self.pace.committed(time.monotonic() - began)
            else:
                await self.indexer.index(batch.records, await batch.prefetch)
            for event in batch.events:  # 8
                event.ack()
            mark_done(self.progress, STAGE, self.topic, batch.records)
            in_flight.task_done()
