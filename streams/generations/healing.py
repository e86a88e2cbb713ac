"""Healing: tables that are damaged on disk are set aside, and built again from the log as the next generation.

The damage is noted in the generation's folder: from then on its worker stands by, and the next one is built beside it,
while searches go on with what is in memory. Damage of the graph needs none of this: the worker
takes it from a snapshot, or makes it again from the log, when it starts.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import structlog
from kafka.errors import KafkaError

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation, new_generation_name, read_manifest, republish_advice
from indexer.integrity.noted_damage import Damaged, read_damage, write_damage
from schemas.curation import encode_choice
from schemas.errors import Failure
from schemas.generations import GenerationOrder, generation_key
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.order_log import send_order
from streams.kafka.topics import inspect_topics
from streams.runtime.partition_progress import TopicPartition
from streams.runtime.watchdog import KafkaLog

REASON = "repair"
RETRY_SECONDS = 5.0


def require_undamaged(generation: Generation) -> None:
    """Raises DamagedStore where damage was noted: nothing is written there any more."""
    if (noted := read_damage(generation)) is not None:
        raise DamagedStore(noted.problem)


async def keep_healing(generation: Generation, order: Callable[[Damaged], Awaitable[None]]) -> None:
    """Order the generation that takes its place, and another one where that is damaged itself. Runs until cancelled.

    `order` is tried again while Kafka does not answer. Raises UnsafeToHeal where the log cannot replace the stores;
    that is noted, too.
    """
    log = structlog.get_logger("thalweg.worker")
    while (noted := read_damage(generation)) is not None:
        lost = Generation(generation.data_dir, noted.successor)
        if noted.ordered and read_damage(lost) is not None:
            successor = new_generation_name(generation.data_dir)
            write_damage(generation, msgspec.structs.replace(noted, successor=successor, ordered=False))
            log.error("the generation that was to take over is damaged, too", generation=lost.name)
        elif not noted.ordered:
            try:
                await order(noted)
            except UnsafeToHeal as error:
                write_damage(generation, msgspec.structs.replace(noted, refused=str(error)))
                raise
            except (KafkaError, Failure, OSError, TimeoutError) as error:
                log.warning("the next generation cannot be ordered just now", error=str(error)[:200])
                await asyncio.sleep(RETRY_SECONDS)
                continue
            write_damage(generation, msgspec.structs.replace(noted, ordered=True, refused=""))
            log.error("the stores are damaged and made again", generation=noted.successor, problem=noted.problem)
        else:
            await asyncio.sleep(RETRY_SECONDS)


class UnsafeToHeal(Failure):
    """The log does not hold all that the stores do."""


async def order_successor(generation: Generation, kafka: KafkaSettings, noted: Damaged) -> None:
    """Raises UnsafeToHeal; KafkaError, Failure or TimeoutError while Kafka does not answer."""
    await _require_whole_log(generation, kafka)
    order = GenerationOrder(wanted="live", base=generation.name, reason=REASON, force=True)
    topic = TopicNames(kafka.topic_prefix).curation
    await asyncio.to_thread(send_order, kafka, topic, generation_key(noted.successor), encode_choice(order))


async def _require_whole_log(generation: Generation, kafka: KafkaSettings) -> None:
    """Raises UnsafeToHeal, and Failure while Kafka does not answer."""
    (documents,) = await inspect_topics(kafka, topic_specs(kafka)[:1])
    try:
        recorded = read_manifest(generation).log
    except DamagedStore:
        recorded = None
    if documents.outcome == "missing" or (recorded is not None and recorded.documents != documents.topic_id):
        raise UnsafeToHeal(
            f"They are not made again by themselves: {documents.name} is not the topic that they were filled from. "
            f"{republish_advice(generation.data_dir)}"
        )
    places = [TopicPartition(documents.name, partition) for partition in range(documents.partitions)]
    kafka_log = KafkaLog(kafka, places)
    try:
        beginnings = await kafka_log.beginnings()
    finally:
        await kafka_log.close()
    if beginnings is None:
        raise Failure(f"Kafka at {kafka} does not answer.")
    if any(beginnings.values()):
        raise UnsafeToHeal(
            f"They are not made again by themselves: {documents.name} no longer begins with its first record, so "
            "documents may be missing in what it makes. 'thalweg rebuild' makes them all the same; 'thalweg export' "
            "first saves what can still be read."
        )
