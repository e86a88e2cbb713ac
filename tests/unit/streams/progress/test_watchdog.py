"""Lag as the broker tells it, and who is stuck."""

import math
from collections.abc import Mapping

import pytest

from streams.errors import WorkerStuck
from streams.metrics import Health, WorkerMetrics
from streams.progress.partitions import Progress, TopicPartition
from streams.progress.watchdog import Watchdog

TOPIC = "t.documents.v1"
PARTITION = TopicPartition(TOPIC, 0)


class TellingLog:
    """Says what it is told to; `only_marks` makes the rest of the log hold no records."""

    def __init__(self) -> None:
        self.end: int | None = 0
        self.only_marks = False

    async def ends(self) -> Mapping[TopicPartition, int] | None:
        return None if self.end is None else {PARTITION: self.end}

    async def holds_records(self, partition: TopicPartition, start: int, end: int) -> bool:
        return not self.only_marks


class Scene:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.log = TellingLog()
        self.metrics = WorkerMetrics()
        self.health = Health([])
        self.progress = Progress(clock=lambda: self.now)
        self.progress.expect("text", TOPIC, 0, -1)
        self.watchdog = Watchdog(
            self.log,
            self.progress,
            self.metrics,
            self.health,
            patience_seconds=300,
            clock=lambda: self.now,
            now_ms=lambda: int(self.now * 1000),
        )

    async def after(self, seconds: float) -> None:
        self.now += seconds
        await self.watchdog.look()

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


async def test_lag_is_told_in_records_and_in_seconds() -> None:
    scene = Scene()
    scene.log.end = 10
    scene.progress.taken("text", TOPIC, 0, timestamp_ms=990_000)
    await scene.after(0)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 10
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 10
    scene.progress.done("text", TOPIC, 0, 9, timestamp_ms=990_000)
    await scene.after(1)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 0
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 0
    assert scene.value("thalweg_store_position", store="lance", topic=TOPIC, partition="0") == 9


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


async def test_progress_resets_the_patience() -> None:
    scene = Scene()
    scene.log.end = 10
    await scene.after(299)
    scene.progress.done("text", TOPIC, 0, 3, timestamp_ms=0)
    await scene.after(299)


async def test_who_waits_for_a_store_or_for_kafka_is_not_stuck() -> None:
    scene = Scene()
    scene.log.end = 10
    scene.progress.waiting_for.add("lance")
    await scene.after(1_000)
    scene.progress.waiting_for.clear()
    scene.log.end = None
    await scene.after(1_000)
    assert scene.health.missing() == ["kafka"]
    scene.log.end = 10
    await scene.after(299)
    assert scene.health.missing() == []


async def test_the_marks_of_a_transaction_are_no_lag() -> None:
    scene = Scene()
    scene.log.end = 1
    scene.log.only_marks = True
    await scene.after(1_000)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 0


async def test_looking_at_a_partition_without_lag_does_not_make_its_stage_busy() -> None:
    scene = Scene()
    scene.log.end = 1
    scene.progress.done("text", TOPIC, 0, 0, timestamp_ms=990_000)
    await scene.after(2.0)
    assert scene.progress.is_busy("text", 3.0)
    await scene.after(2.0)
    assert not scene.progress.is_busy("text", 3.0)
