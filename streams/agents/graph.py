"""The graph agent: contributions into the graph store, each batch with the position reached."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from indexer.graph.store import Change
from schemas.errors import MalformedEvent
from schemas.graph_delta import decode_contribution
from schemas.ids import DocumentKey
from streams.agents.batching import Batches, process
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import DeadLetter, SourceRecord
from streams.metrics import Stopwatch, WorkerMetrics
from streams.runtime.progress import Progress
from streams.runtime.retry import bisect
from streams.runtime.snapshots import Snapshots
from streams.runtime.store_thread import DATA_ERRORS, StoreThread

STAGE = "graph"
MAX_PENDING_BYTES = 64 * 1024**2  # a snapshot is made before more than this waits for one


class ContributionWriter(Protocol):
    """The graph store. `apply` may be repeated with the same changes and then changes nothing."""

    @property
    def pending_bytes(self) -> int: ...
    def position(self) -> int: ...
    def apply(self, changes: Sequence[Change], position: int) -> None: ...


@dataclass(frozen=True)
class _Contributed:
    """`change` is None for a record that only moves the position."""

    record: SourceRecord
    change: Change | None


class GraphAgent:
    """Applies batches of the graph topic. The position in the store is the truth; the group's offsets only follow."""

    def __init__(
        self,
        *,
        topic: str,
        writer: ContributionWriter,
        thread: StoreThread,
        producer: ConfirmedProducer,
        snapshots: Snapshots,
        progress: Progress,
        metrics: WorkerMetrics,
    ) -> None:
        self._topic = topic
        self._writer = writer
        self._thread = thread
        self._producer = producer
        self._snapshots = snapshots
        self._progress = progress
        self._metrics = metrics
        self._log = structlog.get_logger("thalweg.worker")

    async def run(self, batches: Batches) -> None:
        """Decode, drop what the store holds already, keep the last of each document, apply, acknowledge."""
        await process(batches, self.apply, self._progress, STAGE, self._topic)

    async def apply(self, records: Sequence[SourceRecord]) -> None:
        """Bring the store to the state after these records. May be called again with the same records.

        Records that are no contributions go to the dead letters, as do contributions the store cannot hold.
        Raises StoreFailure.
        """
        watch = Stopwatch()
        position = self._writer.position()
        fresh = [record for record in records if record.offset > position]
        if not fresh:
            return
        letters: list[DeadLetter] = []
        contributed: list[_Contributed] = []
        for record in fresh:
            try:
                change = None if record.is_gap else decode_change(record)
            except MalformedEvent as error:
                letters.append(record.dead_letter(self._topic, "decode", error))
                change = None
            contributed.append(_Contributed(record, change))
        await self._producer.send_to_dlq(letters)
        await bisect(contributed, self._apply, self._reject, errors=DATA_ERRORS, name="graph")
        watch.lap("graph")
        self._metrics.stage_seconds.labels("graph").observe(watch.seconds["graph"])
        self._log.info(
            "applied to graph",
            records=len(records),
            documents=len({each.change[0] for each in contributed if each.change is not None}),
            position=fresh[-1].offset,
            seconds=round(watch.seconds["graph"], 4),
        )
        if self._writer.pending_bytes > MAX_PENDING_BYTES:
            await self._snapshots.make()

    async def _apply(self, contributed: Sequence[_Contributed]) -> list[None]:
        """The last contribution of each document, and the position of the last record."""
        latest = {each.change[0]: each.change for each in contributed if each.change is not None}
        await self._store(list(latest.values()), contributed[-1].record.offset)
        return []

    async def _reject(self, contributed: _Contributed, error: Exception) -> None:
        if contributed.change is None:
            raise error
        await self._producer.send_to_dlq([contributed.record.dead_letter(self._topic, "store", error)])
        await self._store([], contributed.record.offset)

    async def _store(self, changes: Sequence[Change], position: int) -> None:
        """A snapshot is due at once: whoever sees the position and asks for a snapshot gets one that includes it."""
        await self._thread.run(self._writer.apply, changes, position)
        self._snapshots.schedule.changed()


def decode_change(record: SourceRecord) -> Change:
    """The document and its contribution, None for withdrawn. Raises MalformedEvent."""
    try:
        key = DocumentKey.parse((record.key or b"").decode("utf-8", "surrogatepass"))
        if record.value is None:
            return key, None
        contribution = decode_contribution(record.value)
    except MalformedEvent:
        raise
    except ValueError as error:
        raise MalformedEvent("bad_contribution", f"The record is not a graph contribution: {error}.") from error
    if (contribution.collection, contribution.document_id) != key:
        raise MalformedEvent("key_mismatch", "The contribution is not that of the document in the record's key.")
    return key, contribution
