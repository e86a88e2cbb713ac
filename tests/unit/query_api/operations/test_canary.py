"""The canary: when one is sent, and what it is."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.partitioner import murmur2_partition
from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord
from query_api.operations.canary import Canary, canary_keys
from schemas.ids import CANARY_COLLECTION, Position

PARTITIONS = 4
EVERYWHERE = set(range(PARTITIONS))


class Scene:
    """A service in a quiet time, with a worker that runs, and a log that appends what is published."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.log: list[OutgoingRecord] = []
        self.kafka_is_away = False
        self.worker = "running"
        self.partitions: int | None = PARTITIONS
        self.snapshots: Any = SimpleNamespace(current=None, freshness=SimpleNamespace(newest=None))
        self.shows(-1)
        self.canary = Canary(
            "documents",
            self,  # type: ignore[arg-type]
            self.snapshots,
            SimpleNamespace(partition_count=lambda topic: self.partitions),  # type: ignore[arg-type]
            SimpleNamespace(status=lambda: SimpleNamespace(state=self.worker)),  # type: ignore[arg-type]
            60.0,
            lambda: self.now,
        )

    async def publish(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Position]:
        if self.kafka_is_away:
            raise BrokerUnavailable("away")
        self.log += records
        partition_of = murmur2_partition(PARTITIONS)
        return [Position(partition_of(record.key or b""), len(self.log)) for record in records]

    def shows(self, offset: int) -> None:
        """Searches show the records up to this offset."""
        stored = {partition: SimpleNamespace(offset=offset, mark=-1) for partition in EVERYWHERE}
        self.snapshots.current = SimpleNamespace(
            text=SimpleNamespace(positions=stored), graph=SimpleNamespace(position=-1)
        )


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_it_deletes_in_each_partition_what_does_not_exist(scene: Scene) -> None:
    await scene.canary.send()
    keys = [(record.key or b"").decode() for record in scene.log]
    assert {murmur2_partition(PARTITIONS)(key.encode()) for key in keys} == EVERYWHERE
    assert all(key.startswith(f"{CANARY_COLLECTION}/") for key in keys)
    assert {record.value for record in scene.log} == {None}
    await scene.canary.send()
    assert len({record.key for record in scene.log}) == PARTITIONS  # compaction keeps one of each


def test_none_is_due_while_documents_measure_freshness(scene: Scene) -> None:
    scene.snapshots.freshness.newest = 0.1, scene.now - 59
    assert not scene.canary.is_due()
    scene.now += 1
    assert scene.canary.is_due()


@pytest.mark.parametrize("state", ["never_seen", "starting", "silent", "stopped", "failed"])
def test_none_is_due_while_no_worker_runs(scene: Scene, state: str) -> None:
    scene.worker = state
    assert not scene.canary.is_due()


async def test_none_is_due_before_the_last_one_was_shown(scene: Scene) -> None:
    await scene.canary.send()
    assert not scene.canary.is_due()
    scene.shows(len(scene.log))
    assert scene.canary.is_due()


async def test_without_kafka_or_its_partitions_the_next_one_is_tried(scene: Scene) -> None:
    scene.kafka_is_away = True
    await scene.canary.send()
    scene.kafka_is_away, scene.partitions = False, None
    await scene.canary.send()
    assert scene.log == []
    assert scene.canary.is_due()


def test_each_partition_has_one_key() -> None:
    for partitions in (1, 3, 64):
        belongs = [murmur2_partition(partitions)(str(key).encode()) for key in canary_keys(partitions)]
        assert belongs == list(range(partitions))
