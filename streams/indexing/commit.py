"""The numbered commit: a batch of the documents topic into the stores, as one idempotent unit of work."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from indexer.errors import DamagedStore
from indexer.graph.store import InGraph, held
from indexer.schema import DocumentRow, StoredPosition
from indexer.write.change_encoding import Records, encode_changes, encode_void
from indexer.write.lance_writer import LanceWriter
from schemas.ids import DocumentKey, Position, is_canary
from schemas.receipts import Receipt
from schemas.settings import LimitSettings
from schemas.tracing import trace_id
from streams.errors import RestartNeeded
from streams.indexing.batch import Built, Changes, Decoded, DocumentsTopic, Resolved
from streams.indexing.document_steps import Choices, EmbeddedDocument, Refused
from streams.indexing.embed import DocumentBuilder
from streams.indexing.settings_reader import CollectionSettings
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import SourceRecord
from streams.runtime.retry import bisect
from streams.runtime.store_thread import StoreThread
from streams.worker_log import log
from streams.worker_metrics import Stopwatch, WorkerMetrics

LOGGED_TRACES = 20  # of one batch; the receipts have all


class Rewritten(NamedTuple):
    """How many documents were written or contributed again, and how many were `kept` since the log no longer holds what
    they came from."""

    documents: int
    kept: int


class Prefetched(NamedTuple):
    """Steps 1 to 4 ahead of the records' turn."""

    decoded: Decoded
    embedded: Mapping[Position, EmbeddedDocument | Refused]
    watch: Stopwatch


