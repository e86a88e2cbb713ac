"""Random histories of deliveries and crashes, on the real stores: their digest is that of an index made anew."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from structlog.testing import capture_logs

from indexer.embedding.encoder import HashingEncoder
from indexer.generations import Generation
from indexer.read.lance import LanceReader
from indexer.schema import POSITIONS
from indexer.verify import VerifyReport, verify
from indexer.write.kuzu import GraphWriter
from indexer.write.lance import LanceWriter
from streams.agents.graph import decode_change
from streams.kafka.records import SourceRecord
from tests.support.effort import examples
from tests.support.fakes.worker import GENERATION, NAMES, Bench, InMemoryBroker, upsert
from tests.support.oracles.document_log import Crash, History, Outcome, countdown, deliver, histories

TOPICS = {NAMES.graph(GENERATION): "graph", NAMES.indexed: "indexed", NAMES.dead_letters: "dead-letters"}


class CrashingCommits:
    """Stands where the vector writer says that it commits."""

    def __init__(self, crash: Crash | None) -> None:
        self.come_to = countdown(crash)

    @contextmanager
    def committing(self, table: str) -> Iterator[None]:
        self.come_to("store_positions" if table == POSITIONS else "replace")
        yield
        self.come_to("after store_positions" if table == POSITIONS else "after replace")


class Worker:
    """Both halves of a worker on stores in a folder; the broker is in memory and outlives it."""

    def __init__(self, folder: Path) -> None:
        self.generation = Generation(folder, GENERATION)
        self.generation.snapshots_dir.mkdir(parents=True)
        self.broker = InMemoryBroker()
        self._start()

    def _start(self) -> None:
        self.writer = LanceWriter.open(self.generation, HashingEncoder().dimension)
        self.graph = GraphWriter.open(self.generation)
        self.bench = Bench(self.writer, self.broker)

    async def index(self, records: Sequence[SourceRecord], crash: Crash | None) -> None:
        commits = CrashingCommits(crash)
        self.writer._maintainer = commits
        self.broker.failing = lambda topic, _value: commits.come_to(TOPICS[topic])
        await self.bench.indexer.index(records)
        self._apply()

    def restart(self) -> None:
        self.close()
        self._start()
        self._apply()

    def close(self) -> None:
        self.bench.close()
        self.writer.close()
        self.graph.close()

    def _apply(self) -> None:
        """What the graph topic holds and the graph does not."""
        records = self.broker.topics[NAMES.graph(GENERATION)]
        fresh = [
            decode_change(SourceRecord(0, offset, 0, key, value))
            for offset, (key, value, *_) in enumerate(records)
            if offset > self.graph.position()
        ]
        if fresh:
            self.graph.apply(list(dict(fresh).items()), len(records) - 1)

    def verified(self) -> VerifyReport:
        snapshot = self.graph.snapshot()
        return verify(self.generation, LanceReader.open(self.generation).snapshot(), snapshot)


@settings(max_examples=examples(10, 500), deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
async def test_any_delivery_leaves_the_digest_of_what_the_log_says(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder, capture_logs():
        worker, anew = Worker(Path(folder) / "worker"), Worker(Path(folder) / "anew")
        await deliver(history.log(), history.takes, worker)
        live = Outcome.of(history.changes).live
        await anew.index(
            [upsert(at, key, document.text or "") for at, (key, document) in enumerate(live.items())], None
        )
        found, expected = worker.verified(), anew.verified()
        worker.close()
        anew.close()
    assert found.differences == []
    assert (found.ok, found.documents, found.stale_rows) == (True, len(live), 0)
    assert found.digest == expected.digest
