"""Batches that nobody can read, found by looking where a reader stands still: the log itself says so, worker or not."""

import asyncio
from collections.abc import Callable, Mapping

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from kafka_client.async_clients import unreadable_at
from kafka_client.unreadable_batches import Skip, UnreadableBatch
from query_api.index.follower import LocateBroker

log = structlog.get_logger(__name__)

LOOK_SECONDS = 2.0
ANSWER_SECONDS = 10.0


class UnreadableWatch:
    """`found` are the batches that stand in the way now, in the order of the log."""

    def __init__(
        self,
        locate_broker: LocateBroker,
        waiting: Callable[[], Mapping[TopicPartition, int]],
        settings: TopicPartition,
        skip: Skip,
    ) -> None:
        """`waiting` tells the partitions with lag, and the offset that each reader wants next; `settings` is the place
        that the worker reads whole before it goes on anywhere."""
        self.found: list[UnreadableBatch] = []
        self._locate_broker = locate_broker
        self._waiting = waiting
        self._settings = settings
        self._skip = skip
        self._before: Mapping[TopicPartition, int] = {}

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Read from every offset at which a reader has stood since the last look."""
        waiting, servers = self._waiting(), self._locate_broker()
        still = {place: offset for place, offset in waiting.items() if self._before.get(place) == offset}
        self._before = waiting
        if servers is None:
            return
        try:
            found = [
                await unreadable_at(servers, place, offset, seconds=ANSWER_SECONDS, skip=self._skip)
                for place, offset in sorted(still.items())
            ]
            if still:
                found.append(
                    await unreadable_at(
                        servers, self._settings, 0, seconds=ANSWER_SECONDS, skip=self._skip, to_the_end=True
                    )
                )
        except (KafkaError, OSError, TimeoutError) as error:
            log.debug("cannot look for unreadable batches", error=f"{type(error).__name__}: {error}")
            return
        self.found = [batch for batch in found if batch is not None]
