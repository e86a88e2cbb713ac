"""Documents brought to what all of their records say, between two commits: what repairs and replays share."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import structlog

from indexer.errors import DamagedStore
from indexer.schema import StoredPosition
from schemas.ids import DocumentKey
from streams.errors import RestartNeeded
from streams.indexing.commit import DocumentIndexer, Rewritten
from streams.kafka.partition_reader import AWAY, PartitionReader
from streams.kafka.records import SourceRecord
from streams.runtime.retry import bisect

READ_TOGETHER = 2_000  # documents whose records are held at once; the log is read again for so many more
BATCH_DOCUMENTS = 50
POLL_SECONDS = 1.0
_FATAL = (RestartNeeded, DamagedStore, *AWAY)


class StoresCompared(Protocol):
    """The part of the stores that is needed."""

    async def graph_is_current(self) -> bool: ...
    async def differ(self, keys: Sequence[DocumentKey]) -> list[DocumentKey]: ...


class Reapplied(NamedTuple):
    """What became of so many documents: `kept` are those whose log no longer holds what they came from, `alike` those
    that were left since the tables have what the log says, `failed` those that could not be made again."""

    documents: int
    changed: int
    kept: int
    failed: int
    alike: Collection[DocumentKey] = ()


class Reapplier:
    """Reads documents' records again and has the indexer write them. `commit_lock` is the documents agent's."""

    def __init__(
        self,
        partitions: Sequence[PartitionReader],
        indexer: DocumentIndexer,
        stores: StoresCompared,
        make_snapshot: Callable[[], Awaitable[None]],
        commit_lock: asyncio.Lock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.partitions = partitions
        self._indexer = indexer
        self._stores = stores
        self._make_snapshot = make_snapshot
        self._commit_lock = commit_lock
        self._sleep = sleep
        self._log = structlog.get_logger("thalweg.worker")

    @property
    def reached(self) -> Mapping[int, StoredPosition]:
        """The positions up to which records are indexed."""
        return self._indexer.reached

    async def apply(
        self, keys: Sequence[DocumentKey], *, only_changed: bool = False, dry_run: bool = False
    ) -> AsyncGenerator[Reapplied, None]:
        """Batch by batch. With `only_changed` what is stored as the log says is left, with `dry_run` everything.

        Documents without records are deleted, but not where the log was cut short. Raises one of AWAY while the broker
        does not answer.
        """
        is_whole = all([await partition.beginning() == 0 for partition in self.partitions])
        for start in range(0, len(keys), READ_TOGETHER):
            records = DocumentRecords(self.partitions, keys[start : start + READ_TOGETHER])
            await records.read()
            for first in range(start, min(start + READ_TOGETHER, len(keys)), BATCH_DOCUMENTS):
                batch = keys[first : min(first + BATCH_DOCUMENTS, start + READ_TOGETHER)]
                known = [key for key in batch if is_whole or records.has(key)]
                outcomes = (
                    await self._rewrite(known, records, only_changed=only_changed, dry_run=dry_run) if known else []
                )
                made = [each for each in outcomes if each is not None]
                yield Reapplied(
                    documents=len(batch),
                    changed=sum(each.documents for each in made),
                    kept=sum(each.kept for each in made) + len(batch) - len(known),
                    failed=len(outcomes) - len(made),
                    alike=[key for each in made for key in each.alike],
                )

    async def out_of_step(self, keys: Sequence[DocumentKey]) -> Sequence[DocumentKey]:
        """Those that the graph has otherwise than the tables. What is written meanwhile may look so once, not twice."""
        for _ in range(2):
            await self._graph_current()
            differing: list[DocumentKey] = []
            for start in range(0, len(keys), READ_TOGETHER):
                differing += await self._stores.differ(keys[start : start + READ_TOGETHER])
            keys = differing
        return keys

    async def publish_graph(self) -> None:
        """Make a snapshot of the graph, as soon as it has what the tables have."""
        await self._graph_current()
        await self._make_snapshot()

    async def _graph_current(self) -> None:
        while not await self._stores.graph_is_current():
            await self._sleep(POLL_SECONDS)

    async def _rewrite(
        self, keys: Sequence[DocumentKey], records: "DocumentRecords", *, only_changed: bool, dry_run: bool
    ) -> list[Rewritten | None]:
        """Where some document cannot be made again, the others are; None stands for that one."""

        async def rewrite(some: Sequence[DocumentKey]) -> list[Rewritten | None]:
            async with self._commit_lock:
                await records.catch_up(self.reached)
                found = records.of(some, self.reached)
                return [await self._indexer.rewrite(found, only_changed=only_changed, dry_run=dry_run)]

        async def leave(key: DocumentKey, error: Exception) -> None:
            self._log.error("a document cannot be made again", document=str(key), error=type(error).__name__)

        return await bisect(keys, rewrite, leave, fatal=_FATAL, name="documents again")


class DocumentRecords:
    """What the partitions of the documents topic hold of these documents. Methods raise one of AWAY while the broker
    does not answer, and may be called again."""

    def __init__(self, partitions: Sequence[PartitionReader], keys: Collection[DocumentKey]) -> None:
        self._partitions = partitions
        self._names = {str(key).encode("utf-8", "surrogatepass"): key for key in keys}
        self._found: dict[DocumentKey, list[SourceRecord]] = {key: [] for key in keys}
        self._read_to = [0] * len(partitions)

    async def read(self) -> None:
        """To the ends of the partitions."""
        for number in range(len(self._partitions)):
            await self._read(number)

    async def catch_up(self, reached: Mapping[int, StoredPosition]) -> None:
        """Read what was committed since; nothing may be committed meanwhile."""
        for number, stored in reached.items():
            if number < len(self._read_to) and stored.offset >= self._read_to[number]:
                await self._read(number)

    def has(self, key: DocumentKey) -> bool:
        return bool(self._found[key])

    def of(
        self, keys: Collection[DocumentKey], reached: Mapping[int, StoredPosition]
    ) -> dict[DocumentKey, list[SourceRecord]]:
        """The records of each, in the order of the log, up to these positions; without documents that have only later
        ones, which are still to be indexed."""
        ends = {number: stored.offset for number, stored in reached.items()}
        found = {
            key: [record for record in self._found[key] if record.offset <= ends.get(record.partition, -1)]
            for key in keys
        }
        return {key: records for key, records in found.items() if records or not self._found[key]}

    async def _read(self, number: int) -> None:
        end = await self._partitions[number].end()
        async for record in self._partitions[number].records(self._read_to[number]):
            key = self._names.get(record.key or b"")
            if key is not None and record.offset < end:
                self._found[key].append(record)
        self._read_to[number] = end
