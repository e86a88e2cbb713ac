"""Settings of collections and relink orders: the curation topic, reduced to the newest record of each key."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from indexer.chunking.splitter import ChunkingParameters
from indexer.linking import DEFAULT_RULES, LinkingRules
from schemas.curation import ChunkingEvent, LinkingEvent, RelinkEvent, decode_curation
from schemas.errors import MalformedEvent
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import DeadLetter, SourceRecord
from streams.runtime.retry import Retrier


class SettingsLog(Protocol):
    """The curation topic. Both may be called again after they failed."""

    async def new_records(self) -> Sequence[SourceRecord]:
        """The records appended since the last call that returned, up to what is there now; at first, all."""
        ...

    async def checked_offset(self) -> int:
        """The first offset whose record was not checked before, as last stored; 0 for none."""
        ...

    async def store_checked_offset(self, offset: int) -> None: ...


class CollectionSettings:
    """Chunking and linking of collections that have settings of their own, and relink orders."""

    def __init__(
        self,
        topic: str,
        settings_log: SettingsLog,
        producer: ConfirmedProducer,
        defaults: ChunkingParameters,
        retrier: Retrier,
    ) -> None:
        self._topic = topic
        self._settings_log = settings_log
        self._producer = producer
        self._defaults = defaults
        self._retrier = retrier
        self._chosen: dict[str, ChunkingParameters] = {}
        self._linking: dict[str, LinkingRules] = {}
        self._orders: dict[tuple[str, str], RelinkEvent] = {}
        self._log = structlog.get_logger("thalweg.worker")

    @property
    def known(self) -> Mapping[str, ChunkingParameters]:
        """As of the last call of `current`."""
        return dict(self._chosen)

    @property
    def orders(self) -> Sequence[RelinkEvent]:
        """Those that are not done, in the order of the log, as of the last call of `current`."""
        return list(self._orders.values())

    def linking_of(self, collection: str) -> LinkingRules:
        """As of the last call of `current`."""
        return self._linking.get(collection, DEFAULT_RULES)

    async def current(self) -> Mapping[str, ChunkingParameters]:
        """Read the topic to its end; waits for a broker that is away. Malformed records become dead letters and change
        nothing."""
        records = await self._retrier.retry_forever(self._settings_log.new_records)
        letters = []
        for record in records:
            try:
                self._take(record)
            except MalformedEvent as error:
                letters.append((record.offset, record.dead_letter(self._topic, "decode", error)))
        if letters:
            await self._send_to_dlq(letters)
        return self.known

    def _take(self, record: SourceRecord) -> None:
        event = decode_curation(record.key, record.value)
        if isinstance(event, RelinkEvent):
            self._take_order(event)
        elif isinstance(event, LinkingEvent):
            self._linking[event.collection] = DEFAULT_RULES.with_choice(event.choice) if event.choice else DEFAULT_RULES
            self._log.info("a collection's linking changed", position=str(record.position), reset=event.choice is None)
        elif isinstance(event, ChunkingEvent):
            self._take_chunking(event, record)

    def _take_order(self, event: RelinkEvent) -> None:
        """An order that was begun and not done starts again."""
        if event.state is None or event.state.state == "done":
            self._orders.pop((event.collection, event.id), None)
        else:
            self._orders[event.collection, event.id] = event

    def _take_chunking(self, event: ChunkingEvent, record: SourceRecord) -> None:
        try:
            chosen = self._defaults if event.choice is None else self._defaults.with_choice(event.choice)
        except ValueError as error:
            raise MalformedEvent("bad_setting", str(error)) from error
        self._chosen.pop(event.collection, None)
        if chosen != self._defaults:
            self._chosen[event.collection] = chosen
        self._log.info("a collection's chunking changed", position=str(record.position), reset=event.choice is None)

    async def _send_to_dlq(self, letters: Sequence[tuple[int, DeadLetter]]) -> None:
        """Once: every start reads the whole topic, and letters below the checked offset were sent before."""
        checked = await self._retrier.retry_forever(self._settings_log.checked_offset)
        fresh = [letter for offset, letter in letters if offset >= checked]
        await self._producer.send_to_dlq(fresh)
        if fresh:
            await self._retrier.retry_forever(lambda: self._settings_log.store_checked_offset(letters[-1][0] + 1))