@dataclass(eq=False, kw_only=True)
class DocumentIndexer:
    """Commits batches of records one at a time; later ones may be prefetched meanwhile.

    `reached` are the writer's positions, which only commits change. Everything that contributes to the graph takes
    `commit_lock`, so that order per document holds.
    """

    topic: DocumentsTopic
    limits: LimitSettings
    writer: LanceWriter
    thread: StoreThread
    builder: DocumentBuilder
    producer: ConfirmedProducer
    metrics: WorkerMetrics
    collection_settings: CollectionSettings
    reached: dict[int, StoredPosition]
    commit_lock: asyncio.Lock
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _not_stored: set[bytes] = field(default_factory=set)  # keys of what was sent and did not come into the store

    async def prefetch(self, records: Sequence[SourceRecord]) -> Prefetched | None:
        """Steps 1 to 4 ahead of the records' turn, by the stores' present state; None where that fails.

        A prediction: the commit decides again which documents win, builds what is missing here and ignores what it does
        not need. Nothing is stored or refused; a failure is left to the commit.
        """
        try:
            decoded, _, watch = self._decode(records, self.collection_settings.known)
            resolved = Resolved.of(decoded, await self._select(decoded, watch), self.reached, ())
            return Prefetched(decoded, await self.builder.embed(resolved.wanted(), watch), watch)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the commit knows what to do about it
            log.debug("a batch could not be prefetched", error=type(error).__name__)
            return None

    async def index(self, records: Sequence[SourceRecord], prefetched: Prefetched | None = None) -> None:
        """Commit the records; a failing batch is bisected, and a record that fails alone becomes a dead letter.

        Raises RestartNeeded, DamagedStore, or what a record raises even on its way to the dead letters: nothing is
        then acknowledged, and the worker has to be restarted.
        """

        async def commit(part: Sequence[SourceRecord]) -> list[None]:
            await self._commit(part, prefetched if len(part) == len(records) else None)
            return []

        async def reject(record: SourceRecord, error: Exception) -> None:
            await self._commit([record], failure=error)

        await bisect(records, commit, reject, fatal=(RestartNeeded, DamagedStore), name="documents")

    async def _commit(
        self,
        records: Sequence[SourceRecord],
        prefetched: Prefetched | None = None,
        failure: Exception | None = None,
    ) -> None:
        """Bring the stores to the state after these records. May be called again with the same or overlapping records,
        also after it failed or was cut off at any point: the stores end up the same.

        1. read the collections' settings; decode each record; malformed ones, and one that failed alone, are refused;
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
        async with self.commit_lock:
            choices = await self.collection_settings.current()  # 1
            if prefetched is None or prefetched.decoded.choices != choices:
                prefetched = self._decode(records, choices, failure)
            decoded, _, watch = prefetched
            watch.restart()
            stored = await self._select(decoded, watch)
            built = await self._build(prefetched, stored, self.reached, self.builder)  # 2, 3, 4, 5
            changes = built.changes()
            encoded = await asyncio.to_thread(encode_changes, changes.rows, changes.contributions)
            watch.lap("encode")
            await self.producer.send_to_dlq(built.letters())
            watch.lap("dead_letters")
            encoded += self._taken_back(built, encoded)
            reached = await self._write(changes, encoded, decoded.advance(self.reached), watch)  # 6, 7
            receipts = built.receipts(watch.seconds, self.now_ms())
            await self.producer.send_receipts(receipts)
            watch.lap("receipts")
        self._report(decoded, receipts, reached, watch.seconds)

    async def _write(
        self,
        changes: Changes,
        encoded: Records,
        reached: Mapping[int, StoredPosition],
        watch: Stopwatch,
        *,
        again: bool = False,
    ) -> Mapping[int, StoredPosition]:
        """Steps 6 and 7: what is sent, stored, and the positions reached with it, which have the mark of what changed.

        Documents that are written `again` are stored first: nothing takes back what is sent and then refused.
        """
        if changes.rows and again:
            await self.thread.run(self.writer.rewrite, changes.rows)
        places = {partition: (each.offset, each.timestamp_ms) for partition, each in reached.items()}
        mark = await self.producer.send_commit(encoded, places)  # 6
        watch.lap("contribute")
        if changes.rows and not again:
            await self.thread.run(self.writer.replace, changes.rows)  # 7
        self._not_stored.difference_update(key for key, _ in encoded)
        watch.lap("store")
        if changes.contributions:
            reached = {partition: each._replace(mark=max(each.mark, mark)) for partition, each in reached.items()}
        await self.thread.run(self.writer.store_positions, reached)
        self.reached |= reached
        watch.lap("positions")
        return reached

    def _taken_back(self, built: Built, encoded: Records) -> Records:
        """What takes back documents that were sent before and did not come into the store."""
        changed = {key for key, _ in encoded}
        refused = {each.record.key or b"" for each in built.resolved.refused if each.stage == "store"}
        taken_back = [(key, encode_void()) for key in self._not_stored & refused - changed]
        self._not_stored |= changed
        return taken_back

    def _report(
        self,
        decoded: Decoded,
        receipts: Sequence[Receipt],
        reached: Mapping[int, StoredPosition],
        seconds: Mapping[str, float],
    ) -> None:
        """Metrics and the batch's one log line."""
        outcomes: Counter[str] = Counter(receipt.outcome for receipt in receipts if not is_canary(receipt.key))
        embedded = sum(receipt.embedded for receipt in receipts)
        for outcome, records in outcomes.items():
            self.metrics.documents.labels(outcome).inc(records)
        for stage, took in seconds.items():
            self.metrics.stage_seconds.labels(stage).observe(took)
        self.metrics.chunks_embedded.inc(embedded)
        self.metrics.unknown_fields.inc(decoded.unknown_fields)
        self.metrics.misplaced_records.inc(sum(map(self.topic.is_misplaced, decoded.records)))
        traces = sorted({trace_id(receipt.traceparent) for receipt in receipts if receipt.traceparent})
        log.info(
            "indexed",
            **outcomes,
            chunks=sum(receipt.chunks for receipt in receipts),
            embedded=embedded,
            reached={partition: stored.offset for partition, stored in reached.items()},
            seconds={stage: round(took, 4) for stage, took in seconds.items()},
            **({"traces": traces[:LOGGED_TRACES]} if traces else {}),
        )

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
        every = list(chain.from_iterable(records.values()))
        decoded, _, watch = self._decode(every, await self.collection_settings.current())
        stored = await self._live_rows(list(records), if_intact=not as_stored)
        kept = decoded.outlived(stored if as_stored else {key: row for key, row in stored.items() if records[key]})
        decoded = decoded.without(kept | (records.keys() - stored.keys() if as_stored else set()))
        builder = self.builder.without_lookup() if in_graph is None else self.builder
        changes = (await self._build(Prefetched(decoded, {}, watch), {}, {}, builder)).changes(all_deletes=True)
        if as_stored:
            changes = Changes([each.knowing(stored[each.row.key]) for each in changes.rows], changes.contributions)
        gone = {key for key, found in records.items() if not found and key not in kept}
        changes = changes.and_deleted(gone, stored, self.now_ms())
        kept_count = len(records.keys() - changes.contributions.keys() if as_stored else kept)
        changes = await self._differing(changes, in_graph)
        if changes.contributions and not dry_run:
            encoded = await asyncio.to_thread(encode_changes, changes.rows, changes.contributions)
            await self._write(changes, encoded, self.reached, watch, again=True)
        return Rewritten(len(changes.contributions), kept_count)

    async def delete(self, rows: Mapping[DocumentKey, DocumentRow]) -> None:
        """Delete stored documents without a record that says so. Call with the commit lock. May be repeated, as long as
        they are stored."""
        changes = Changes((), {}).and_deleted(rows.keys(), rows, self.now_ms())
        encoded = await asyncio.to_thread(encode_changes, changes.rows, changes.contributions)
        await self._write(changes, encoded, {}, Stopwatch())

    async def _differing(self, changes: Changes, in_graph: Mapping[DocumentKey, InGraph] | None) -> Changes:
        """Without the rows and contributions that the stores have already; all rows, and no contributions but theirs,
        where it is not known what is `in_graph`."""
        has = set(changes.contributions)
        rows = changes.rows
        if in_graph is not None:
            equal = await self.thread.run(self.writer.equal_to_stored, rows)
            rows = [each for each in rows if each.row.key not in equal]
            has = await asyncio.to_thread(held, in_graph, changes.contributions)
        has -= {each.row.key for each in rows}
        return Changes(rows, {key: each for key, each in changes.contributions.items() if key not in has})

    async def _live_rows(self, keys: Sequence[DocumentKey], *, if_intact: bool) -> dict[DocumentKey, DocumentRow]:
        """The rows of live documents; with `if_intact`, none where a row is damaged: they are written again whatever
        they were."""
        try:
            stored = await self.thread.run(self.writer.stored_documents, keys)
        except DamagedStore:
            if not if_intact:
                raise
            return {}
        return {key: row for key, row in stored.items() if row.live}

    def _decode(
        self, records: Sequence[SourceRecord], choices: Choices, failure: Exception | None = None
    ) -> Prefetched:
        watch = Stopwatch()
        decoded = Decoded.of(records, choices, self.limits, failure)
        watch.lap("decode")
        return Prefetched(decoded, {}, watch)

    async def _select(self, decoded: Decoded, watch: Stopwatch) -> Mapping[DocumentKey, DocumentRow]:
        """The documents' rows, as they are stored now."""
        keys = list(decoded.events)
        stored = await self.thread.run(self.writer.stored_documents, keys) if keys else {}
        watch.lap("select")
        return stored

    async def _build(
        self,
        prefetched: Prefetched,
        stored: Mapping[DocumentKey, DocumentRow],
        reached: Mapping[int, StoredPosition],
        builder: DocumentBuilder,
    ) -> Built:
        """Steps 2 to 5, until nothing else is refused."""
        decoded, embedded, watch = prefetched
        refused: list[Refused] = []
        while True:
            resolved = Resolved.of(decoded, stored, reached, refused)  # 2
            wanted = resolved.wanted()
            missing = [event for event in wanted if event.position not in embedded]
            embedded = {**embedded, **await builder.embed(missing, watch)}  # 3, 4
            found = [embedded[event.position] for event in wanted]
            if not (failed := [each for each in found if isinstance(each, Refused)]):
                break
            refused += failed
        linked = await builder.link([each for each in found if isinstance(each, EmbeddedDocument)])  # 5
        watch.lap("link")
        return Built(self.topic, resolved, linked)
