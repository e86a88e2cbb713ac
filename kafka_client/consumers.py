"""The one way to make a consumer: committed records, whole batches, no offsets committed by itself."""

import asyncio
import copy
from collections.abc import Collection, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import READ_UNCOMMITTED

from kafka_client.unreadable_batches import GuardedFetcher, Skip, UnreadableBatch, skip_none

READ_COMMITTED = "read_committed"
_POLL_MS = 500


class LogConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka is not typed
    """Records of open and of aborted transactions are not handed out, and `end_offsets` is where the first open
    transaction of a partition begins, or its end.

    `getmany` raises UnreadableBatch where a batch cannot be read that `skip` does not pass by: what stands before it
    was handed out, other partitions lose nothing, and the next call meets it again.
    """

    def __init__(self, *topics: str, skip: Skip = skip_none, **settings: Any) -> None:
        """`settings` are those of aiokafka."""
        super().__init__(*topics, isolation_level=READ_COMMITTED, enable_auto_commit=False, **settings)
        self._skip = skip

    async def start(self) -> None:
        await super().start()
        GuardedFetcher.guard(self, self._skip)

    async def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The offset behind the last record, be its transaction still open."""
        fetcher = copy.copy(self._fetcher)
        fetcher._isolation_level = READ_UNCOMMITTED  # noqa: SLF001 -- aiokafka asks in one way for all
        found: Mapping[TopicPartition, int] = await fetcher.end_offsets(partitions, None)
        return found


async def unreadable_at(
    bootstrap_servers: str,
    place: TopicPartition,
    offset: int,
    *,
    seconds: float,
    skip: Skip = skip_none,
    to_the_end: bool = False,
) -> UnreadableBatch | None:
    """The unreadable batch that a reader meets next from this offset on, or None. It looks up to the first record, or
    past all of them `to_the_end`.

    Raises KafkaError, OSError or TimeoutError.
    """
    consumer = LogConsumer(bootstrap_servers=bootstrap_servers, group_id=None, auto_offset_reset="earliest", skip=skip)
    try:
        async with asyncio.timeout(seconds):
            await consumer.start()
            end = (await consumer.end_offsets([place]))[place]
            consumer.assign([place])
            consumer.seek(place, offset)
            while await consumer.position(place) < end:
                records = await consumer.getmany(place, timeout_ms=_POLL_MS, max_records=None if to_the_end else 1)
                if records and not to_the_end:
                    break
    except UnreadableBatch as found:
        return found
    finally:
        await consumer.stop()
    return None
