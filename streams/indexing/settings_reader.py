"""Settings of collections and orders: the curation topic, reduced to the newest record of each key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import NO_EXTRACTOR
from indexer.linking import DEFAULT_RULES, LinkingRules
from schemas.choices import ExtractorName
from schemas.curation import (
    ChunkingEvent,
    ExtractionEvent,
    LinkingEvent,
    decode_curation,
)
from schemas.errors import MalformedEvent, install_extra
from schemas.orders import OrderEvent
from streams.indexing.document_steps import Choices
from streams.kafka.partition_reader import SettingsTopic
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import DeadLetter, SourceRecord
from streams.runtime.retry import Retrier
from streams.worker_log import log

NOT_SET_UP: Mapping[ExtractorName, str] = {
    "language_model": "set THALWEG_LANGUAGE_MODEL__BASE_URL and THALWEG_LANGUAGE_MODEL__MODEL",
    "spacy": install_extra("spacy"),
}
"""What the worker lacks for an extractor that it does not have."""


@dataclass
class CollectionChoices:
    """What the records of the curation topic, taken in their order, leave of collections' chunking, linking and
    extractors, by their versions; `versions` are those of the extractors that are set up, besides the default ones.
    `changed` are collections whose documents may have been made by other choices than the present ones."""

    defaults: ChunkingParameters
    versions: Mapping[ExtractorName, str] = field(default_factory=dict)
    extractors: dict[str, str] = field(default_factory=dict)
    chunking: dict[str, ChunkingParameters] = field(default_factory=dict)
    linking: dict[str, LinkingRules] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)

    def take(self, event: ChunkingEvent | LinkingEvent | ExtractionEvent) -> None:
        """Raises MalformedEvent for sizes that do not fit together, and for an extractor that is not set up."""
        self.changed.add(event.collection)
        if isinstance(event, ExtractionEvent):
            self._take_extractor(event.collection, event.choice.extractor if event.choice else None)
            return
        if isinstance(event, LinkingEvent):
            self.linking[event.collection] = DEFAULT_RULES.with_choice(event.choice) if event.choice else DEFAULT_RULES
            return
        try:
            chosen = self.defaults if event.choice is None else self.defaults.with_choice(event.choice)
        except ValueError as error:
            raise MalformedEvent("bad_setting", str(error)) from error
        self.chunking.pop(event.collection, None)
        if chosen != self.defaults:
            self.chunking[event.collection] = chosen

    def _take_extractor(self, collection: str, extractor: ExtractorName | None) -> None:
        self.extractors.pop(collection, None)
        if extractor is None or extractor == "rules":
            return
        version = NO_EXTRACTOR if extractor == "none" else self.versions.get(extractor)
        if version is None:
            raise MalformedEvent(
                "bad_setting",
                f"The worker has no extractor {extractor}: {NOT_SET_UP[extractor]}, and start it again. Until then the "
                f"collection {collection!r} is extracted by the default.",
            )
        self.extractors[collection] = version

    @property
    def chosen(self) -> Choices:
        """What holds now."""
        return Choices(dict(self.chunking), dict(self.extractors))

    def linking_of(self, collection: str) -> LinkingRules:
        return self.linking.get(collection, DEFAULT_RULES)


@dataclass(eq=False)
class CollectionSettings:
    """Chunking, linking and extractors of collections that have settings of their own, and orders."""

    topic: str
    settings_log: SettingsTopic
    producer: ConfirmedProducer
    choices: CollectionChoices
    retrier: Retrier
    _orders: dict[bytes, OrderEvent] = field(default_factory=dict)

    @property
    def known(self) -> Choices:
        """As of the last call of `current`."""
        return self.choices.chosen

    @property
    def orders(self) -> Mapping[bytes, OrderEvent]:
        """Those that are not done, in the order of the log, by the keys of their records, as of the last call of
        `current`. One that was begun and not done starts again."""
        return dict(self._orders)

    def linking_of(self, collection: str) -> LinkingRules:
        """As of the last call of `current`."""
        return self.choices.linking_of(collection)

    async def current(self) -> Choices:
        """Read the topic to its end; waits for a broker that is away. Malformed records become dead letters and change
        nothing."""
        records = await self.retrier.retry_forever(self.settings_log.new_records)
        letters = []
        for record in records:
            try:
                self._take(record)
            except MalformedEvent as error:
                letters.append((record.offset, record.dead_letter(self.topic, "decode", error)))
        if letters:
            await self._send_to_dlq(letters)
        return self.known

    def _take(self, record: SourceRecord) -> None:
        event = decode_curation(record.key, record.value)
        key = record.key or b""
        if isinstance(event, OrderEvent):
            self._orders[key] = event
            if event.order is None or event.order.state == "done":
                del self._orders[key]
        elif isinstance(event, ChunkingEvent | LinkingEvent | ExtractionEvent):
            self.choices.take(event)
            what = {ChunkingEvent: "chunking", LinkingEvent: "linking", ExtractionEvent: "extractor"}[type(event)]
            log.info(f"a collection's {what} changed", position=str(record.position), reset=event.choice is None)

    async def _send_to_dlq(self, letters: Sequence[tuple[int, DeadLetter]]) -> None:
        """Once: every start reads the whole topic, and letters below the checked offset were sent before."""
        checked = await self.retrier.retry_forever(self.settings_log.checked_offset)
        fresh = [letter for offset, letter in letters if offset >= checked]
        await self.producer.send_to_dlq(fresh)
        if fresh:
            await self.retrier.retry_forever(lambda: self.settings_log.store_checked_offset(letters[-1][0] + 1))
