"""The worker's lag and the query service's, of the same real log: both from the records' own time, just started."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer

from kafka_client.topic_lag import Lag, LagMonitor
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.topics import ensure_topics
from streams.runtime.partition_progress import Progress
from streams.runtime.watchdog import Watchdog
from streams.runtime.worker_health import Health
from streams.worker_metrics import WorkerMetrics
from tests.support.kafka import plaintext
from tests.support.waiting import eventually

TOLERANCE_SECONDS = 5.0


@asynccontextmanager
async def topic_of_two(kafka: str, prefix: str) -> AsyncIterator[tuple[str, AIOKafkaProducer]]:
    await ensure_topics(plaintext(kafka), topic_specs(KafkaSettings(topic_prefix=prefix, partitions=2), "g0001"))
    producer = AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=prefix)
    await producer.start()
    try:
        yield TopicNames(prefix).documents, producer
    finally:
        await producer.stop()


async def of_the_service(kafka: str, topic: str, applied: Mapping[int, int]) -> dict[int, Lag]:
    watch = LagMonitor(lambda: plaintext(kafka), lambda: {topic: applied})
    running = asyncio.create_task(watch.run())
    try:
        await eventually(lambda: watch.reachable and watch.partition_count(topic) == 2)
        return watch.lag(topic, applied)
    finally:
        running.cancel()
        await asyncio.wait({running})


async def of_the_worker(kafka: str, topic: str, applied: Mapping[int, int]) -> tuple[float, float]:
    """Records and seconds."""
    metrics, progress = WorkerMetrics(), Progress()
    for partition, offset in applied.items():
        progress.expect("text", topic, partition, offset)
    log = LagMonitor(lambda: plaintext(kafka), progress.reached)
    try:
        await Watchdog(log, progress, metrics, Health([]), timeout_seconds=300).check()
    finally:
        await log.close()
    samples = [
        metrics.registry.get_sample_value("thalweg_ingest_lag_records", {"topic": topic, "partition": str(number)})
        for number in applied
    ]
    seconds = metrics.registry.get_sample_value("thalweg_ingest_lag_seconds", {"stage": "text"})
    assert seconds is not None
    return sum(each or 0 for each in samples), seconds


async def test_lag_after_a_start_is_the_age_of_the_oldest_record(kafka: str, topic_prefix: str) -> None:
    async with topic_of_two(kafka, topic_prefix) as (topic, producer):
        began = time.time()
        async with producer.transaction():
            for partition, seconds in ((0, 600), (0, 32), (0, 1), (1, 10)):
                at = int((began - seconds) * 1000)
                await producer.send_and_wait(topic, b"{}", b"c/a", partition=partition, timestamp_ms=at)
        for applied, records, age in (({0: -1, 1: -1}, 6, 600), ({0: 0, 1: -1}, 5, 32), ({0: 1, 1: 0}, 2, 1)):
            served = await of_the_service(kafka, topic, applied)
            worked = await of_the_worker(kafka, topic, applied)
            elapsed = time.time() - began
            for seconds in (max(lag.seconds for lag in served.values()), worked[1]):
                assert age <= seconds <= age + elapsed + TOLERANCE_SECONDS
            assert (sum(lag.records for lag in served.values()), worked[0]) == (records, records)


async def test_end_mark_of_a_transaction_is_not_counted_as_lag(kafka: str, topic_prefix: str) -> None:
    async with topic_of_two(kafka, topic_prefix) as (topic, producer):
        async with producer.transaction():
            await producer.send_and_wait(topic, b"{}", b"c/a", partition=0)
        assert await of_the_service(kafka, topic, {0: 0, 1: -1}) == {0: Lag(0, 0.0), 1: Lag(0, 0.0)}
        assert await of_the_worker(kafka, topic, {0: 0, 1: -1}) == (0, 0)
