"""The log as verification reads it, without a group: the documents topic and the dead letters, to the end they have."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from indexer.chunking.splitter import ChunkingParameters
from indexer.generation_folders import Generation, republish_advice
from indexer.read.lance_reader import LanceSnapshot
from kafka_client.async_clients import open_reader, read_range
from kafka_client.skipped_batches import SkippedBatches
from kafka_client.topic_offsets import Span, TopicPartition, spans_at
from kafka_client.unreadable_batches import UnreadableBatch, skip_all
from schemas.choices import ExtractorName
from schemas.curation import ChunkingEvent, ExtractionEvent, LinkingEvent, decode_curation
from schemas.dead_letters import CONNECT_PREFIX
from schemas.errors import MalformedEvent
from schemas.ids import Position
from schemas.progress_bars import Bar
from schemas.settings import KafkaConnection, KafkaSettings, LimitSettings
from schemas.topics import TopicNames, contributions_spec, topic_specs
from streams.indexing.settings_reader import CollectionChoices
from streams.kafka.group_offsets import LogState, set_back
from streams.kafka.partition_reader import PartitionReader
from streams.kafka.records import SourceRecord
from streams.kafka.stores_log import require_same_log
from streams.kafka.topics import TopicReport, inspect_topics
from streams.verification.ledger import Ledger, LedgerReport, Letters

Take = Callable[[SourceRecord], None]
EVER = 2**62


@dataclass(frozen=True)
class InstallationLog:
    """The topics of one installation on one cluster.

    Methods raise KafkaError, OSError or TimeoutError while the broker is away, and Failure where it is another log.
    """

    connection: KafkaConnection
    kafka: KafkaSettings
    limits: LimitSettings

    async def choices(self, defaults: ChunkingParameters, versions: Mapping[ExtractorName, str]) -> CollectionChoices:
        """What collections have chosen by now; `versions` as in CollectionChoices."""
        choices = CollectionChoices(defaults, versions)
        curation = PartitionReader(self.connection, TopicNames(self.kafka.topic_prefix).curation, 0, skip_all)
        async for record in curation.records():
            with suppress(MalformedEvent):  # the worker makes it a dead letter
                event = decode_curation(record.key, record.value)
                if isinstance(event, ChunkingEvent | LinkingEvent | ExtractionEvent):
                    choices.take(event)
        return choices

    async def ledger(
        self,
        generation: Generation,
        snapshot: LanceSnapshot,
        offsets: Bar,
        take: Take = lambda _record: None,
    ) -> LedgerReport:
        """Hold the generation against the log; `snapshot` was made before, so what it has read is there.

        `offsets` shows how many there are and were read, and `take` gets each record.

        1. see that it is the log that the generation was filled from; 2. read the dead letters; 3. read the documents.
        """
        names = TopicNames(self.kafka.topic_prefix)
        documents, *_, letters = topic_specs(self.kafka)
        found = await inspect_topics(
            self.connection, [documents, contributions_spec(self.kafka, generation.name), letters]
        )
        require_same_log(generation, found[0])  # 1
        reached = {partition: stored.offset for partition, stored in snapshot.positions.items()}
        skipped = SkippedBatches(lambda: self.connection, names.curation)
        await skipped.refresh()
        async with open_reader(self.connection, group_id=None, skip=skipped.includes) as consumer:
            spans = await spans_at(consumer, _partitions(found[0]))
            _require_stores_within(spans, reached, generation)
            offsets.set(0, sum(span.end - span.beginning for span in spans.values()))
            letters_found = await self._letters(names, found[2])  # 2
            ledger = Ledger(snapshot.known_documents(), reached, letters_found, self.limits)
            for place, (beginning, end) in spans.items():  # 3
                read_to = beginning
                try:
                    async for message in read_range(consumer, place, beginning, end):
                        record = SourceRecord.from_kafka(message)
                        ledger.add(record)
                        take(record)
                        offsets.advance(record.offset + 1 - read_to)
                        read_to = record.offset + 1
                except UnreadableBatch as error:
                    ledger.add_unreadable(place.partition, error.first, str(error))
                offsets.advance(end - read_to)
        return ledger.report()

    async def _letters(self, names: TopicNames, topic: TopicReport) -> Letters:
        """A letter stands in the partition of its record, and is younger: so those of records that are younger than the
        first one there have not been removed."""
        positions: set[Position] = set()
        since_ms: dict[int, int] = {}
        async with open_reader(self.connection, group_id=None, skip=skip_all) as consumer:
            for place, (beginning, end) in (await spans_at(consumer, _partitions(topic))).items():
                if beginning:
                    since_ms[place.partition] = EVER
                async for message in read_range(consumer, place, beginning, end):
                    since_ms[place.partition] = min(message.timestamp, since_ms.get(place.partition, 0))
                    if (position := _source(message.headers, names.documents)) is not None:
                        positions.add(position)
        return Letters(positions, since_ms)


def _partitions(topic: TopicReport) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for number in range(topic.partitions)]


def _require_stores_within(
    spans: Mapping[TopicPartition, Span], reached: Mapping[int, int], generation: Generation
) -> None:
    """Raises StoresAheadOfLog."""
    log = {place: LogState(span.end, None) for place, span in spans.items()}
    set_back({place: reached.get(place.partition, -1) for place in log}, log, republish_advice(generation.data_dir))


def _source(headers: list[tuple[str, bytes]] | None, topic: str) -> Position | None:
    """The record of the topic that a dead letter was; None for one of another topic, or a foreign record."""
    fields = {name: (value or b"").decode("utf-8", "replace") for name, value in headers or ()}
    try:
        if fields[f"{CONNECT_PREFIX}topic"] == topic:
            return Position(int(fields[f"{CONNECT_PREFIX}partition"]), int(fields[f"{CONNECT_PREFIX}offset"]))
    except (KeyError, ValueError):
        pass
    return None
