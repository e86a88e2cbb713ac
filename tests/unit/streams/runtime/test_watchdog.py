"""Lag as the broker tells it, and who is stuck."""

import math
from collections.abc import Mapping

import pytest

from kafka_client.unreadable_batches import UnreadableBatch
from streams.errors import WorkerStuck
from streams.runtime.partition_progress import Progress, TopicPartition
from streams.runtime.watchdog import FirstRecord, Watchdog
from streams.runtime.worker_health import Health
from streams.worker_metrics import WorkerMetrics

TOPIC = "t.documents.v1"
PARTITION = TopicPartition(TOPIC, 0)


class TellingLog:
    """Says what it is told to; `only_marks` makes the rest of the log hold no records.

    The record at an offset was written at `written_ms` of it, where that names it; `asked` are the offsets asked for.
    """

    def __init__(self) -> None:
        self.end: int | None = 0
        self.only_marks = False
        self.written_ms: dict[int, int] = {}
        self.asked: list[int] = []

    async def ends(self) -> Mapping[TopicPartition, int] | None:
        return None if self.end is None else {PARTITION: self.end}

    async def first_record(self, partition: TopicPartition, start: int, end: int) -> FirstRecord | None:
        self.asked.append(start)
        return None if self.only_marks else FirstRecord(start, self.written_ms.get(start))


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
            timeout_seconds=300,
            clock=lambda: self.now,
            now_ms=lambda: int(self.now * 1000),
        )

    async def after(self, seconds: float) -> None:
        self.now += seconds
        await self.watchdog.check()

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


async def test_lag_is_told_in_records_and_in_seconds() -> None:
    scene = Scene()
    scene.log.end = 10
    scene.progress.taken("text", TOPIC, 0, 9, timestamp_ms=990_000)
    await scene.after(0)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 10
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 10
    scene.progress.done("text", TOPIC, 0, 9)
    await scene.after(1)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 0
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 0
    assert scene.value("thalweg_store_position", store="lance", topic=TOPIC, partition="0") == 9


async def test_after_a_restart_the_oldest_record_is_as_old_as_it_says() -> None:
    scene = Scene()
    scene.progress.expect("text", TOPIC, 0, 3)
    scene.log.end = 10
    scene.log.written_ms = {4: 968_000, 8: 998_000}
    await scene.after(0)
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 32
    await scene.after(5)
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 37
    assert scene.log.asked == [4], "the record is not read again while it is the oldest"
    scene.progress.done("text", TOPIC, 0, 7)
    await scene.after(5)
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 12


async def test_of_two_partitions_the_one_that_is_further_behind_counts() -> None:
    scene = Scene()
    scene.progress.expect("text", TOPIC, 1, 10)
    scene.log.end = 10
    scene.log.written_ms = {0: 968_000}
    await scene.after(0)
    assert scene.value("thalweg_ingest_lag_seconds", stage="text") == 32


@pytest.mark.parametrize("written_ms", [0, 9_000_000_000_000], ids=["a clock years behind", "a clock years ahead"])
async def test_a_producers_clock_is_not_believed_against_what_was_seen(written_ms: int) -> None:
    scene = Scene()
    await scene.after(0)
    scene.log.end = 1
    scene.log.written_ms = {0: written_ms}
    await scene.after(2)
    assert 0 <= (scene.value("thalweg_ingest_lag_seconds", stage="text") or 0) <= 2
    await scene.after(30)
    assert 30 <= (scene.value("thalweg_ingest_lag_seconds", stage="text") or 0) <= 32


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
    scene.progress.unreadable[PARTITION] = UnreadableBatch(TOPIC, 0, 3, 5, "checksum")
    await scene.after(1_000)
    assert scene.value("thalweg_ingest_lag_records", topic=TOPIC, partition="0") == 10
    [note] = scene.health.notes()
    assert "offsets 3 to 5" in note
    assert f"thalweg dead-letters skip {TOPIC} 0:3" in note
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
