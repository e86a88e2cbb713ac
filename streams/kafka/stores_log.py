"""Whether topics are those that the stores of a data directory were filled from: looked at before anything is written
on a cluster, which may be that of another installation."""

import asyncio
from pathlib import Path

from indexer.errors import DamagedStore, OtherFormat
from indexer.generation_folders import (
    Generation,
    LogIdentity,
    current_generation,
    read_manifest,
    record_log,
    republish_advice,
)
from kafka_client.log_identity import difference
from schemas.errors import Failure
from schemas.settings import KafkaConnection, KafkaSettings
from schemas.topics import TopicNames, TopicSpec, contributions_spec, topic_specs
from streams.kafka.topics import TopicReport, ensure_topics, grow_topics, inspect_topics
from streams.worker_log import log


class AnotherLog(Failure):
    """The stores were filled from topics that are not those of this cluster."""


async def own_documents_topic(connection: KafkaConnection, kafka: KafkaSettings, data_dir: Path) -> TopicReport:
    """The documents topic, seen to be the one that the stores in the directory were filled from.

    Nothing is refused where that is not known: without stores, and while they cannot be read, when the log takes what
    is published all the same. Raises AnotherLog, Unreachable, and Failure when the cluster does not describe the topic.
    """
    documents = TopicSpec(TopicNames(kafka.topic_prefix).documents, kafka.partitions, {})
    (found,) = await inspect_topics(connection, [documents])
    try:
        generation = current_generation(data_dir)
        recorded = "" if generation is None else read_manifest(generation).documents_topic_id
    except (DamagedStore, OtherFormat, PermissionError):
        return found
    if differs := difference(found.name, recorded, found.topic_id):
        raise AnotherLog(
            f"The stores in {data_dir} were filled from another log: at {connection} {differs}. Nothing was sent. "
            "Start what belongs to this data directory with 'thalweg up', name another directory with --data-dir, or "
            "the cluster that is meant with THALWEG_KAFKA__BOOTSTRAP_SERVERS and THALWEG_KAFKA__TOPIC_PREFIX."
        )
    return found


def require_same_log(generation: Generation, documents: TopicReport) -> None:
    """Raises AnotherLog where the documents topic is not the one that the generation was filled from."""
    if differs := difference(documents.name, read_manifest(generation).documents_topic_id, documents.topic_id):
        raise AnotherLog(
            f"The stores in {generation.data_dir} were filled from another log: {differs}. If this is not the cluster "
            "that is meant, set THALWEG_KAFKA__BOOTSTRAP_SERVERS and THALWEG_KAFKA__TOPIC_PREFIX. "
            f"{republish_advice(generation.data_dir)}"
        )


async def topics_of_generation(
    connection: KafkaConnection, kafka: KafkaSettings, generation: Generation
) -> dict[str, TopicReport]:
    """All topics of the installation and of this generation, by name, made where they are missing.

    1. compare the documents topic with the one that the generation was filled from; where the contributions topic is
    not its own, continue with an empty one; 2. make what is missing; 3. give the topics that are written to by number
    of partition as many partitions as the documents topic has; 4. record the topics' ids in the manifest of a
    generation that is new, or has a new contributions topic.
    Raises AnotherLog before anything is made, Unreachable, and Failure when the cluster refuses a topic.
    """
    names = TopicNames(kafka.topic_prefix)
    contributions = names.contributions(generation.name)
    recorded = read_manifest(generation).log
    if recorded is not None:  # 1
        found = await inspect_topics(connection, [*topic_specs(kafka)[:1], contributions_spec(kafka, generation.name)])
        require_same_log(generation, found[0])
        if difference(contributions, recorded.graph, found[1].topic_id):
            log.warning("the contributions topic is another one; the graph continues with it", topic=contributions)
            from indexer.write.another_topic import begin_another_topic  # its stores take seconds to import

            await asyncio.to_thread(begin_another_topic, generation)
            recorded = None
    specs = topic_specs(kafka, generation.name)
    reports = {report.name: report for report in await ensure_topics(connection, specs)}  # 2
    documents = reports[names.documents]
    by_partition = [names.indexed, names.dead_letters, names.provenance]
    if await grow_topics(connection, by_partition, documents.partitions):  # 3
        reports = {report.name: report for report in await inspect_topics(connection, specs)}
    if recorded is None or not recorded.graph:  # 4
        record_log(generation, LogIdentity(documents.topic_id, reports[contributions].topic_id))
    return reports
