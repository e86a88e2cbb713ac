"""Collections' own settings: the newest record of each key on the curation topic, read on demand."""

import asyncio
from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

from aiokafka import TopicPartition

from kafka_client.async_clients import read_range
from kafka_client.unreadable_batches import Skip, skip_none
from query_api.index.follower import LocateBroker, connected, spans_of
from schemas.curation import (
    CurationEvent,
    decode_curation,
    is_generation,
    is_setting,
)
from schemas.errors import MalformedEvent
from schemas.generations import GenerationEvent
from schemas.ids import Position
from schemas.orders import REPLAY, OrderEvent

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

    async def replays(self) -> list[OrderEvent]:
        """How far each replay is, the one that was told of last at the end."""
        return [
            event for event in await self._in_order(lambda key: REPLAY.encode() in key) if isinstance(event, OrderEvent)
        ]

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
