"""Healing: tables that are damaged on disk are set aside, and built again from the log as the next generation.

The damage is noted in the generation's folder: from then on its worker waits, and the next one is built beside it,
while searches continue with what is in memory. Damage of the graph needs none of this: the worker
takes it from a snapshot, or makes it again from the log, when it starts.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from kafka.errors import KafkaError

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation, new_generation_name, read_manifest, republish_advice
from indexer.integrity.noted_damage import Damaged, read_damage, write_damage
from kafka_client.async_clients import open_reader
from kafka_client.log_identity import difference
from kafka_client.topic_offsets import spans_of
from schemas.curation import encode_choice
from schemas.errors import Failure
from schemas.generations import GenerationOrder, generation_key
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.order_log import send_order
from streams.kafka.partition_reader import AWAY
from streams.kafka.topics import inspect_topics
from streams.worker_log import log

REASON = "repair"
RETRY_SECONDS = 5.0
ANSWER_SECONDS = 10.0


def require_undamaged(generation: Generation) -> None:
    """Raises DamagedStore where damage was noted: nothing is written there any more."""
    if (noted := read_damage(generation)) is not None:
        raise DamagedStore(noted.problem)


async def keep_healing(generation: Generation, order: Callable[[Damaged], Awaitable[None]]) -> None:
    """Order the generation that takes its place, and another one where that is damaged itself. Runs until cancelled.

    `order` is tried again while Kafka does not answer. Raises UnsafeToHeal where the log cannot replace the stores;
    that is noted, too.
    """
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
        recorded = read_manifest(generation).documents_topic_id
    except DamagedStore:
        recorded = ""
    if documents.outcome == "missing" or difference(documents.name, recorded, documents.topic_id):
        raise UnsafeToHeal(
            f"They are not made again automatically: {documents.name} is not the topic that they were filled from. "
            f"{republish_advice(generation.data_dir)}"
        )
    try:
        async with asyncio.timeout(ANSWER_SECONDS), open_reader(kafka, group_id=None) as consumer:
            spans = await spans_of(consumer, documents.name)
    except AWAY as error:
        raise Failure(f"Kafka at {kafka} does not answer.") from error
    if any(span.beginning for span in spans.values()):
        raise UnsafeToHeal(
            f"They are not made again automatically: {documents.name} no longer begins with its first record, so "
            "documents may be missing in what it makes. 'thalweg rebuild' makes them nevertheless; 'thalweg export' "
            "first saves what can still be read."
        )
