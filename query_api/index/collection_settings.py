"""What a collection has chosen for itself, read from the log: the newest record of its key on the curation topic."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from aiokafka import TopicPartition

from kafka_client.unreadable_batches import Skip, skip_none
from query_api.index.follower import POLL_MS, LocateBroker, connect, spans_of
from schemas.curation import CurationEvent, decode_curation, is_setting
from schemas.errors import MalformedEvent
from schemas.ids import Position

ANSWER_SECONDS = 20.0
FETCH_BYTES = 1024 * 1024


class Stated(NamedTuple):
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

    async def newest(self, key: bytes) -> Stated:
        """What the topic states now. A record that the worker refuses as malformed is passed over, as there."""
        return (await self._newest(key.__eq__)).get(key, Stated())

    async def settings(self) -> list[Stated]:
        """What every collection has chosen, or taken back, for each of its settings."""
        return list((await self._newest(is_setting)).values())

    async def _newest(self, wanted: Callable[[bytes], bool]) -> dict[bytes, Stated]:
        found: dict[bytes, Stated] = {}
        async with asyncio.timeout(ANSWER_SECONDS):
            consumer = await connect(self._locate_broker(), FETCH_BYTES, skip=self._skip)
            try:
                span = (await spans_of(consumer, self._topic))[0]
                place = TopicPartition(self._topic, 0)
                consumer.assign([place])
                consumer.seek(place, span.beginning)
                while await consumer.position(place) < span.end:
                    batches = await consumer.getmany(place, timeout_ms=POLL_MS)
                    for record in batches.get(place, ()):
                        if record.key is not None and wanted(record.key):
                            before = found.get(record.key, Stated())
                            found[record.key] = _newer(before, record.key, record.value, Position(0, record.offset))
            finally:
                await consumer.stop()
        return found


def _newer(before: Stated, key: bytes, value: bytes | None, position: Position) -> Stated:
    try:
        return Stated(decode_curation(key, value), position)
    except MalformedEvent:
        return before
