"""The graph agent: contributions into the graph store, each batch in one transaction with the position reached."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from indexer.read.graph_snapshots import SnapshotFile
from indexer.runtime.memory import return_freed_memory
from schemas.contributions import Contribution, decode_contribution
from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey
from streams.agents.batching import MOST_GATHER_SECONDS, Taken, work_off
from streams.kafka.dead_letters import DeadLetter
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.source_record import SourceRecord
from streams.metrics import Stopwatch, WorkerMetrics
from streams.runtime.progress import Progress
from streams.runtime.snapshots import SnapshotSchedule
from streams.runtime.store_thread import DATA_ERRORS, StoreThread

STAGE = "graph"
REST_FACTOR = 2.0  # most of a transaction's cost is its commit: a third of the time at most goes into them
MOST_REST_SECONDS = 5.0
BUSY_REST_SECONDS = 30.0  # while documents are being indexed: a commit costs .3 s whether it holds 3 of them or 50
BUSY_WITHIN_SECONDS = MOST_GATHER_SECONDS + 1.0  # small updates are gathered for so long
_LOOK_SECONDS = 0.25

Change = tuple[DocumentKey, Contribution | None]


class ContributionWriter(Protocol):
    """The graph store. `apply` may be repeated with the same changes and then changes nothing."""

    def position(self) -> int: ...
    def apply(self, changes: Sequence[Change], position: int) -> None: ...
    def collect_orphans(self) -> int: ...
    def snapshot(self, snapshots_dir: Path) -> SnapshotFile: ...


@dataclass(frozen=True)
class _Contributed:
    record: SourceRecord
    change: Change


class GraphAgent:
    """Applies batches of the graph topic. The position in the store is the truth; the group's offsets only follow."""

    def __init__(
        self,
        *,
        topic: str,
        writer: ContributionWriter,
        thread: StoreThread,
        producer: ConfirmedProducer,
        schedule: SnapshotSchedule,
        progress: Progress,
        metrics: WorkerMetrics,
        feeding_stage: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`feeding_stage` is the stage whose work ends on this topic: while it is busy, more is about to come."""
        self._topic = topic
        self._feeding_stage = feeding_stage
        self._sleep = sleep
        self._writer = writer
        self._thread = thread
        self._producer = producer
        self._schedule = schedule
        self._progress = progress
        self._metrics = metrics
        self._log = structlog.get_logger("thalweg.worker")
        self._applied_seconds = 0.0

    async def run(self, batches: Taken) -> None:
        """Decode, drop what the store holds already, keep the last of each document, apply, acknowledge."""
        await work_off(batches, self.apply, self._progress, STAGE, self._topic, self.rest)

    async def rest(self) -> None:
        """In proportion to the last transaction, and on while documents are being indexed, up to a bound.

        Searches see graph changes before they are stored, so nobody waits for this, and the processor is the encoder's.
        """
        rested = min(REST_FACTOR * self._applied_seconds, MOST_REST_SECONDS)
        await self._sleep(rested)
        while rested < BUSY_REST_SECONDS and self._progress.is_busy(self._feeding_stage, BUSY_WITHIN_SECONDS):
            await self._sleep(_LOOK_SECONDS)
            rested += _LOOK_SECONDS

    async def apply(self, records: Sequence[SourceRecord]) -> None:
        """Bring the store to the state after these records. May be called again with the same records.

        Records that are no contribution go to dead letters, confirmed.
        Raises StoreFailure, or what the store raises for a single contribution it cannot hold even alone.
        """
        watch = Stopwatch()
        position = await self._thread.run(self._writer.position)
        fresh = [record for record in records if record.offset > position]
        if not fresh:
            return
        contributed: list[_Contributed] = []
        letters: list[DeadLetter] = []
        for record in fresh:
            if record.is_gap:
                continue
            try:
                contributed.append(_Contributed(record, decode_change(record)))
            except MalformedEvent as error:
                letters.append(self._letter(record, error))
        await self._producer.send_to_dlq(letters)
        await self._apply(contributed, fresh[-1].offset)
        watch.lap("graph")
        await self._thread.run(return_freed_memory)  # a transaction takes Kùzu hundreds of megabytes
        self._applied_seconds = watch.seconds["graph"]
        self._schedule.changed()
        self._metrics.stage_seconds.labels("graph").observe(watch.seconds["graph"])
        self._log.info(
            "applied to graph",
            records=len(records),
            documents=len({each.change[0] for each in contributed}),
            position=fresh[-1].offset,
            seconds=round(watch.seconds["graph"], 4),
        )

    async def _apply(self, contributed: Sequence[_Contributed], position: int) -> None:
        """Apply in one transaction; halves where the data are to blame, so that one of them cannot hold up the rest."""
        latest = {each.change[0]: each.change for each in contributed}
        try:
            await self._thread.run(self._writer.apply, list(latest.values()), position)
        except DATA_ERRORS as error:
            self._log.warning(
                "a graph batch failed", records=len(contributed), error=type(error).__name__, exc_info=error
            )
            if not contributed:
                raise
            if len(contributed) > 1:
                half = len(contributed) // 2
                await self._apply(contributed[:half], contributed[half - 1].record.offset)
                await self._apply(contributed[half:], position)
                return
            await self._producer.send_to_dlq([self._letter(contributed[0].record, error)])
            await self._apply([], position)

    def _letter(self, record: SourceRecord, error: Exception) -> DeadLetter:
        return record.letter(self._topic, "decode" if isinstance(error, MalformedEvent) else "store", error)


class Snapshots:
    """Makes snapshots of the graph when they are due, in the store's thread."""

    def __init__(
        self,
        *,
        writer: ContributionWriter,
        thread: StoreThread,
        schedule: SnapshotSchedule,
        snapshots_dir: Path,
        metrics: WorkerMetrics,
        newest: SnapshotFile | None,
        now_seconds: Callable[[], float] = time.time,
    ) -> None:
        self._writer = writer
        self._thread = thread
        self._schedule = schedule
        self._snapshots_dir = snapshots_dir
        self._newest = newest
        self._log = structlog.get_logger("thalweg.worker")
        self._now_seconds = now_seconds
        metrics.snapshot_age.set_function(self._age_seconds)

    async def keep(self) -> None:
        """Make snapshots for ever."""
        while True:
            await self._schedule.until_due()
            await self.make()

    async def make(self) -> None:
        """Make one now, if anything changed since the last."""
        if not self._schedule.pending:
            return
        token = self._schedule.begin()
        orphans = await self._thread.run(self._writer.collect_orphans)
        snapshot = await self._thread.run(self._writer.snapshot, self._snapshots_dir)
        await self._thread.run(return_freed_memory)
        took = self._schedule.made(token)
        self._newest = snapshot
        self._log.info(
            "snapshot made",
            name=snapshot.name,
            graph_position=snapshot.graph_position,
            documents=snapshot.documents,
            orphans_collected=orphans,
            seconds=round(took, 4),
        )

    def _age_seconds(self) -> float:
        if self._newest is None or not self._schedule.pending:
            return 0.0
        return max(0.0, self._now_seconds() - self._newest.made_at_ms / 1000)


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
