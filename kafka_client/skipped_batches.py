"""Which unreadable batches people decided to pass by: records of the curation topic, read when one is met."""

import asyncio
import time
from collections.abc import Callable

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from kafka_client.consumers import LogConsumer
from kafka_client.unreadable_batches import UnreadableBatch, skip_all
from schemas.dead_letters import Extent, decode_skip

log = structlog.get_logger(__name__)

AGAIN_SECONDS = 1.0
ANSWER_SECONDS = 20.0
_POLL_MS = 500


class SkippedBatches:
    """Asked about a batch, it answers by what it has read, and where that is no, reads on in the background: whoever
    asks again gets the new answer. May be asked from several event loops."""

    def __init__(self, locate_broker: Callable[[], str | None], topic: str) -> None:
        self._locate_broker = locate_broker
        self._place = TopicPartition(topic, 0)
        self._ordered: set[Extent] = set()
        self._next = 0
        self._looked_at = -AGAIN_SECONDS
        self._looking: asyncio.Task[None] | None = None

    def __call__(self, batch: UnreadableBatch) -> bool:
        if self.includes(batch):
            return True
        if (self._looking is None or self._looking.done()) and time.monotonic() > self._looked_at + AGAIN_SECONDS:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        return False

    def includes(self, batch: UnreadableBatch) -> bool:
        """Whether an order names an offset of the batch, as far as the orders have been read."""
        return any(
            order[:2] == (batch.topic, batch.partition) and batch.first <= order.first <= batch.last
            for order in list(self._ordered)
        )

    async def refresh(self) -> None:
        """Read what was ordered up to now. Raises KafkaError, OSError or TimeoutError."""
        servers = self._locate_broker()
        if servers is None:
            return
        consumer = LogConsumer(bootstrap_servers=servers, group_id=None, auto_offset_reset="earliest", skip=skip_all)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await consumer.start()
                end = (await consumer.end_offsets([self._place]))[self._place]
                consumer.assign([self._place])
                consumer.seek(self._place, self._next)
                while await consumer.position(self._place) < end:
                    for record in (await consumer.getmany(self._place, timeout_ms=_POLL_MS)).get(self._place, ()):
                        self._take(record.key, record.value)
                self._next = end
        finally:
            await consumer.stop()

    async def _look(self) -> None:
        try:
            await self.refresh()
        except (KafkaError, OSError, TimeoutError) as error:
            log.warning("cannot ask which batches to pass by", error=f"{type(error).__name__}: {error}")
        finally:
            self._looked_at = time.monotonic()

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        extent = decode_skip(key)
        if extent is not None and value is None:
            self._ordered.discard(extent)
        elif extent is not None:
            self._ordered.add(extent)
