"""The documents agent: takes records, hands them to the numbered commit, acknowledges."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from streams.indexing.commit import DocumentIndexer, slices
from streams.indexing.records import SourceRecord
from streams.progress.partitions import Progress

STAGE = "text"

Taken = AsyncIterator[Sequence[Any]]  # batches of Faust events, unacknowledged


@dataclass(frozen=True)
class DocumentsAgent:
    """`commit_documents` and `commit_bytes` bound one commit, whatever came in one batch."""

    topic: str
    indexer: DocumentIndexer
    progress: Progress
    commit_documents: int
    commit_bytes: int

    async def run(self, batches: Taken) -> None:
        """Steps 1 to 7 of each slice are `DocumentIndexer.commit`; step 8, and only then, acknowledges it."""
        async for events in batches:
            records = [SourceRecord.of(event.message) for event in events]
            for record in records:
                self.progress.taken(STAGE, self.topic, record.partition, record.timestamp_ms)
            done = 0
            for part in slices(records, max_records=self.commit_documents, max_bytes=self.commit_bytes):
                await self.indexer.index(part)
                for event in events[done : done + len(part)]:  # 8
                    event.ack()
                done += len(part)
                report_done(self.progress, STAGE, self.topic, part, records[done:])


def report_done(
    progress: Progress, stage: str, topic: str, done: Sequence[SourceRecord], in_hand: Sequence[SourceRecord]
) -> None:
    """Tell how far each partition is done, and what of it is still in hand."""
    last = {record.partition: record for record in done}
    for partition, record in last.items():
        progress.done(stage, topic, partition, record.offset, record.timestamp_ms)
    for record in in_hand:
        progress.taken(stage, topic, record.partition, record.timestamp_ms)


def fatal_on_error(
    run: Callable[[Taken], Awaitable[None]], fail: Callable[[BaseException], None]
) -> Callable[[Taken], Awaitable[None]]:
    """The same agent, but an exception ends the worker: Faust would only log it and lose the batch's place."""

    async def guarded(batches: Taken) -> None:
        try:
            await run(batches)
        except Exception as error:  # the process edge of an agent
            fail(error)
            raise

    return guarded
