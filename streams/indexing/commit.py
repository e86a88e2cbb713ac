"""The numbered commit: a batch of the documents topic into the stores, as one idempotent unit of work."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import structlog

from indexer.changes import Reached
from indexer.chunking.splitter import ChunkingParameters
from indexer.errors import DamagedStore
from indexer.graph.store import InGraph, held
from indexer.schema import DocumentRow, StoredPosition
from indexer.write.change_encoding import Records, encode_changes, encode_void
from indexer.write.lance_rows import IndexedRows
from schemas.ids import DocumentKey, Position, is_canary
from schemas.receipts import Receipt
from schemas.settings import LimitSettings
from schemas.tracing import trace_id
from streams.errors import RestartNeeded
from streams.indexing.batch import Batch, PartitionOf, outlives_log, unknown_partition
from streams.indexing.document_steps import EmbeddedDocument, Refused
from streams.indexing.embed import DocumentBuilder, VectorLookup
from streams.indexing.settings_reader import CollectionSettings
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import SourceRecord
from streams.runtime.retry import bisect
from streams.runtime.store_thread import StoreThread
from streams.worker_metrics import WorkerMetrics

LOGGED_TRACES = 20  # of one batch; the receipts have all


class Rewritten(NamedTuple):
    """How many documents were written or contributed again, and how many were `kept` since the log no longer holds what
    they came from."""

    documents: int
    kept: int


class DocumentWriter(VectorLookup, Protocol):
    """The part of the vector store the commit uses. Each call may be repeated and then changes nothing."""

    def stored_documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]: ...
    def replace(self, documents: Sequence[IndexedRows]) -> None: ...
    def rewrite(self, documents: Sequence[IndexedRows]) -> None: ...
    def alike(self, documents: Sequence[IndexedRows]) -> set[DocumentKey]: ...
    def store_positions(self, reached: Mapping[int, StoredPosition]) -> None: ...


class DocumentIndexer:
    """Commits batches of records one at a time; later ones may be prefetched meanwhile."""

    def __init__(
        self,
        *,
        topic: str,
        generation: str,
        limits: LimitSettings,
        writer: DocumentWriter,
        thread: StoreThread,
        builder: DocumentBuilder,
        producer: ConfirmedProducer,
        metrics: WorkerMetrics,
        collection_settings: CollectionSettings,
        reached: Mapping[int, StoredPosition],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        commit_lock: asyncio.Lock | None = None,
        partition_of: PartitionOf = unknown_partition,
    ) -> None:
        """`reached` are the writer's positions when it was opened, which only commits change.

        Everything that contributes to the graph takes `commit_lock`, so that order per document holds.
        """
        self._topic = topic
        self._generation = generation
        self._limits = limits
        self._writer = writer
        self._thread = thread
        self._builder = builder
        self._producer = producer
        self._metrics = metrics
        self._collection_settings = collection_settings
        self._reached = dict(reached)
        self._now_ms = now_ms
        self._commit_lock = commit_lock or asyncio.Lock()
        self._not_stored: set[bytes] = set()  # keys of what was sent and did not come into the store
        self._partition_of = partition_of
        self._log = structlog.get_logger("thalweg.worker")

    async def prefetch(self, records: Sequence[SourceRecord]) -> Batch | None:
        """Steps 1 to 4 ahead of the records' turn, by the stores' present state; None where that fails.

        A prediction: the commit decides again which documents win, builds what is missing here and ignores what it does
        not need. Nothing is stored or refused; a failure is left to the commit.
        """
        try:
            batch = self._decode(records, self._collection_settings.known, {})
            await self._look_up(batch)
            batch.embedded = await self._builder.embed(batch.resolve(set(batch.events)), batch.watch)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the commit knows what to do about it
            self._log.debug("a batch could not be prefetched", error=type(error).__name__)
            return None
        return batch

    async def index(self, records: Sequence[SourceRecord], prefetched: Batch | None = None) -> None:
        """Commit the records; a failing batch is bisected, and a record that fails alone becomes a dead letter.

        Raises RestartNeeded, DamagedStore, or what a record raises even on its way to the dead letters: nothing is
        then acknowledged, and the worker has to be restarted.
        """

        async def commit(part: Sequence[SourceRecord]) -> list[None]:
            await self._commit(part, prefetched if len(part) == len(records) else None)
            return []

        async def reject(record: SourceRecord, error: Exception) -> None:
            await self._commit([record], failed_alone={record.position: error})

        await bisect(records, commit, reject, fatal=(RestartNeeded, DamagedStore), name="documents")

    async def _commit(
        self,
        records: Sequence[SourceRecord],
        prefetched: Batch | None = None,
        failed_alone: Mapping[Position, Exception] | None = None,
    ) -> None:
        """Bring the stores to the state after these records. May be called again with the same or overlapping records,
        also after it failed or was cut off at any point: the stores end up the same.

        1. read the collections' settings; decode each record; malformed ones, and those that failed alone, are refused;
        2. fold the events of each document over its row in the `documents` table: one winner, or none;
        3. prepare the winners, 4. embed the texts not known yet, 5. link; what cannot be built is refused and its
           document resolved again without it; then all that was refused goes to the dead letters, confirmed;
        6. send what changes to the contributions topic, confirmed, and the mark: from here on searches show it. A
           delete that found no document changes nothing in the graph;
        7. put the rows into the vector store; a tombstone deletes the document's chunks and passages there; store the
           positions reached; send the receipts, confirmed;
        8. is the caller's: acknowledge.

        What the store refuses although its rows were made in step 6 is taken back when its record has failed alone.
        Raises RestartNeeded; anything else is the fault of one of the documents.
        """
        async with self._commit_lock:
            chunking = await self._collection_settings.current()  # 1
            extractors = self._collection_settings.extractors
            if prefetched is not None and (prefetched.chunking, prefetched.extractors) == (chunking, extractors):
                batch = prefetched
                batch.watch.restart()
            else:
                batch = self._decode(records, chunking, failed_alone or {})
            await self._build(batch)  # 2, 3, 4, 5
            watch = batch.watch
            rows, contributions = batch.changed_rows(), batch.changes()
            changes = await asyncio.to_thread(encode_changes, rows, contributions)
            watch.lap("encode")
            await self._producer.send_to_dlq(batch.letters())
            watch.lap("dead_letters")
            mark = await self._contribute(batch, changes)  # 6
            watch.lap("contribute")
            if rows:
                await self._thread.run(self._writer.replace, rows)  # 7
            self._not_stored.difference_update(key for key, _ in changes)
            watch.lap("store")
            reached = batch.advance(mark if contributions else -1)
            await self._thread.run(self._writer.store_positions, reached)
            self._reached |= reached
            watch.lap("positions")
            receipts = batch.receipts(watch.seconds, self._now_ms())
            await self._producer.send_receipts(receipts)
            watch.lap("receipts")
        self._report(batch, receipts, reached)

    async def _contribute(self, batch: Batch, changes: Records) -> int:
        """The offset of the mark."""
        changed = {key for key, _ in changes}
        refused = {record.key or b"" for record, letter in batch.refused.values() if letter.stage == "store"}
        taken_back = [(key, encode_void()) for key in self._not_stored & refused - changed]
        self._not_stored |= changed
        return await self._producer.send_commit([*changes, *taken_back], _marked(batch.advance()))

    def _report(self, batch: Batch, receipts: Sequence[Receipt], reached: Mapping[int, StoredPosition]) -> None:
        """Metrics and the batch's one log line."""
        outcomes: Counter[str] = Counter(receipt.outcome for receipt in receipts if not is_canary(receipt.key))
        embedded = sum(receipt.embedded for receipt in receipts)
        for outcome, records in outcomes.items():
            self._metrics.documents.labels(outcome).inc(records)
        for stage, seconds in batch.watch.seconds.items():
            self._metrics.stage_seconds.labels(stage).observe(seconds)
        self._metrics.chunks_embedded.inc(embedded)
        self._metrics.unknown_fields.inc(sum(map(len, batch.unknown_fields.values())))
        self._metrics.misplaced_records.inc(batch.misplaced)
        traces = sorted({trace_id(receipt.traceparent) for receipt in receipts if receipt.traceparent})
        self._log.info(
            "indexed",
            **outcomes,
            chunks=sum(receipt.chunks for receipt in receipts),
            embedded=embedded,
            reached={partition: stored.offset for partition, stored in reached.items()},
            seconds={stage: round(seconds, 4) for stage, seconds in batch.watch.seconds.items()},
            **({"traces": traces[:LOGGED_TRACES]} if traces else {}),
        )

    def _decode(
        self,
        records: Sequence[SourceRecord],
        chunking: Mapping[str, ChunkingParameters],
        failed_alone: Mapping[Position, Exception],
    ) -> Batch:
        batch = self._batch(records, self._reached, chunking)
        batch.decode(self._limits, failed_alone)
        return batch

    def _batch(
        self,
        records: Sequence[SourceRecord],
        reached: Mapping[int, StoredPosition],
        chunking: Mapping[str, ChunkingParameters],
    ) -> Batch:
        return Batch(
            self._topic,
            self._generation,
            records,
            reached,
            chunking,
            partition_of=self._partition_of,
            extractors=self._collection_settings.extractors,
        )

    async def _look_up(self, batch: Batch) -> None:
        """Take the stores' present state into the batch."""
        batch.reached = dict(self._reached)
        if batch.events:
            batch.stored = await self._thread.run(self._writer.stored_documents, list(batch.events))
        batch.watch.lap("select")

    @property
    def reached(self) -> Mapping[int, StoredPosition]:
        return self._reached

    async def rewrite(
        self,
        records: Mapping[DocumentKey, Sequence[SourceRecord]],
        *,
        in_graph: Mapping[DocumentKey, InGraph] | None = None,
        as_stored: bool = False,
        dry_run: bool = False,
    ) -> Rewritten:
        """Write documents again as all of their records have them, up to the stored positions; those without records
        are deleted. Call with the commit lock. May be repeated.

        A document stays as it is where the log no longer holds the record that it came from, and none replaces it. With
        what is `in_graph`, only rows and contributions that are others are written, and stored vectors are taken for
        right. With `as_stored`, `records` are those that the documents came from, and no document is deleted, revived
        or brought back to an older record. No dead letters or receipts are sent: they were when the records came. With
        `dry_run` nothing is written.
        """
        every = [record for found in records.values() for record in found]
        chunking = await self._collection_settings.current()
        batch = self._batch(every, {}, chunking)
        batch.decode(self._limits, {})
        stored = {row.key: row for row in await self._stored(list(records), if_intact=not as_stored) if row.live}
        kept = {
            row.key
            for row in stored.values()
            if (as_stored or records[row.key]) and outlives_log(row, batch.events.get(row.key, ()))
        }
        for key in kept | (records.keys() - stored.keys() if as_stored else set()):
            batch.events.pop(key, None)
        await self._resolve(batch, self._builder.without_lookup() if in_graph is None else self._builder)
        gone = [row.tombstone(self._now_ms()) for row in stored.values() if not records[row.key] and not as_stored]
        rows = [*batch.changed_rows(), *map(IndexedRows, gone)]
        if as_stored:
            rows = [each.knowing(stored[each.row.key]) for each in rows]
        contributions = batch.contributions() | {key: None for key in records if not records[key] and key not in kept}
        if as_stored:
            kept = records.keys() - contributions.keys()
        alike = set() if in_graph is None else await self._thread.run(self._writer.alike, rows)
        rows = [each for each in rows if each.row.key not in alike]
        has = contributions.keys() if in_graph is None else await asyncio.to_thread(held, in_graph, contributions)
        unsent = has - {each.row.key for each in rows}
        contributions = {key: each for key, each in contributions.items() if key not in unsent}
        if dry_run or not contributions:
            return Rewritten(len(contributions), len(kept))
        if rows:
            await self._thread.run(self._writer.rewrite, rows)
        changes = await asyncio.to_thread(encode_changes, rows, contributions)
        newest = await self._producer.send_commit(changes, _marked(self._reached))
        advanced = {
            partition: stored_position._replace(mark=newest)
            for partition, stored_position in self._reached.items()
            if newest > stored_position.mark
        }
        await self._thread.run(self._writer.store_positions, advanced)
        self._reached |= advanced
        return Rewritten(len(contributions), len(kept))

    async def _stored(self, keys: Sequence[DocumentKey], *, if_intact: bool) -> Sequence[DocumentRow]:
        """The documents' rows; with `if_intact`, none where one of them is damaged: they are written again whatever
        they were."""
        try:
            return list((await self._thread.run(self._writer.stored_documents, keys)).values())
        except DamagedStore:
            if not if_intact:
                raise
            return ()

    async def _build(self, batch: Batch) -> None:
        await self._look_up(batch)
        await self._resolve(batch, self._builder)

    async def _resolve(self, batch: Batch, builder: DocumentBuilder) -> None:
        undecided = set(batch.events)
        while undecided:
            wanted = batch.resolve(undecided)  # 2
            missing = [event for event in wanted if event.position not in batch.embedded]
            batch.embedded |= await builder.embed(missing, batch.watch)  # 3, 4
            embedded = [batch.embedded[event.position] for event in wanted]
            linked = await builder.link([each for each in embedded if isinstance(each, EmbeddedDocument)])  # 5
            batch.watch.lap("link")
            batch.linked |= linked
            undecided = {batch.refuse(each) for each in embedded if isinstance(each, Refused)}


def _marked(positions: Mapping[int, StoredPosition]) -> Reached:
    return {partition: (each.offset, each.timestamp_ms) for partition, each in positions.items()}
