"""Orders to skip unreadable batches: records of the curation topic, read when a reader finds such a batch."""

import asyncio
import time

import structlog
from aiokafka.errors import KafkaError

from kafka_client.async_clients import LocateBroker, TailReader, open_reader
from kafka_client.topic_offsets import TopicPartition
from kafka_client.unreadable_batches import UnreadableBatch, skip_all
from schemas.dead_letters import Extent, decode_skip

log = structlog.get_logger(__name__)

REFRESH_SECONDS = 1.0
ANSWER_SECONDS = 20.0


class SkippedBatches:
    """Whether a batch is to be skipped, by the orders read so far. Where that is no, it reads on in the background, and
    the next call has the new answer. May be called from several event loops."""

    def __init__(self, locate_broker: LocateBroker, topic: str) -> None:
        self._locate_broker = locate_broker
        self._tail = TailReader(TopicPartition(topic, 0))
        self._ordered: set[Extent] = set()
        self._refreshed_at = -REFRESH_SECONDS
        self._refreshing: asyncio.Task[None] | None = None

    def __call__(self, batch: UnreadableBatch) -> bool:
        if self.includes(batch):
            return True
        is_idle = self._refreshing is None or self._refreshing.done()
        if is_idle and time.monotonic() > self._refreshed_at + REFRESH_SECONDS:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh_or_log())
        return False

    def includes(self, batch: UnreadableBatch) -> bool:
        """Whether an order names an offset of the batch, as far as the orders have been read."""
        return any(
            order[:2] == (batch.topic, batch.partition) and batch.first <= order.first <= batch.last
            for order in list(self._ordered)
        )

    async def refresh(self) -> None:
        """Read the orders up to now. Raises KafkaError, OSError or TimeoutError."""
        connection = self._locate_broker()
        if connection is None:
            return
        async with asyncio.timeout(ANSWER_SECONDS), open_reader(connection, group_id=None, skip=skip_all) as consumer:
            for record in await self._tail.read_on(consumer):
                self._take(record.key, record.value)

    async def _refresh_or_log(self) -> None:
        try:
            await self.refresh()
        except (KafkaError, OSError, TimeoutError) as error:
            log.warning("cannot read which batches to skip", error=f"{type(error).__name__}: {error}")
        finally:
            self._refreshed_at = time.monotonic()

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        extent = decode_skip(key)
        if extent is not None and value is None:
            self._ordered.discard(extent)
        elif extent is not None:
            self._ordered.add(extent)
