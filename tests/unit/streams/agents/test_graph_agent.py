"""The graph agent on a graph in memory."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from indexer.graph.snapshots import FORMAT, GraphSnapshot
from indexer.graph.store import GraphChanges
from indexer.integrity.files import Damage
from indexer.read.arrow_folders import TableFile
from indexer.write.change_encoding import encode_void
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from streams.agents.graph_agent import MAX_PENDING_BYTES, GraphAgent
from streams.errors import StoreFailure
from streams.kafka.records import SourceRecord
from streams.runtime.snapshot_schedule import Snapshots, SnapshotSchedule
from tests.support.contributions import committed
from tests.support.fakes.worker import GENERATION, NAMES, Bench, contribution_of, disk_full, gap

TOPIC = NAMES.contributions(GENERATION)


class InMemoryGraph:
    """Holds contributions and the position they reach; `failing` is called before each transaction."""

    def __init__(self) -> None:
        self.held: dict[str, Contribution] = {}
        self.reached = -1
        self.positions: dict[int, int] = {}
        self.pending_bytes = 0
        self.transactions = 0
        self.snapshots: list[int] = []
        self.damage: list[Damage] = []
        self.failing: Callable[[Sequence[tuple[DocumentKey, Contribution | None]]], None] = lambda _changes: None

    def position(self) -> int:
        return self.reached

    def apply(
        self, changes: Sequence[tuple[DocumentKey, Contribution | None]], position: int, positions: Mapping[int, int]
    ) -> None:
        self.failing(changes)
        self.transactions += 1
        for key, contribution in changes:
            if contribution is None:
                self.held.pop(str(key), None)
            else:
                self.held[str(key)] = contribution
        self.reached = position
        self.positions |= positions

    def changes(self) -> GraphChanges:
        return GraphChanges(self.reached, {})

    def publish(self, changes: GraphChanges) -> GraphSnapshot:
        self.snapshots.append(changes.position)
        self.pending_bytes = 0
        return GraphSnapshot(
            format=FORMAT,
            name=str(changes.position),
            graph_position=changes.position,
            made_at_ms=1_000,
            tables={"documents": TableFile("documents.arrow", len(self.held), 0, "")},
            positions={},
        )

    def set_aside_damaged(self) -> list[Damage]:
        damage, self.damage = self.damage, []
        return damage


class Scene:
    def __init__(self) -> None:
        self.bench = Bench()
        self.graph = InMemoryGraph()
        self.schedule = SnapshotSchedule(idle_seconds=1, min_seconds=5, max_seconds=300, share=0.05, is_pending=False)
        self.snapshots = Snapshots(
            writer=self.graph,
            thread=self.bench.thread,
            beside=self.bench.thread,
            schedule=self.schedule,
            metrics=self.bench.metrics,
            newest=None,
            now_seconds=lambda: 11.0,
        )
        self.agent = GraphAgent(
            topic=TOPIC,
            writer=self.graph,
            thread=self.bench.thread,
            producer=self.bench.producer,
            snapshots=self.snapshots,
            progress=self.bench.progress,
            metrics=self.bench.metrics,
        )


@pytest.fixture
async def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.bench.close()


def commit(offset: int, *keys: str, leaves: Sequence[str] = (), end: int | None = None) -> list[SourceRecord]:
    """A commit that changes these documents, and lets others leave the graph; the mark is at `end`."""
    changes = {key: contribution_of(key) for key in keys} | dict.fromkeys(leaves)
    records = [SourceRecord(0, offset + at, 0, *record) for at, record in enumerate(committed(changes))]
    return [*records[:-1], replace(records[-1], offset=records[-1].offset if end is None else end)]


async def test_commit_is_applied_with_its_mark(scene: Scene) -> None:
    *changes, mark = commit(0, "c/a", "c/b")
    await scene.agent.apply(changes)
    assert (scene.graph.held, scene.graph.reached) == ({}, -1)
    await scene.agent.apply([mark])
    assert (sorted(scene.graph.held), scene.graph.reached) == (["c/a", "c/b"], 2)


async def test_positions_of_documents_follow_the_marks(scene: Scene) -> None:
    reached = ({0: (4, 1_000)}, {0: (6, 2_000), 1: (2, 2_000)})
    values = [record for each in reached for record in committed({}, each)]
    await scene.agent.apply([SourceRecord(0, offset, 0, *record) for offset, record in enumerate(values)])
    assert scene.graph.positions == {0: 6, 1: 2}


async def test_gap_within_a_commit_is_passed(scene: Scene) -> None:
    await scene.agent.apply([*commit(0, "c/a"), gap(4), *commit(5, "c/b")])
    assert (sorted(scene.graph.held), scene.graph.reached) == (["c/a", "c/b"], 6)
    assert scene.bench.broker.letters() == []


async def test_the_last_of_each_document_is_applied_in_one_transaction_with_the_position(scene: Scene) -> None:
    await scene.agent.apply([*commit(0, "c/a", "c/b"), *commit(3, leaves=["c/a"])])
    assert sorted(scene.graph.held) == ["c/b"]
    assert (scene.graph.transactions, scene.graph.reached) == (1, 4)
    assert scene.schedule.pending


async def test_records_below_the_stores_position_are_dropped(scene: Scene) -> None:
    records = commit(0, "c/a", "c/b")
    await scene.agent.apply(records)
    await scene.agent.apply(records)
    assert scene.graph.transactions == 1


async def test_records_that_are_no_contributions_are_dead_letters(scene: Scene) -> None:
    good, mark = commit(0, "c/a", end=4)
    foreign = SourceRecord(0, 1, 0, b"c/b", b"not a contribution")
    stolen = SourceRecord(0, 2, 0, b"c/x", commit(0, "c/y")[0].value)
    empty = SourceRecord(0, 3, 0, b"c/z", None)
    await scene.agent.apply([good, foreign, stolen, empty, mark])
    assert (sorted(scene.graph.held), scene.graph.reached) == (["c/a"], 4)
    reasons = [one["thalweg.reason"] for one in scene.bench.broker.letters()]
    assert reasons == ["bad_contribution", "key_mismatch", "bad_contribution"]


async def test_contribution_the_store_cannot_hold_is_a_dead_letter_alone(scene: Scene) -> None:
    def choke(changes: Sequence[tuple[DocumentKey, Contribution | None]]) -> None:
        if any(key.document_id == "bad" for key, _ in changes):
            raise ValueError("no room for that name")

    scene.graph.failing = choke
    await scene.agent.apply([*commit(0, "c/0", "c/1", "c/bad", "c/3"), *commit(5, "c/4")])
    assert sorted(scene.graph.held) == ["c/0", "c/1", "c/3", "c/4"]
    assert scene.graph.reached == 6
    assert [one["thalweg.reason"] for one in scene.bench.broker.letters()] == ["failed"]


async def test_refused_document_leaves_the_graph(scene: Scene) -> None:
    await scene.agent.apply(commit(0, "c/a", "c/b"))
    void = SourceRecord(0, 3, 0, b"c/a", encode_void())
    await scene.agent.apply([void, *commit(4)])
    assert (sorted(scene.graph.held), scene.graph.reached) == (["c/b"], 4)


async def test_a_full_disk_is_waited_out_and_a_broken_store_stops_the_worker(scene: Scene) -> None:
    failures: list[Exception] = [disk_full(), disk_full()]

    def fail(_changes: Sequence[tuple[DocumentKey, Contribution | None]]) -> None:
        if failures:
            raise failures.pop()

    scene.graph.failing = fail
    await scene.agent.apply(commit(0, "c/a"))
    assert scene.graph.reached == 1
    failures.append(RuntimeError("the file is corrupt"))
    with pytest.raises(StoreFailure):
        await scene.agent.apply(commit(2, "c/a"))
    assert scene.bench.broker.letters() == []


async def test_a_snapshot_is_made_only_of_something_new(scene: Scene) -> None:
    await scene.snapshots.make()
    assert scene.graph.snapshots == []
    await scene.agent.apply(commit(0, "c/a"))
    await scene.snapshots.make()
    await scene.snapshots.make()
    assert scene.graph.snapshots == [1]


async def test_snapshot_is_due_as_soon_as_the_position_shows(scene: Scene) -> None:
    """A build that sees its graph complete publishes it before it is served."""
    applying = asyncio.create_task(scene.agent.apply(commit(0, "c/a")))
    while await scene.bench.thread.run(scene.graph.position) < 0:
        assert not applying.done()
    assert scene.schedule.pending
    await applying


async def test_commit_that_changes_nothing_makes_no_snapshot_due(scene: Scene) -> None:
    await scene.agent.apply(commit(0))
    assert (scene.graph.reached, scene.schedule.pending) == (0, False)
    await scene.agent.apply(commit(1, leaves=["c/never"]))
    assert (scene.graph.reached, scene.schedule.pending) == (2, True)


async def test_a_damaged_snapshot_is_made_again(scene: Scene) -> None:
    await scene.agent.apply(commit(0, "c/a"))
    await scene.snapshots.make()
    await scene.snapshots.check_once()
    assert not scene.schedule.pending
    scene.graph.damage = [Damage("snapshots/0/chunks.arrow", "does not match its checksum")]
    await scene.snapshots.check_once()
    await scene.snapshots.make()
    assert scene.graph.snapshots == [1, 1]


async def test_the_snapshots_age_counts_only_while_it_lacks_something(scene: Scene) -> None:
    def age() -> float | None:
        return scene.bench.metrics.registry.get_sample_value("thalweg_snapshot_age_seconds")

    await scene.agent.apply(commit(0, "c/a"))
    await scene.snapshots.make()
    assert age() == 0
    await scene.agent.apply(commit(2, "c/b"))
    assert age() == 10


async def test_snapshot_is_made_before_too_much_waits_for_one(scene: Scene) -> None:
    scene.graph.pending_bytes = MAX_PENDING_BYTES
    await scene.agent.apply(commit(0, "c/a"))
    assert scene.graph.snapshots == []
    scene.graph.pending_bytes += 1
    await scene.agent.apply(commit(2, "c/a"))
    assert scene.graph.snapshots == [3]
