"""The topics that a setting maps to documents: each record becomes one of the documents topic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client.async_clients import open_reader
from kafka_client.unreadable_batches import Skip
from schemas.errors import MalformedEvent
from schemas.settings import KafkaConnection
from schemas.topic_mappings import TopicMapping
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import DeadLetter, SourceRecord
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import Retrier
from streams.worker_log import log

BATCH_RECORDS = 500
POLL_MS = 1_000
METADATA_MS = 30_000  # after which a topic that has come is read
WAITING_FOR = "mapped topics"


@dataclass(frozen=True)
class MappedTopics:
    """Read by a consumer group of their own: a rebuild does not send them again. A record may be sent twice, never not
    at all; the last of a row is sent last."""

    connection: KafkaConnection
    group: str
    instance: str
    mappings: Mapping[str, TopicMapping]
    partition_of: Callable[[bytes], int]
    producer: ConfirmedProducer
    retrier: Retrier
    progress: Progress
    skip: Skip

    async def run(self) -> None:
        """Until it is cancelled."""
        await self.retrier.retry_forever(self._follow)

    async def _follow(self) -> None:
        async with open_reader(
            self.connection,
            group_id=self.group,
            group_instance_id=self.instance,
            metadata_max_age_ms=METADATA_MS,
            skip=self.skip,
        ) as consumer:
            consumer.subscribe(list(self.mappings))
            missing = set(self.mappings)
            while True:
                if missing:
                    missing = self.mappings.keys() - await consumer.topics()
                    self._report(missing)
                found = await consumer.getmany(timeout_ms=POLL_MS, max_records=BATCH_RECORDS)
                for place, records in found.items():
                    await self.publish(place.topic, [SourceRecord.from_kafka(each) for each in records])
                if found:
                    await consumer.commit()

    def _report(self, missing: set[str]) -> None:
        if missing:
            self.progress.waiting_for[WAITING_FOR] = f"There is no topic {', '.join(sorted(missing))} yet."
        else:
            self.progress.waiting_for.pop(WAITING_FOR, None)

    async def publish(self, topic: str, records: Sequence[SourceRecord]) -> None:
        """What becomes of records of one partition; those that are no documents are dead letters."""
        documents: list[tuple[bytes, bytes | None, int]] = []
        letters: list[DeadLetter] = []
        for record in records:
            try:
                document = self.mappings[topic].document(record.key, record.value)
            except MalformedEvent as error:
                letters.append(record.dead_letter(topic, "decode", error))
                continue
            if document is not None:
                key = document[0].encoded()
                documents.append((key, document[1], self.partition_of(key)))
        await self.producer.send_to_dlq(letters)
        await self.producer.send_documents(documents)
        log.info("mapped to documents", topic=topic, documents=len(documents), refused=len(letters))
