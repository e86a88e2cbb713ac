"""Documents made again from their records, between two commits: what repairs, replays and relinking share."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from indexer.errors import DamagedStore
from indexer.graph.store import InGraph
from indexer.schema import StoredPosition
from schemas.ids import DocumentKey, Position
from streams.errors import RestartNeeded
from streams.indexing.commit import DocumentIndexer, Rewritten
from streams.kafka.partition_reader import AWAY, PartitionReader
from streams.kafka.records import SourceRecord
from streams.runtime.retry import bisect
from streams.worker_log import log

READ_TOGETHER = 2_000  # documents whose records are held at once; the log is read again for so many more
BATCH_DOCUMENTS = 50
NOWHERE = Position(-1, -1)
MOST_LOOKS = 5
_FATAL = (RestartNeeded, DamagedStore, *AWAY)


class StoresCompared(Protocol):
    """The part of the stores that is needed."""

    async def graph_caught_up(self) -> None: ...
    async def in_graph(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, InGraph]: ...
    async def out_of_step(self) -> Mapping[DocumentKey, Position | None]: ...


Rewrite = Callable[[Mapping[DocumentKey, Sequence[SourceRecord]]], Awaitable[Rewritten]]


class Reapplied(NamedTuple):
    """What became of so many documents: `kept` are those whose log no longer holds what they came from, `failed` those
    that could not be made again."""

    documents: int
    changed: int
    kept: int
    failed: int


@dataclass(eq=False)
class Reapplier:
    """Reads documents' records again and has the indexer write them. `commit_lock` is the documents agent's."""

    partitions: Sequence[PartitionReader]
    indexer: DocumentIndexer
    stores: StoresCompared
    make_snapshot: Callable[[], Awaitable[None]]
    commit_lock: asyncio.Lock

    @property
    def reached(self) -> Mapping[int, StoredPosition]:
        """The positions up to which records are indexed."""
        return self.indexer.reached

    async def apply(
        self, keys: Sequence[DocumentKey], *, only_changed: bool = False, dry_run: bool = False
    ) -> AsyncGenerator[Reapplied, None]:
        """Batch by batch. With `only_changed` what tables and graph have as in the log is left, with `dry_run`
        everything.

        Documents without records are deleted, but not where the log was cut short. Raises one of AWAY while the broker
        does not answer.
        """
        is_whole = all([await partition.beginning() == 0 for partition in self.partitions])
        for start in range(0, len(keys), READ_TOGETHER):
            block = keys[start : start + READ_TOGETHER]
            records = DocumentRecords(self.partitions, block)
            await records.read()
            in_graph = await self.stores.in_graph(block) if only_changed else None
            rewrite = partial(self.indexer.rewrite, in_graph=in_graph, dry_run=dry_run)
            for batch in _batches(block):
                known = [key for key in batch if is_whole or records.has(key)]
                yield await self._rewrite(known, records, rewrite, unknown=len(batch) - len(known))

    async def renew(self, sources: Mapping[DocumentKey, Position | None]) -> AsyncGenerator[Reapplied, None]:
        """Batch by batch, in the order of the log: make documents again from the records that they came from, by the
        current settings, where tables or graph have them otherwise. Vectors that are stored are taken for right.

        Those that come from another record by now are kept, as are those whose record the log no longer holds. One
        without a source is taken out of the graph, unless the tables have it. Raises one of AWAY.
        """
        keys = sorted(sources, key=lambda key: sources[key] or NOWHERE)
        for start in range(0, len(keys), READ_TOGETHER):
            block = keys[start : start + READ_TOGETHER]
            records = SourceRecords(self.partitions, {key: sources[key] for key in block})
            await records.read()
            rewrite = partial(self.indexer.rewrite, in_graph=await self.stores.in_graph(block), as_stored=True)
            for batch in _batches(block):
                yield await self._rewrite(batch, records, rewrite)

    async def complete_graph(self) -> None:
        """Make again what tables and graph have differently. Raises one of AWAY, and may be called again then.

        Looks again afterwards: a document that came once more with the same content meanwhile is from another record
        now, and its commit contributed nothing.
        """
        before: Mapping[DocumentKey, Position | None] | None = None
        for _ in range(MOST_LOOKS):
            sources = await self.stores.out_of_step()
            if before is not None and (not sources or sources == before):
                break
            before = sources
            log.warning("documents are made again from the log for the graph", documents=len(sources))
            documents = 0
            async for done in self.renew(sources):
                documents += done.documents
                lost = {"kept": done.kept, "failed": done.failed} if done.kept or done.failed else {}
                log.info("made again for the graph", documents=documents, of=len(sources), **lost)
            await self.stores.graph_caught_up()

    async def publish_graph(self) -> None:
        """Make a snapshot of the graph, as soon as it has what the tables have."""
        await self.stores.graph_caught_up()
        await self.make_snapshot()

    async def _rewrite(
        self, keys: Sequence[DocumentKey], records: "DocumentRecords", rewrite: Rewrite, unknown: int = 0
    ) -> Reapplied:
        """Where some document cannot be made again, the others are."""

        async def rewrite_some(some: Sequence[DocumentKey]) -> list[Rewritten | None]:
            async with self.commit_lock:
                await records.catch_up(self.reached)
                return [await rewrite(records.of(some, self.reached))]

        async def leave(key: DocumentKey, error: Exception) -> None:
            log.error("a document cannot be made again", document=str(key), error=type(error).__name__)

        outcomes = await bisect(keys, rewrite_some, leave, fatal=_FATAL, name="documents again") if keys else []
        made = [each for each in outcomes if each is not None]
        return Reapplied(
            documents=len(keys) + unknown,
            changed=sum(each.documents for each in made),
            kept=sum(each.kept for each in made) + unknown,
            failed=len(outcomes) - len(made),
        )


def _batches(keys: Sequence[DocumentKey]) -> Iterator[Sequence[DocumentKey]]:
    for first in range(0, len(keys), BATCH_DOCUMENTS):
        yield keys[first : first + BATCH_DOCUMENTS]


class DocumentRecords:
    """All that the partitions of the documents topic hold of these documents. Methods raise one of AWAY while the
    broker does not answer, and may be called again."""

    def __init__(self, partitions: Sequence[PartitionReader], keys: Collection[DocumentKey]) -> None:
        self._partitions = partitions
        self._names = {key.encoded(): key for key in keys}
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


class SourceRecords(DocumentRecords):
    """The one record of each document at a position; none of those without. What is committed meanwhile is left as it
    is."""

    def __init__(self, partitions: Sequence[PartitionReader], sources: Mapping[DocumentKey, Position | None]) -> None:
        super().__init__(partitions, sources)
        self._keys = {position: key for key, position in sources.items() if position is not None}

    async def catch_up(self, reached: Mapping[int, StoredPosition]) -> None:
        """Nothing."""

    def of(
        self, keys: Collection[DocumentKey], reached: Mapping[int, StoredPosition]
    ) -> dict[DocumentKey, list[SourceRecord]]:
        del reached
        return {key: self._found[key] for key in keys}

    async def _read(self, number: int) -> None:
        offsets = [offset for found, offset in self._keys if found == number]
        if not offsets:
            return
        last = max(offsets)
        async with aclosing(self._partitions[number].records(min(offsets))) as records:
            async for record in records:
                if record.position in self._keys:
                    self._found[self._keys[record.position]] = [record]
                if record.offset >= last:
                    break
