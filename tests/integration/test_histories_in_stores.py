"""Random histories of deliveries and crashes, and each call failing in turn, on the real stores: their digest is that
of an index made again."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from aiokafka.errors import KafkaConnectionError
from hypothesis import HealthCheck, given, settings
from structlog.testing import capture_logs

from indexer.embedding.encoder import HashingEncoder
from indexer.generation_folders import Generation
from indexer.graph.store import GraphStore
from indexer.read.lance_reader import LanceReader
from indexer.schema import POSITIONS
from indexer.store_verification import VerifyReport, verify
from indexer.write.lance_writer import LanceWriter
from streams.kafka.records import SourceRecord
from tests.support.effort import examples
from tests.support.fakes.worker import GENERATION, NAMES, Bench, InMemoryBroker, PowerCut, delete, upsert
from tests.support.oracles.document_log import Crash, History, countdown, deliver, good, histories
from tests.support.oracles.outcome import Outcome

EACH_CALL = 20  # a batch makes more
TOPICS = {NAMES.contributions(GENERATION): "graph", NAMES.indexed: "indexed", NAMES.dead_letters: "dead-letters"}


class CrashingCommits:
    """Stands where the vector writer says that it commits."""

    def __init__(self, crash: Crash | None) -> None:
        self.come_to = countdown(crash)

    @contextmanager
    def committing(self, table: str) -> Iterator[None]:
        self.come_to("store_positions" if table == POSITIONS else "replace")
        yield
        self.come_to("after store_positions" if table == POSITIONS else "after replace")


class FailingCall:
    """Stands there, too. The call with this number fails, once: before it is made, or after it took effect."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.made = 0

    @contextmanager
    def committing(self, _table: str) -> Iterator[None]:
        self.come_to(OSError)
        yield
        self.come_to(OSError)

    def come_to(self, failure: type[Exception]) -> None:
        self.made += 1
        if self.made == self.number:
            raise failure("the chosen call")


class FailingBroker(InMemoryBroker):
    """May fail for a topic also after a record is taken."""

    failing_after: Any = staticmethod(lambda: None)

    async def send(self, *record: Any) -> Any:
        confirmation = await super().send(*record)
        self.failing_after()
        return confirmation


class Worker:
    """Both halves of a worker on stores in a folder; the broker is in memory and outlives it."""

    def __init__(self, folder: Path) -> None:
        self.generation = Generation(folder, GENERATION)
        self.generation.snapshots_dir.mkdir(parents=True)
        self.broker = FailingBroker()
        self._start()

    def _start(self) -> None:
        self.writer = LanceWriter.open(self.generation, HashingEncoder().dimension)
        self.graph = GraphStore.open(self.generation)
        self.bench = Bench(self.writer, self.broker)

    async def index(self, records: Sequence[SourceRecord], crash: Crash | None) -> None:
        commits = CrashingCommits(crash)
        self.writer.maintainer = commits
        self.broker.failing = lambda topic, _value: commits.come_to(TOPICS[topic])
        await self.bench.indexer.index(records)
        self._apply()

    async def index_with(self, records: Sequence[SourceRecord], calls: FailingCall) -> None:
        self.writer.maintainer = calls
        self.broker.failing = lambda _topic, _value: calls.come_to(KafkaConnectionError)
        self.broker.failing_after = lambda: calls.come_to(KafkaConnectionError)
        await self.bench.indexer.index(records)
        self._apply()

    def restart(self) -> None:
        self.close()
        self._start()
        self._apply()

    def close(self) -> None:
        self.bench.close()
        self.writer.close()

    def _apply(self) -> None:
        """What was committed and the graph does not have."""
        fresh = [commit for commit in self.broker.commits() if commit.offset > self.graph.position()]
        if fresh:
            changes = dict(change for commit in fresh for change in commit.in_graph)
            self.graph.apply(list(changes.items()), fresh[-1].offset)

    def verified(self) -> VerifyReport:
        snapshot = self.graph.snapshot()
        return verify(self.generation, LanceReader.open(self.generation).snapshot(), snapshot)


@settings(max_examples=examples(10, 500), deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
async def test_any_delivery_leaves_the_digest_of_the_log(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder, capture_logs():
        worker, again = Worker(Path(folder) / "worker"), Worker(Path(folder) / "again")
        await deliver(history.log(), history.takes, worker)
        live = Outcome.of(good(history.changes)).live
        await again.index(
            [upsert(at, key, document.text or "") for at, (key, document) in enumerate(live.items())], None
        )
        found, expected = worker.verified(), again.verified()
        worker.close()
        again.close()
    assert found.differences == []
    assert (found.ok, found.documents, found.stale_rows) == (True, len(live), 0)
    assert found.digest == expected.digest


async def test_verify_in_the_middle_of_a_commit_is_not_complete() -> None:
    with tempfile.TemporaryDirectory() as folder, capture_logs():
        worker = Worker(Path(folder) / "worker")
        await worker.index([upsert(0, "notes/a", "The Rhine."), upsert(1, "notes/b", "The Main.")], None)
        assert worker.verified().ok
        with suppress(PowerCut):
            await worker.index([delete(2, "notes/b")], Crash("after replace", 1))
        cut_off = worker.verified()
        worker.restart()
        await worker.index([delete(2, "notes/b")], None)
        finished = worker.verified()
        worker.close()
    assert (cut_off.ok, cut_off.complete, cut_off.is_wrong, cut_off.uncommitted) == (False, False, False, 1)
    assert (finished.ok, finished.documents) == (True, 1)


def batch_of(number: int) -> list[SourceRecord]:
    """Four documents, all of them changed by every batch: one in two of them is deleted, and one refused."""
    first = number * 4
    return [
        upsert(first, "notes/a", f"The Rhine at Basel, for the time no. {number}. See [b](b)."),
        upsert(first + 1, "notes/b", f"# Basel\n\nWord {number} on the Rhine.")
        if number % 2
        else delete(first + 1, "notes/b"),
        upsert(first + 2, "notes/c", "unparsable"),
        upsert(first + 3, "notes/d", f"Mr. Miller of Basel has {number} boats."),
    ]


async def test_failed_store_or_broker_call_is_repeated_unnoticed(tmp_path: Path) -> None:
    """Until a batch passes untouched."""
    worker, again = Worker(tmp_path / "worker"), Worker(tmp_path / "again")
    with capture_logs():
        for number in count(1):
            calls = FailingCall(number)
            await worker.index_with(batch_of(number), calls)
            if calls.made < number:
                break
        await again.index(batch_of(number), None)
    found, expected = worker.verified(), again.verified()
    worker.close()
    again.close()
    assert number > EACH_CALL
    assert (found.ok, found.stale_rows, found.digest) == (True, 0, expected.digest)
    assert {letter["__connect.errors.offset"] for letter in worker.broker.letters()} == {
        str(tried * 4 + 2) for tried in range(1, number + 1)
    }
