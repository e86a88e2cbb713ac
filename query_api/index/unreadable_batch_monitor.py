"""What keeps records from becoming searchable: for how long they may wait, and the unreadable batches in their way."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from aiokafka.errors import KafkaError

from kafka_client.async_clients import LocateBroker, unreadable_at
from kafka_client.topic_lag import Lag, LagMonitor
from kafka_client.topic_offsets import TopicPartition
from kafka_client.unreadable_batches import Skip, UnreadableBatch

BATCH_LOOK_SECONDS = 2.0
BATCH_ANSWER_SECONDS = 10.0


def too_late(lags: Iterable[Lag], limit_seconds: float) -> str | None:
    """A sentence, where a record has waited longer than the limit to become searchable."""
    late = [lag for lag in lags if lag.records and lag.seconds > limit_seconds]
    if not late:
        return None
    return (
        f"{sum(lag.records for lag in late):,} records are not searchable yet, the oldest for "
        f"{max(lag.seconds for lag in late):.0f} s, and THALWEG_SERVICE__MAX_LAG_SECONDS is {limit_seconds:g}: "
        "see whether the worker runs and what it waits for."
    )


class UnreadableBatchMonitor:
    """The batches that stand in the way: at the next offset of a reader, and anywhere in the settings, which the worker
    reads whole before it goes on."""

    def __init__(
        self, locate_broker: LocateBroker, lag_monitor: LagMonitor, settings: TopicPartition, skip: Skip
    ) -> None:
        self._locate_broker = locate_broker
        self._lag_monitor = lag_monitor
        self._settings = settings
        self._skip = skip
        self._before: set[tuple[str, int, int]] = set()
        self._in_settings: UnreadableBatch | None = None

    @property
    def found(self) -> list[UnreadableBatch]:
        return self._lag_monitor.unreadable + ([] if self._in_settings is None else [self._in_settings])

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(BATCH_LOOK_SECONDS)

    async def look(self) -> None:
        """Read the settings, where a reader has stood still since the last look."""
        connection, waiting = self._locate_broker(), self._lag_monitor.waiting()
        is_still, self._before = bool(waiting & self._before), waiting
        if connection is None or not is_still:
            self._in_settings = None
            return
        with suppress(KafkaError, OSError, TimeoutError):  # what is known stays
            self._in_settings = await unreadable_at(
                connection, self._settings, 0, seconds=BATCH_ANSWER_SECONDS, skip=self._skip, to_the_end=True
            )
