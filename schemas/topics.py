"""The topics: their names, how each is partitioned, and how long Kafka keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.settings import MIB, KafkaSettings

DAY_MS = 24 * 60 * 60 * 1000
CONTRIBUTIONS_DAYS = 7  # at most: readers need what follows the newest snapshot of the graph
CONTRIBUTIONS_SEGMENT_BYTES = 32 * MIB
DELETE_RETENTION = "delete.retention.ms"  # Kafka's setting for how long a compacted topic keeps tombstones


@dataclass(frozen=True)
class TopicSpec:
    """A topic as it should be: `config` holds Kafka's own topic settings by their Kafka names."""

    name: str
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class TopicNames:
    """Every topic's full name under one prefix."""

    prefix: str

    @property
    def documents(self) -> str:
        return f"{self.prefix}documents.v1"

    @property
    def curation(self) -> str:
        return f"{self.prefix}curation.v1"

    @property
    def saved(self) -> str:
        """What callers of the service keep: conversations, for one."""
        return f"{self.prefix}saved.v1"

    @property
    def indexed(self) -> str:
        return f"{self.prefix}indexed.v1"

    @property
    def provenance(self) -> str:
        return f"{self.prefix}provenance.v1"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}dead-letters.v1"

    def is_read(self, topic: str) -> bool:
        """Whether the worker's agents take records from it; its dead letters keep their partitions."""
        return topic in (self.documents, self.curation, self.provenance) or self.is_contributions(topic)

    def contributions(self, generation: str) -> str:
        return f"{self.prefix}contributions.{generation}.v1"

    def is_contributions(self, topic: str) -> bool:
        """Whether this is the contributions topic of some generation."""
        return topic.startswith(f"{self.prefix}contributions.") and topic.endswith(".v1")


def topic_specs(kafka: KafkaSettings, generation: str | None = None) -> list[TopicSpec]:
    """All topics of an installation, as `thalweg topics --create` makes them; contributions are of a generation."""
    names = TopicNames(kafka.topic_prefix)
    compact = _compacted(kafka, kafka.max_record_bytes)
    contributions = [] if generation is None else [contributions_spec(kafka, generation)]

    return [
        TopicSpec(names.documents, kafka.partitions, compact),
        TopicSpec(names.curation, 1, compact),
        TopicSpec(names.saved, 1, compact),
        *contributions,
        TopicSpec(names.indexed, kafka.partitions, _kept(kafka, 7)),
        TopicSpec(names.provenance, kafka.partitions, _kept(kafka, kafka.provenance_days)),
        TopicSpec(names.dead_letters, kafka.partitions, _kept(kafka, 30)),
    ]


def contributions_spec(kafka: KafkaSettings, generation: str) -> TopicSpec:
    """The topic of what one generation's worker commits: in one partition, so that all has one order."""
    name = TopicNames(kafka.topic_prefix).contributions(generation)
    return TopicSpec(name, 1, _kept(kafka, CONTRIBUTIONS_DAYS) | {"segment.bytes": str(CONTRIBUTIONS_SEGMENT_BYTES)})


def _kept(kafka: KafkaSettings, days: int) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(days * DAY_MS),
        "max.message.bytes": str(kafka.max_record_bytes),
    }


def _compacted(kafka: KafkaSettings, largest_record_bytes: int) -> dict[str, str]:
    """The settings of a topic that keeps the newest record of each key, and tombstones for a while."""
    return {
        "cleanup.policy": "compact",
        "max.message.bytes": str(largest_record_bytes),
        DELETE_RETENTION: str(kafka.tombstone_days * DAY_MS),
    }
