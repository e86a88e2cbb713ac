"""Healing: tables that are damaged on disk are set aside, and built again from the log as the next generation.

The damage is noted in the generation's folder: from then on its worker stands by, and the next one is built beside it,
while searches go on with what is in memory. Damage of the graph needs none of this: the worker
takes it from a snapshot or its topic when it starts.
"""

import asyncio

import msgspec
import structlog
from kafka.errors import KafkaError

from indexer.errors import HEALING, DamagedStore
from indexer.generations import Generation, new_generation_name, read_manifest, replace_file, republish_advice
from schemas.curation import encode_choice
from schemas.errors import Failure
from schemas.generations import GenerationOrder, generation_key
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.curation import send_order
from streams.kafka.topics import inspect_topics
from streams.runtime.progress import TopicPartition
from streams.runtime.watchdog import KafkaLog

REASON = "repair"
RETRY_SECONDS = 5.0


class Damaged(msgspec.Struct, frozen=True):
    """What is damaged, for a person, and the generation that takes its place; `ordered` once that is in the log."""

    problem: str
    successor: str
    ordered: bool = False

    def sentence(self) -> str:
        return (
            f"{self.problem} The stores are made again from the log by themselves, as generation {self.successor}, and "
            "replaced when that is complete; searches go on with what was read before, and what is published waits in "
            f"the log. 'thalweg generations show {self.successor}' tells how far it is."
        )


def read_damage(generation: Generation) -> Damaged | None:
    """The damage noted of a generation. A note that cannot be read is none: the damage is found again."""
    try:
        return msgspec.json.decode(generation.damage_path.read_bytes(), type=Damaged)
    except (OSError, msgspec.DecodeError):
        return None


def note_damage(generation: Generation, problem: str) -> Damaged:
    """What was noted first stays. Raises OSError."""
    problem = problem.replace(HEALING, "").strip()
    noted = read_damage(generation) or Damaged(problem, new_generation_name(generation.data_dir))
    replace_file(generation.damage_path, msgspec.json.encode(noted))
    return noted


def require_undamaged(generation: Generation) -> None:
    """Raises DamagedStore where damage was noted: nothing is written there any more."""
    if (noted := read_damage(generation)) is not None:
        raise DamagedStore(noted.problem)


async def order_successor(generation: Generation, kafka: KafkaSettings) -> None:
    """Order the next generation, as soon as Kafka answers. Raises Failure where the log cannot replace the stores."""
    log = structlog.get_logger("thalweg.worker")
    while (noted := read_damage(generation)) is not None and not noted.ordered:
        try:
            await _require_whole_log(generation, kafka)
            await asyncio.to_thread(_send, generation, noted, kafka)
        except UnsafeToHeal:
            raise
        except (KafkaError, Failure, OSError, TimeoutError) as error:
            log.warning("the next generation cannot be ordered just now", error=str(error)[:200])
            await asyncio.sleep(RETRY_SECONDS)
            continue
        replace_file(generation.damage_path, msgspec.json.encode(msgspec.structs.replace(noted, ordered=True)))
        log.error("the stores are damaged and made again", generation=noted.successor, problem=noted.problem)


class UnsafeToHeal(Failure):
    """The log does not hold all that the stores do."""


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


def _send(generation: Generation, noted: Damaged, kafka: KafkaSettings) -> None:
    order = GenerationOrder(wanted="live", base=generation.name, reason=REASON, force=True)
    topic = TopicNames(kafka.topic_prefix).curation
    send_order(kafka, topic, generation_key(noted.successor), encode_choice(order))
