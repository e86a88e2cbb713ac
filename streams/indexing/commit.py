"""The numbered commit: a slice of the documents topic into the stores, as one idempotent unit of work."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from indexer.chunking.splitter import ChunkingParameters
from indexer.schema import DocumentRow, StoredPosition
from indexer.write.lance_rows import IndexedRows
from schemas.ids import DocumentKey, Position
from schemas.receipts import Receipt
from schemas.settings import LimitSettings
from schemas.tracing import trace_id
from streams.errors import RestartNeeded
from streams.indexing.batch import Maker, VectorLookup
from streams.indexing.slices import PartitionOf, Slice, unknown_partition
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.source_record import SourceRecord
from streams.metrics import Stopwatch, WorkerMetrics
from streams.runtime.store_thread import StoreThread

LOGGED_TRACES = 20  # of one slice; the receipts tell all


class DocumentWriter(VectorLookup, Protocol):
    """The part of the vector store the commit writes. Each call may be repeated and then changes nothing."""

    def held(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]: ...
    def replace(self, documents: Sequence[IndexedRows]) -> None: ...
    def store_positions(self, reached: Mapping[int, StoredPosition]) -> None: ...


class ChunkingChoices(Protocol):
    """How collections have chosen to be cut, by name; others are cut as the worker is set up."""

    @property
    def known(self) -> Mapping[str, ChunkingParameters]:
        """As they were when last asked for."""
        ...

    async def current(self) -> Mapping[str, ChunkingParameters]:
        """With everything that was confirmed before this call."""
        ...


@dataclass(frozen=True)
class IndexedSlice:
    """What became of a slice of records; receipts, metrics and log line are all made from it."""

    receipts: list[Receipt]
    reached: dict[int, StoredPosition]
    seconds: dict[str, float]
    unknown_fields: int
    misplaced: int = 0

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(receipt.outcome for receipt in self.receipts)

    @property
    def embedded(self) -> int:
        return sum(receipt.embedded for receipt in self.receipts)

    def count(self, metrics: WorkerMetrics) -> None:
        for outcome, records in self.outcomes.items():
            metrics.documents.labels(outcome).inc(records)
        for stage, seconds in self.seconds.items():
            metrics.stage_seconds.labels(stage).observe(seconds)
        metrics.chunks_embedded.inc(self.embedded)
        metrics.unknown_fields.inc(self.unknown_fields)
        metrics.misplaced_records.inc(self.misplaced)

    def line(self) -> dict[str, object]:
        """The fields of the slice's one log line."""
        traces = sorted({trace_id(receipt.traceparent) for receipt in self.receipts if receipt.traceparent})
        return {
            **self.outcomes,
            "chunks": sum(receipt.chunks for receipt in self.receipts),
            "embedded": self.embedded,
            "reached": {partition: stored.offset for partition, stored in self.reached.items()},
            "seconds": {stage: round(seconds, 4) for stage, seconds in self.seconds.items()},
            **({"traces": traces[:LOGGED_TRACES]} if traces else {}),
        }


