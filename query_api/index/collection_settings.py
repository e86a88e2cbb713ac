"""Collections' own settings: the newest record of each key on the curation topic, read on demand or followed."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from aiokafka import TopicPartition

from kafka_client.async_clients import read_range
from kafka_client.unreadable_batches import Skip, skip_none
from query_api.index.follower import FollowedRecord, LocateBroker, Span, TopicFollower, connected, spans_of
from schemas.curation import (
    CurationEvent,
    LinkingChoice,
    LinkingEvent,
    decode_curation,
    is_generation,
    is_replay,
    is_setting,
)
from schemas.errors import MalformedEvent
from schemas.generations import GenerationEvent
from schemas.ids import Position
from schemas.repairs import RepairEvent
from schemas.replays import ReplayEvent

ANSWER_SECONDS = 20.0
FETCH_BYTES = 1024 * 1024


class NewestRecord(NamedTuple):
    """What the newest record of a key says, and where it stands; None and None where there is none."""

    event: CurationEvent | None = None
    position: Position | None = None


class SettingsReader:
    """Reads the topic, which is compacted, from its beginning at every call, with a consumer of its own.

    Raises KafkaError, OSError, TimeoutError or LogUnavailable when it cannot be read.
    """

    def __init__(self, locate_broker: LocateBroker, topic: str, skip: Skip = skip_none) -> None:
        self._locate_broker = locate_broker
        self._skip = skip
        self._topic = topic

    async def newest(self, key: bytes) -> NewestRecord:
        """What the topic states now. A record that the worker refuses as malformed is skipped, as there."""
        return (await self._newest(key.__eq__)).get(key, NewestRecord())

    async def settings(self) -> list[NewestRecord]:
        """What every collection has chosen, or taken back, for each of its settings."""
        return list((await self._newest(is_setting)).values())

    async def generation_orders(self) -> list[GenerationEvent]:
        """The newest order about each generation, in the order of the log."""
        return [event for event in await self._in_order(is_generation) if isinstance(event, GenerationEvent)]

    async def replays(self) -> list[ReplayEvent]:
        """How far each replay is, the one that was told of last at the end."""
        return [event for event in await self._in_order(is_replay) if isinstance(event, ReplayEvent)]

    async def _in_order(self, wanted: Callable[[bytes], bool]) -> list[CurationEvent | None]:
        """The newest record of each key, in the order of the log."""
        found = (await self._newest(wanted)).values()
        placed = ((each.position.offset, each.event) for each in found if each.position is not None)
        return [event for _, event in sorted(placed, key=itemgetter(0))]

    async def _newest(self, wanted: Callable[[bytes], bool]) -> dict[bytes, NewestRecord]:
        found: dict[bytes, NewestRecord] = {}
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            connected(self._locate_broker(), FETCH_BYTES, skip=self._skip) as consumer,
        ):
            span = (await spans_of(consumer, self._topic))[0]
            async for record in read_range(consumer, TopicPartition(self._topic, 0), span.beginning, span.end):
                if record.key is not None and wanted(record.key):
                    before = found.get(record.key, NewestRecord())
                    found[record.key] = _newer(before, record.key, record.value, Position(0, record.offset))
        return found


def _newer(before: NewestRecord, key: bytes, value: bytes | None, position: Position) -> NewestRecord:
    try:
        return NewestRecord(decode_curation(key, value), position)
    except MalformedEvent:
        return before


class CurationFollower:
    """Follows the topic, so that searches need not ask it.

    `by_collection` is how the newest record of each collection has it linked, as far as it was read: empty until the
    log is reached, kept while it is away. `changed` is called when it is another, and `repaired` with the name of a
    generation that was repaired since the topic was first reached.
    """

    def __init__(
        self,
        topic: str,
        locate_broker: LocateBroker,
        changed: Callable[[], None],
        repaired: Callable[[str], None],
        skip: Skip,
    ) -> None:
        self.by_collection: Mapping[str, LinkingChoice] = {}
        self._changed = changed
        self._repaired = repaired
        self._first_end: int | None = None
        self._follower = TopicFollower(
            topic, locate_broker, self._begin, self._take, record_bytes=FETCH_BYTES, skip=skip
        )

    async def run(self) -> None:
        await self._follower.run()

    def _begin(self, spans: Mapping[int, Span]) -> Mapping[int, int]:
        if self._first_end is None:
            self._first_end = spans[0].end
        return {partition: span.beginning for partition, span in spans.items()}

    async def _take(self, records: Sequence[FollowedRecord]) -> None:
        """What the worker refuses as malformed is skipped, as there."""
        choices = dict(self.by_collection)
        for record in records:
            try:
                event = decode_curation(record.key, record.value)
            except MalformedEvent:
                continue
            if (rewritten := _rewritten(event)) is not None and record.offset >= (self._first_end or 0):
                self._repaired(rewritten)
            elif isinstance(event, LinkingEvent):
                choices.pop(event.collection, None)
                if event.choice is not None:
                    choices[event.collection] = event.choice
        if choices != self.by_collection:
            self.by_collection = choices
            self._changed()


def _rewritten(event: CurationEvent | None) -> str | None:
    """The generation of which rows were written again."""
    if isinstance(event, RepairEvent) and event.repair is not None and event.repair.state == "done":
        return event.repair.generation
    if isinstance(event, ReplayEvent) and event.replay is not None and event.replay.state == "done":
        return event.replay.generation if event.replay.changed and not event.replay.dry_run else None
    return None
