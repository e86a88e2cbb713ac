"""Lag as metrics, and who is stuck."""

import math

import pytest

from kafka_client.topic_lag import LagMonitor
from kafka_client.topic_offsets import Span, TopicPartition
from kafka_client.unreadable_batches import UnreadableBatch
from streams.errors import WorkerStuck
from streams.runtime.partition_progress import Progress
from streams.runtime.watchdog import Watchdog
from streams.runtime.worker_health import Health
from streams.worker_metrics import WorkerMetrics

TOPIC = "t.documents.v1"
PARTITION = TopicPartition(TOPIC, 0)


class SeenLog(LagMonitor):
    """Partition 0 ends at `end`, seen at each look; the broker does not answer where that is None."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(lambda: None, progress.reached, progress.clock)
        self.end: int | None = 0

    async def look(self) -> None:
        self.problem = "away"
        if self.end is not None:
            self.see(TOPIC, {0: Span(0, self.end)})


class Scene:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.metrics = WorkerMetrics()
        self.health = Health([])
        self.progress = Progress(clock=lambda: self.now)
        self.progress.expect("text", TOPIC, 0, -1)
        self.log = SeenLog(self.progress)
        self.watchdog = Watchdog(
            self.log, self.progress, self.metrics, self.health, timeout_seconds=300, clock=lambda: self.now
        )

    async def after(self, seconds: float) -> None:
        self.now += seconds
        await self.watchdog.check()

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


async def test_lag_is_measured_in_records_and_in_seconds() -> None:
    scene = Scene()
    scene.log.end = 10
    await scene.after(0)
    await scene.after(10)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 10
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 10
    scene.progress.done("text", TOPIC, 0, 9)
    await scene.after(1)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 0
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 0
    assert scene.value("thalweg_store_position", store="lance", topic=TOPIC, partition="0") == 9


async def test_lag_of_a_stage_is_that_of_its_slowest_partition() -> None:
    scene = Scene()
    scene.progress.expect("text", TOPIC, 1, 10)
    scene.log.end = 10
    await scene.after(0)
    await scene.after(32)
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 32


async def test_lag_is_unknown_while_kafka_does_not_answer() -> None:
    scene = Scene()
    scene.log.end = 10
    await scene.after(0)
    scene.log.end = None
    await scene.after(25)
    assert math.isnan(scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") or 0)
    assert math.isnan(scene.value("thalweg_ingest_lag_seconds", stage="text") or 0)
    scene.log.end = 12
    await scene.after(1)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 12


async def test_a_partition_that_stands_still_in_spite_of_lag_ends_the_worker() -> None:
    scene = Scene()
    scene.log.end = 10
    await scene.after(299)
    with pytest.raises(WorkerStuck, match="10 records waiting"):
        await scene.after(2)


async def test_progress_resets_the_timeout() -> None:
    scene = Scene()
    scene.log.end = 10
    await scene.after(299)
    scene.progress.done("text", TOPIC, 0, 3)
    await scene.after(299)


async def test_who_waits_for_a_store_or_for_kafka_is_not_stuck() -> None:
    scene = Scene()
    scene.log.end = 10
    scene.progress.waiting_for["lance"] = "OSError: no space left"
    await scene.after(1_000)
    scene.progress.waiting_for.clear()
    scene.log.end = None
    await scene.after(1_000)
    assert scene.health.missing() == ["kafka"]
    scene.log.end = 10
    await scene.after(299)
    assert scene.health.missing() == []


async def test_who_stands_before_a_batch_that_cannot_be_read_is_not_stuck_and_says_so() -> None:
    scene = Scene()
    scene.log.end = 10
    scene.log.unreadable = [UnreadableBatch(TOPIC, 0, 3, 5, "checksum")]
    scene.progress.unreadable[PARTITION] = scene.log.unreadable[0]
    await scene.after(1_000)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 10
    [note] = scene.health.notes()
    assert "offsets 3 to 5" in note
    assert f"thalweg dead-letters skip {TOPIC} 0:3" in note
    scene.log.unreadable = []
    scene.progress.unreadable.clear()
    await scene.after(299)
    assert scene.health.notes() == []
    with pytest.raises(WorkerStuck):
        await scene.after(2)


async def test_looking_at_a_partition_without_lag_does_not_make_its_stage_busy() -> None:
    scene = Scene()
    scene.log.end = 1
    scene.progress.done("text", TOPIC, 0, 0)
    await scene.after(2.0)
    assert scene.progress.is_busy("text", 3.0)
    await scene.after(2.0)
    assert not scene.progress.is_busy("text", 3.0)
