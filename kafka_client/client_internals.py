"""What the client libraries keep to themselves and no public way leads to: each access to it is in this module alone.

Versions are pinned; a test for each function fails where a new one has renamed what it takes.
"""

import asyncio
import copy
from collections.abc import Collection, Mapping
from typing import Any

import structlog
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_UNCOMMITTED, Fetcher, FetchResult
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import NoError, NotCoordinatorForGroupError, for_code
from aiokafka.protocol.commit import OffsetFetchRequest

from kafka_client.unreadable_batches import ReadableBatches, Skip

log = structlog.get_logger(__name__)


async def fetch_all_metadata(consumer: Any) -> Any:
    """The cluster with its topics and their partitions. `topics()` of a consumer asks the same and keeps only the
    names; `partitions_for_topic` knows assigned topics only."""
    return await consumer._client.fetch_all_metadata()


async def end_offsets_uncommitted(consumer: Any, partitions: Collection[Any]) -> Mapping[Any, int]:
    """The offset after the last record, also of an open transaction: `end_offsets` asks by the consumer's own isolation
    level, in one way for all."""
    fetcher = copy.copy(consumer._fetcher)
    fetcher._isolation_level = READ_UNCOMMITTED
    found: Mapping[Any, int] = await fetcher.end_offsets(partitions, None)
    return found


def read_committed(consumer: Any) -> None:
    """Before it is started. Faust makes its consumers itself, without a setting for the isolation level."""
    consumer._isolation_level = "read_committed"


def positions(consumer: Any) -> dict[Any, int]:
    """Of the assigned partitions that have one; `position` of a consumer waits for it."""
    subscription = consumer._subscription.subscription
    if subscription is None or subscription.assignment is None:
        return {}
    states = {partition: subscription.assignment.state_value(partition) for partition in subscription.assignment.tps}
    return {partition: state.position for partition, state in states.items() if state.has_valid_position}


async def abort_connections(consumer: Any) -> None:
    """What is in flight is lost; `stop` ends connections in order only, and is to be called afterwards."""
    fetcher = consumer._fetcher
    if fetcher is not None:
        while not fetcher._fetch_task.done():  # it may take being cancelled for the end of a fetch
            fetcher._fetch_task.cancel()
            await asyncio.wait([fetcher._fetch_task], timeout=0.1)
        fetches = [*fetcher._pending_tasks]  # it would await them one by one: who closes would end as if cancelled
        fetcher._pending_tasks.clear()
        for fetch in fetches:
            fetch.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
        await fetcher.close()  # or it takes the end for a fault
    for connection in consumer._client._conns.values():
        if connection._writer is not None:
            connection._writer.transport.abort()


def was_connected(connection: Any) -> bool:
    """Also where it was not let in: `connected` is False then, and its socket is still to be closed."""
    return bool(connection._protocol is not None)


def make_closable(admin: Any) -> None:
    """Of kafka-python, where no broker answered when it was made: `close` does nothing then."""
    admin._closed = False


def consumer_of(thread: Any) -> Any:
    """Of a thread of Faust's that has started; it hands its consumer out only with the first records."""
    return thread._consumer


def take_acknowledged(consumer: Any, partition: Any) -> list[int]:
    """The offsets that Faust's agents have acknowledged since the last call; what becomes of them is fixed in Faust."""
    acknowledged = list(consumer._acked[partition])
    consumer._acked[partition].clear()
    consumer._acked_index[partition].clear()
    return acknowledged


def is_in_transaction(producer: Any) -> bool:
    """Whether a transaction was begun and has not ended: without one, aborting is refused."""
    return bool(producer._txn_manager.is_in_transaction())


def see_end_of_transaction(producer: Any) -> None:
    """Of a producer that was stopped: how a transaction ended is logged as an error that nobody saw otherwise."""
    ended = producer._txn_manager.wait_for_transaction_end()
    if ended is not None and ended.done() and not ended.cancelled():
        ended.exception()


def raise_group_errors() -> None:
    """Let consumers ask again for committed offsets where the coordinator is still loading, or has moved. To be called
    before the first consumer is made; may be called again.

    From version 2 of OffsetFetch on, such an error is given once for the whole group, and no partition is named.
    aiokafka (0.14) looks at the partitions only: to it none is committed, and it reads each from its first record
    again. (The same fault elsewhere: https://github.com/Parsely/pykafka/issues/958.) Version 1, with an error at each
    partition, is no way out: brokers of Kafka 3.9 and 4.0 leave it out (https://github.com/apache/kafka/pull/20050).
    """
    GroupCoordinator._send_req = _send_req


_send_request = GroupCoordinator._send_req


async def _send_req(coordinator: Any, request: Any) -> Any:
    response = await _send_request(coordinator, request)
    if isinstance(request, OffsetFetchRequest):
        error = for_code(getattr(response, "error_code", 0))
        if error is NotCoordinatorForGroupError:
            coordinator.coordinator_dead()
        if error is not NoError:
            raise error()
    return response


class GuardedFetcher(Fetcher):  # type: ignore[misc]  # aiokafka is not typed
    """A fetcher that returns whole batches only, and stops a partition where one cannot be read: no hook comes between
    the arrival of batches and their decoding."""

    skip: Skip

    @classmethod
    def guard(cls, consumer: Any, skip: Skip) -> None:
        """Let a consumer that was just started, and has fetched nothing yet, read in this way: aiokafka offers no way
        to choose the class."""
        consumer._fetcher.__class__ = cls
        consumer._fetcher.skip = skip

    async def _proc_fetch_request(self, assignment: Any, node_id: int, request: Any) -> bool:
        woke: bool = await super()._proc_fetch_request(assignment, node_id, request)
        for topic, partitions in request.topics:
            for number, _offset, _bytes in partitions:
                partition = TopicPartition(topic, number)
                result = self._records.get(partition)
                if type(result) is FetchResult and not isinstance(_batches(result), ReadableBatches):
                    self._guard(partition, result, assignment.state_value(partition))
        return woke

    def _guard(self, partition: TopicPartition, result: Any, state: Any) -> None:
        """Nobody has read from `result` yet: between its arrival and here nothing else runs."""
        records = result._partition_records
        batches = ReadableBatches(_batches(result), partition, records.next_fetch_offset, state.highwater)
        records._records = batches
        while not batches.has_next() and (found := batches.unreadable) is not None:
            if not self.skip(found) or found.last < records.next_fetch_offset:
                del self._records[partition]
                self._set_error(partition, found)
                return
            log.warning("an unreadable batch is skipped, as ordered", batch=str(found))
            records.next_fetch_offset = found.last + 1
            state.consumed_to(found.last + 1)
            batches.skip()


def _batches(result: Any) -> Any:
    return result._partition_records._records
