"""Missed deletes: tombstones that compaction removed before the worker had read them.

A compacted topic keeps a tombstone for `delete.retention.ms` only. Stores that were offline for longer, or restored
from an old copy, continue at their position and never see what was deleted in between. So at the start each partition
is checked after the stored position: where offsets are missing that are old enough for a tombstone to have been
removed, the partition's documents are compared with the live keys of the log, and those not among them are deleted.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from indexer.generation_folders import replace_file
from indexer.schema import StoredPosition
from indexer.write.lance_writer import LanceWriter
from schemas.ids import DocumentKey
from streams.indexing.commit import DocumentIndexer
from streams.kafka.partition_reader import PartitionReader
from streams.runtime.retry import Retrier
from streams.runtime.store_thread import StoreThread
from streams.worker_log import log

BATCH_DOCUMENTS = 500
AWAY_TOO_LONG = (
    "These stores were away for longer than the log keeps deletes (THALWEG_KAFKA__TOMBSTONE_DAYS). Documents that it "
    "no longer holds are deleted from them. To be sure of all else, make them again from the log: 'thalweg rebuild', "
    "which ends this note."
)

OpenPartition = Callable[[int], PartitionReader]


async def may_have_missed_deletes(reader: PartitionReader, stored: StoredPosition, horizon_ms: int) -> bool:
    """Whether a tombstone after the stored position may be gone from the partition.

    `horizon_ms` is the time before which tombstones may be gone: now less the topic's `delete.retention.ms`. Missing
    offsets were written after the record before them; where that is younger, their tombstones would still be there.
    Marks of transactions take offsets too: then a True may cost a needless comparison.
    """
    offset, timestamp_ms = stored.offset, stored.timestamp_ms
    if offset < 0 or timestamp_ms >= horizon_ms:
        return False
    async for record in reader.records(offset + 1):
        if record.offset > offset + 1:
            return True
        offset, timestamp_ms = record.offset, record.timestamp_ms
        if timestamp_ms >= horizon_ms:
            return False
    return await reader.end() > offset + 1


async def live_keys(reader: PartitionReader) -> set[bytes]:
    """The keys whose newest record in the partition is not a tombstone."""
    live: set[bytes] = set()
    async for record in reader.records():
        if record.value is None:
            live.discard(record.key or b"")
        else:
            live.add(record.key or b"")
    return live


@dataclass(eq=False)
class MissedDeletes:
    """Finds partitions with missed deletes, and deletes their documents between two commits.

    What was found stays in the file `to_check` until it is done: once the worker reads on, the positions no longer show
    it. The file itself stays: the generation is one that was away. `commit_lock` is held while documents are deleted.
    """

    open_partition: OpenPartition
    documents: LanceWriter
    thread: StoreThread
    indexer: DocumentIndexer
    retrier: Retrier
    commit_lock: asyncio.Lock
    to_check: Path
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _unknown: dict[int, int] = field(default_factory=dict)

    @property
    def were_found(self) -> bool:
        """Whether deletes may have been missed at any time since the generation was made."""
        return self.to_check.exists()

    async def find(self, stored: Mapping[int, StoredPosition], retention_ms: int) -> None:
        """Note the partitions that have to be compared with the log. To be called before the worker reads on."""
        horizon_ms = self.now_ms() - retention_ms
        self._unknown = {partition: position.offset for partition, position in stored.items()}
        noted = self._noted()
        for partition, position in stored.items():
            reader = self.open_partition(partition)
            if await self.retrier.retry_forever(
                lambda reader=reader, position=position: may_have_missed_deletes(reader, position, horizon_ms)  # type: ignore[misc]
            ):
                noted[partition] = max(position.offset, noted.get(partition, -1))
                log.warning(
                    "deletes may have been compacted away since these stores were last filled; "
                    "their documents are compared with the log",
                    partition=partition,
                    after_offset=position.offset,
                )
        if noted:
            replace_file(self.to_check, msgspec.json.encode(noted))

    async def delete(self) -> None:
        """Delete the documents that are no longer in the noted partitions. May be interrupted and called again."""
        noted = self._noted()
        for partition, offset in noted.items():
            await self.retrier.retry_forever(lambda p=partition, o=offset: self._compare(p, o))  # type: ignore[misc]
        if noted:
            replace_file(self.to_check, msgspec.json.encode({}))

    async def _compare(self, partition: int, offset: int) -> None:
        live = await live_keys(self.open_partition(partition))
        stored = await self.thread.run(self.documents.live_keys, partition, offset)
        missing = [key for key in stored if key.encoded() not in live]
        for start in range(0, len(missing), BATCH_DOCUMENTS):
            async with self.commit_lock:
                await self._delete(missing[start : start + BATCH_DOCUMENTS], partition, offset)
        log.warning("documents compared with the log", partition=partition, compared=len(stored), deleted=len(missing))

    async def _delete(self, keys: Sequence[DocumentKey], partition: int, offset: int) -> None:
        rows = await self.thread.run(self.documents.stored_documents, keys)
        gone = {
            key: row for key, row in rows.items() if row.live and row.partition == partition and row.offset <= offset
        }
        await self.indexer.delete(gone)

    def _noted(self) -> dict[int, int]:
        """{partition: offset up to which its documents are in doubt}."""
        try:
            return msgspec.json.decode(self.to_check.read_bytes(), type=dict[int, int])
        except FileNotFoundError:
            return {}
        except ValueError:  # cut off or damaged: every partition may have been noted
            return dict(self._unknown)
