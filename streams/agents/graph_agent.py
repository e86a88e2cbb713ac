"""The graph agent: commits from the contributions topic into the graph store, with the position reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from indexer.changes import Commit, CommitReader
from indexer.graph.store import Change, GraphStore
from schemas.errors import MalformedEvent
from streams.agents.batching import Batches, process
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import SourceRecord
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import bisect
from streams.runtime.snapshot_schedule import Snapshots
from streams.runtime.store_thread import DATA_ERRORS, StoreThread
from streams.worker_log import log
from streams.worker_metrics import Stopwatch, WorkerMetrics

STAGE = "graph"
GRAPH_BATCH_RECORDS = 500
MAX_PENDING_BYTES = 64 * 1024**2  # a snapshot is made before more than this waits for one


@dataclass(eq=False)
class GraphAgent:
    """Applies commits. The position in the store, of a mark, is the truth; the group's offsets only follow."""

    topic: str
    writer: GraphStore
    thread: StoreThread
    producer: ConfirmedProducer
    snapshots: Snapshots
    progress: Progress
    metrics: WorkerMetrics

    def __post_init__(self) -> None:
        self._broken: list[tuple[SourceRecord, MalformedEvent]] = []
        self._reader: CommitReader[SourceRecord] = CommitReader(lambda *broken: self._broken.append(broken))

    async def run(self, batches: Batches) -> None:
        """Drop what the store holds already, put commits together, apply them, acknowledge."""
        await process(batches, self.apply, self.progress, STAGE, self.topic)

    async def apply(self, records: Sequence[SourceRecord]) -> None:
        """Bring the store to the state after the last commit that these records end. May be called again with the same
        records.

        Records that are not contributions go to the dead letters, as do contributions the store cannot hold.
        Raises StoreFailure.
        """
        watch = Stopwatch()
        position = self.writer.position()
        commits = [
            commit
            for record in records
            if record.offset > position and not record.is_gap and (commit := self._reader.add(record)) is not None
        ]
        letters = [record.dead_letter(self.topic, "decode", error) for record, error in self._broken]
        await self.producer.send_to_dlq(letters)
        self._broken.clear()
        if not commits:
            return
        await bisect(commits, self._apply, self._apply_each, errors=DATA_ERRORS, name="graph")
        watch.lap("graph")
        self.metrics.stage_seconds.labels("graph").observe(watch.seconds["graph"])
        log.info(
            "applied to graph",
            records=len(records),
            documents=len({key for commit in commits for key, _ in commit.in_graph}),
            position=commits[-1].offset,
            seconds=round(watch.seconds["graph"], 4),
        )
        if self.writer.pending_bytes > MAX_PENDING_BYTES:
            await self.snapshots.make()

    async def _apply(self, commits: Sequence[Commit[SourceRecord]]) -> list[None]:
        """The last contribution of each document, and the position of the last mark."""
        changes = [change for commit in commits for change in commit.in_graph]
        await self._store(changes, commits[-1].offset, _positions(commits))
        return []

    async def _apply_each(self, commit: Commit[SourceRecord], _: Exception) -> None:
        """What the store cannot hold of a commit goes to the dead letters."""

        async def apply(changes: Sequence[Change]) -> list[None]:
            await self._store(changes, self.writer.position(), {})
            return []

        async def reject(change: Change, error: Exception) -> None:
            await self.producer.send_to_dlq([commit.records[change[0]].dead_letter(self.topic, "store", error)])

        await bisect(commit.in_graph, apply, reject, errors=DATA_ERRORS, name="changes of the graph")
        await self._store([], commit.offset, _positions([commit]))

    async def _store(self, changes: Sequence[Change], position: int, positions: Mapping[int, int]) -> None:
        """A snapshot is due at once where there are changes: who sees the position and asks for a snapshot gets one
        that includes it."""
        latest = dict(changes)
        await self.thread.run(self.writer.apply, list(latest.items()), position, positions)
        if latest:
            self.snapshots.schedule.changed()


def _positions(commits: Sequence[Commit[SourceRecord]]) -> dict[int, int]:
    """Those of the documents topic that the commits reached, the last of each partition."""
    return {partition: offset for commit in commits for partition, (offset, _) in commit.reached.items()}