class DocumentIndexer:
    """Commits slices of records, one at a time; of the next one, documents may be parsed and encoded meanwhile."""

    def __init__(
        self,
        *,
        topic: str,
        generation: str,
        limits: LimitSettings,
        writer: DocumentWriter,
        thread: StoreThread,
        maker: Maker,
        producer: ConfirmedProducer,
        metrics: WorkerMetrics,
        choices: ChunkingChoices,
        reached: Mapping[int, StoredPosition],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        turn: asyncio.Lock | None = None,
        partition_of: PartitionOf = unknown_partition,
    ) -> None:
        """`reached` is what the writer's `positions()` said when it was opened; nobody else writes them. `turn` is held
        during a commit: whoever else contributes to the graph takes it too, so that order per document holds."""
        self._topic = topic
        self._generation = generation
        self._limits = limits
        self._writer = writer
        self._thread = thread
        self._maker = maker
        self._producer = producer
        self._metrics = metrics
        self._choices = choices
        self._reached = dict(reached)
        self._now_ms = now_ms
        self._encoder_is_free = asyncio.Event()
        self._turn = turn or asyncio.Lock()
        self._partition_of = partition_of
        self._log = structlog.get_logger("thalweg.worker")

    async def index(self, records: Sequence[SourceRecord]) -> None:
        """Commit the records; whatever cannot be committed is found by halving, and buried alone.

        Raises RestartNeeded, or what a single record raises even when it is only to be buried: then
        nothing of it was acknowledged, and the worker has to be restarted.
        """
        try:
            indexed = await self.commit(records)
        except RestartNeeded:
            raise
        except Exception as error:  # noqa: BLE001 -- a fault of ours or a library's must not hold up the other documents
            self._log.warning("a slice failed", records=len(records), error=type(error).__name__, exc_info=error)
            if len(records) > 1:
                half = len(records) // 2
                await self.index(records[:half])
                await self.index(records[half:])
                return
            indexed = await self.commit(records, {records[0].position: error})
        self._maker.drop(record.position for record in records)
        indexed.count(self._metrics)
        self._log.info("indexed", **indexed.line())

    async def look_ahead(self, records: Sequence[SourceRecord]) -> None:
        """Start to parse what will most likely have to be made of the records that are committed next; and to encode
        it, as soon as the commit under way needs the encoder no more and only waits for stores and confirmations.

        A guess, on what the stores hold before the commit under way: a document parsed in vain is dropped, one not
        guessed is parsed in its turn. Nothing is decided, stored or refused here.
        """
        try:
            work = Slice.decoded(
                self._topic, self._generation, records, self._reached, self._limits, {}, self._choices.known
            )
            if work.events:
                work.rows = await self._thread.run(self._writer.held, list(work.events))
                expected = work.fold(set(work.events))
                self._maker.begin(expected)
                texts = await self._maker.unknown_texts(expected)
                await self._encoder_is_free.wait()
                await self._maker.begin_encoding(texts)
        except Exception as error:  # noqa: BLE001 -- the commit meets it again, and knows what to do about it
            self._log.debug("could not look ahead", error=type(error).__name__)

    def stop_looking_ahead(self) -> None:
        """Drop all that was begun for records not committed yet."""
        self._maker.drop()

    async def commit(
        self, records: Sequence[SourceRecord], condemned: Mapping[Position, Exception] | None = None
    ) -> IndexedSlice:
        """Bring the stores to the state after these records. May be called again with the same or overlapping
        records, also after it failed or was cut off at any point: the stores end up the same.

        1. ask how collections are cut now; decode each record; what does not decode, or is `condemned`, is refused;
        2. fold the events of each document over what the `documents` table holds: one winner, or none;
        3. parse and chunk the winners, 4. embed the texts not known yet, 5. link; what cannot be made is refused and
           its document folded again without it; then all that was refused goes to dead letters, confirmed;
        6. put the rows into the vector store;
        7. send the graph contributions, confirmed; store the positions reached; send the receipts, confirmed;
        8. is the caller's: acknowledge.

        Raises RestartNeeded; anything else is the fault of one of the documents.
        """
        async with self._turn:
            return await self._commit(records, condemned or {})

    async def _commit(self, records: Sequence[SourceRecord], condemned: Mapping[Position, Exception]) -> IndexedSlice:
        self._encoder_is_free.clear()  # before anything else can run
        watch = Stopwatch()
        work = Slice.decoded(  # 1
            self._topic,
            self._generation,
            records,
            self._reached,
            self._limits,
            condemned,
            await self._choices.current(),
            self._partition_of,
        )
        watch.lap("decode")
        await self._make(work, watch)  # 2, 3, 4, 5
        await self._producer.send_to_dlq(work.letters())
        watch.lap("bury")
        rows = work.rows_to_store()
        if rows:
            await self._thread.run(self._writer.replace, rows)  # 6
        watch.lap("store")
        contributions = work.contributions()
        offsets = await self._producer.send_contributions(  # 7
            [(str(key).encode(), value) for key, value in contributions.items()]
        )
        graph_offsets = dict(zip(contributions, offsets, strict=True))
        watch.lap("contribute")
        reached = work.advanced(graph_offsets)
        await self._thread.run(self._writer.store_positions, reached)
        self._reached |= reached
        watch.lap("positions")
        receipts = work.receipts(graph_offsets, watch.seconds, self._now_ms())
        await self._producer.send_receipts(receipts)
        watch.lap("receipts")
        return IndexedSlice(receipts, reached, watch.seconds, work.unknown_fields, work.misplaced)

    async def _make(self, work: Slice, watch: Stopwatch) -> None:
        if work.events:
            work.rows = await self._thread.run(self._writer.held, list(work.events))
        watch.lap("select")
        open_documents = set(work.events)
        while open_documents:
            made, refused = await self._maker.make(work.fold(open_documents), watch)
            work.made |= {document.event.position: document for document in made}
            open_documents = {work.refuse(each) for each in refused}
        self._encoder_is_free.set()


def slices(records: Sequence[SourceRecord], *, max_records: int, max_bytes: int) -> Iterator[Sequence[SourceRecord]]:
    """Cut a batch into contiguous slices within both bounds; a record over the bound stands alone."""
    start, size = 0, 0
    for index, record in enumerate(records):
        if index > start and (index - start >= max_records or size + record.size_bytes > max_bytes):
            yield records[start:index]
            start, size = index, 0
        size += record.size_bytes
    if start < len(records):
        yield records[start:]
