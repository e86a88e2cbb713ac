"""The documents agent: takes records, hands them to the numbered commit, acknowledges."""

from dataclasses import dataclass

from streams.indexing.commit import DocumentIndexer, slices
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
        """Steps 1 to 7 of each slice are `DocumentIndexer.commit`; step 8, and only then, acknowledges it."""
        async for events in batches:
            records = taken_in_hand(self.progress, STAGE, self.topic, events)
            done = 0
            for part in slices(records, max_records=self.commit_documents, max_bytes=self.commit_bytes):
                await self.indexer.index(part)
                for event in events[done : done + len(part)]:  # 8
                    event.ack()
                done += len(part)
                report_done(self.progress, STAGE, self.topic, part, records[done:])
