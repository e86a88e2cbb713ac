"""Which log the stores are a view of: topics are known by the cluster's own ids, for a name can come again.

A topic that was deleted and made again, or that of another cluster, starts its offsets from 0. Positions of the old one
mean nothing there: records would be taken for known, and tokens for covered.
"""

from indexer.generations import (
    Generation,
    LogIdentity,
    read_manifest,
    rebuild_advice,
    record_log,
    republish_advice,
)
from schemas.errors import Failure
from schemas.kafka_connection import KafkaConnection
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames, graph_topic_spec, topic_specs
from streams.kafka.topics import TopicReport, ensure_topics, grow_topics, inspect_topics


class AnotherLog(Failure):
    """The stores were filled from topics that are not those of this cluster."""


async def topics_of_generation(
    connection: KafkaConnection, kafka: KafkaSettings, generation: Generation
) -> dict[str, TopicReport]:
    """All topics of the installation and of this generation, by name, made where they are missing.

    1. compare the topics with those the generation was filled from; 2. make what is missing; 3. give the topics that
    are written to by partition number as many partitions as the documents topic has; 4. record the topics' ids in the
    manifest of a new generation.
    Raises AnotherLog before anything is made, Unreachable, and Failure when the cluster refuses a topic.
    """
    names = TopicNames(kafka.topic_prefix)
    graph = names.graph(generation.name)
    recorded = read_manifest(generation).log
    if recorded is not None:  # 1
        found = await inspect_topics(connection, [*topic_specs(kafka)[:1], graph_topic_spec(kafka, generation.name)])
        _require_same(recorded, generation, *found)
    specs = topic_specs(kafka, generation.name)
    reports = {report.name: report for report in await ensure_topics(connection, specs)}  # 2
    documents = reports[names.documents]
    by_partition = [names.indexed, names.dead_letters, names.provenance]
    if await grow_topics(connection, by_partition, documents.partitions):  # 3
        reports = {report.name: report for report in await inspect_topics(connection, specs)}
    if recorded is None:  # 4
        record_log(generation, LogIdentity(documents.topic_id, reports[graph].topic_id))
    return reports


def _require_same(recorded: LogIdentity, generation: Generation, documents: TopicReport, graph: TopicReport) -> None:
    if _differ(recorded.documents, documents.topic_id):
        raise AnotherLog(
            f"The stores in {generation.data_dir} were filled from another log: from a documents topic with the id "
            f"{recorded.documents}, and {documents.name} here {_described(documents)}. If this is not the cluster that "
            "is meant, set THALWEG_KAFKA__BOOTSTRAP_SERVERS and THALWEG_KAFKA__TOPIC_PREFIX. "
            f"{republish_advice(generation.data_dir)}"
        )
    if _differ(recorded.graph, graph.topic_id):
        raise AnotherLog(
            f"The graph in {generation.data_dir} was filled from a topic with the id {recorded.graph}, and "
            f"{graph.name} here {_described(graph)}. {rebuild_advice(generation.data_dir)}"
        )


def _differ(recorded: str, found: str) -> bool:
    """Whether a topic is another one; brokers that know no ids cannot tell."""
    return bool(recorded) and recorded != found


def _described(report: TopicReport) -> str:
    return "is missing" if report.outcome == "missing" else f"has the id {report.topic_id or 'unknown'}"
