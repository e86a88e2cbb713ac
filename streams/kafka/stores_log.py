"""Whether a documents topic is the one that the stores of a data directory were filled from: looked at before anything
is written on a cluster, which may be that of another installation."""

from pathlib import Path

from indexer.errors import DamagedStore, OtherFormat
from indexer.generation_folders import (
    Generation,
    LogIdentity,
    current_generation,
    read_manifest,
    republish_advice,
)
from schemas.errors import Failure
from schemas.settings import KafkaConnection, KafkaSettings
from schemas.topics import TopicNames, TopicSpec
from streams.kafka.topics import TopicReport, inspect_topics


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
        recorded = None if generation is None else read_manifest(generation).log
    except (DamagedStore, OtherFormat, PermissionError):
        return found
    if recorded is not None and differ(recorded.documents, found.topic_id):
        raise AnotherLog(
            f"The stores in {data_dir} were filled from another log: from a documents topic with the id "
            f"{recorded.documents}, and {found.name} at {connection} {_described(found)}. Nothing was sent there. "
            "Start what belongs to this data directory with 'thalweg up', name another directory with --data-dir, or "
            "the cluster that is meant with THALWEG_KAFKA__BOOTSTRAP_SERVERS and THALWEG_KAFKA__TOPIC_PREFIX."
        )
    return found


def require_same_log(recorded: LogIdentity, generation: Generation, documents: TopicReport) -> None:
    """Raises AnotherLog where the documents topic is not the one that the generation was filled from."""
    if differ(recorded.documents, documents.topic_id):
        raise AnotherLog(
            f"The stores in {generation.data_dir} were filled from another log: from a documents topic with the id "
            f"{recorded.documents}, and {documents.name} here {_described(documents)}. If this is not the cluster that "
            "is meant, set THALWEG_KAFKA__BOOTSTRAP_SERVERS and THALWEG_KAFKA__TOPIC_PREFIX. "
            f"{republish_advice(generation.data_dir)}"
        )


def differ(recorded: str, found: str) -> bool:
    """Whether a topic is another one; brokers that know no ids cannot tell."""
    return bool(recorded) and recorded != found


def _described(report: TopicReport) -> str:
    return "is missing" if report.outcome == "missing" else f"has the id {report.topic_id or 'unknown'}"
