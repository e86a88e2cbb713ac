"""Appending to a topic on a condition: only where nobody has appended to the same keys meanwhile.

Kafka has no conditional write; a transaction makes one. Records appended in it have their offsets at once and are
visible only when it is committed. So they are appended, what others put between the last look and them is read, and by
that the transaction is committed or aborted. Of all who use one name for it, the last to begin ends the transactions of
the others, so that two never overlap, and what a killed process left open is aborted.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from aiokafka.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from kafka_client.async_clients import LocateBroker, connect, open_producer, read_range
from kafka_client.client_internals import is_in_transaction, see_end_of_transaction
from kafka_client.security import AccessDenied
from kafka_client.topic_offsets import LogUnavailable, TopicPartition
from query_api.ingest.producer import RECORD_OVERHEAD_BYTES, OutgoingRecord, RecordRefused
from schemas.settings import KafkaConnection

APPEND_SECONDS = 10.0
TRANSACTION_SECONDS = 20.0  # then Kafka aborts one whose owner is silent; readers wait behind it as long
STOP_SECONDS = 2.0
FETCH_BYTES = 1024 * 1024
FETCH_MS = 20

_TAKEN_OVER = (
    ProducerFenced,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
)
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


class Overtaken(Exception):
    """Somebody else appended to one of the keys first: nothing was appended."""


class TakenOver(Exception):
    """Another process began to append under the same name: nothing was appended."""


class ConditionalAppender:
    """Appends to one topic partition at a time. Not for concurrent use."""

    def __init__(self, locate_broker: LocateBroker, name: str, max_record_bytes: int) -> None:
        """`name` is the transactional id."""
        self._locate_broker = locate_broker
        self._name = name
        self._max_record_bytes = max_record_bytes
        self._producer: Any = None
        self._consumer: Any = None

    async def open(self) -> None:
        """Abort what was left open under this name, and take the name over. Raises KafkaError, OSError, TimeoutError or
        LogUnavailable; AccessDenied where the user may not."""
        if self._producer is not None:
            return
        connection = self._connection()
        async with asyncio.timeout(APPEND_SECONDS):
            try:
                self._producer = await open_producer(
                    connection,
                    client_id="thalweg-redrive",
                    transactional_id=self._name,
                    transaction_timeout_ms=int(TRANSACTION_SECONDS * 1000),
                    max_request_size=self._max_record_bytes + RECORD_OVERHEAD_BYTES,
                    request_timeout_ms=int(APPEND_SECONDS * 1000),
                )
            except TransactionalIdAuthorizationFailed as error:
                raise AccessDenied(
                    f"Kafka does not let this user write in transactions named {self._name}: allow WRITE and DESCRIBE "
                    "on that transactional id"
                ) from error
            if self._consumer is None:
                self._consumer = await connect(connection, FETCH_BYTES, FETCH_MS, committed=False)

    async def append(
        self, place: TopicPartition, records: Sequence[OutgoingRecord], *, looked_to: int, keyed: bool
    ) -> list[int]:
        """Append the records in this order, all or none; their offsets.

        With `keyed`, only if nobody else has put a record of one of their keys at `looked_to` or behind it, and before
        them. Raises Overtaken, TakenOver, RecordRefused, else as `open` does; after another failure than Overtaken it
        is not known whether they were appended.
        """
        await self.open()
        try:
            async with asyncio.timeout(APPEND_SECONDS):
                await self._producer.begin_transaction()
                offsets = await self._send(place, records)
                if keyed and await self._is_overtaken(place, looked_to, records, offsets):
                    await self._producer.abort_transaction()
                    raise Overtaken
                await self._producer.commit_transaction()
                return offsets
        except Overtaken:
            raise
        except BaseException as error:
            await self._let_go()
            if (explained := _explained(error)) is not None:
                raise explained from error
            raise

    async def close(self) -> None:
        await self._let_go()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    def _connection(self) -> KafkaConnection:
        connection = self._locate_broker()
        if connection is None:
            raise LogUnavailable("no Kafka is known")
        return connection

    async def _send(self, place: TopicPartition, records: Sequence[OutgoingRecord]) -> list[int]:
        sent: list[asyncio.Future[Any]] = []
        try:
            for record in records:
                sent.append(  # noqa: PERF401 -- what was sent is waited for also where the next fails
                    await self._producer.send(
                        place.topic, record.value, record.key, place.partition, headers=list(record.headers)
                    )
                )
        finally:
            confirmed = await asyncio.gather(*sent, return_exceptions=True)
        for each in confirmed:
            if isinstance(each, BaseException):
                raise each
        return [each.offset for each in confirmed if not isinstance(each, BaseException)]

    async def _is_overtaken(
        self, place: TopicPartition, looked_to: int, records: Sequence[OutgoingRecord], offsets: Sequence[int]
    ) -> bool:
        own = set(offsets)
        last_of_key = {record.key: offset for record, offset in zip(records, offsets, strict=True)}
        async for other in read_range(self._consumer, place, looked_to, max(offsets)):
            if other.offset not in own and other.offset < last_of_key.get(other.key, -1):
                return True
        return False

    async def _let_go(self) -> None:
        """Of the producer: after a failure its sequence numbers may not be the broker's any more."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        with contextlib.suppress(TimeoutError, KafkaError, OSError, AssertionError):
            async with asyncio.timeout(STOP_SECONDS):
                if is_in_transaction(producer):
                    await producer.abort_transaction()
        with contextlib.suppress(TimeoutError, KafkaError, OSError):
            async with asyncio.timeout(STOP_SECONDS):
                await producer.stop()
        with contextlib.suppress(KafkaError, OSError):
            await producer.client.close()  # `stop` leaves its connections open where it fails
        see_end_of_transaction(producer)


def _explained(error: BaseException) -> Exception | None:
    if isinstance(error, _TAKEN_OVER) or isinstance(error.__cause__, _TAKEN_OVER):
        return TakenOver("Another redrive began and took over.")
    if isinstance(error, _TOO_LARGE):
        return RecordRefused("The topic does not take a record of this size; raise its max.message.bytes.")
    if isinstance(error, TopicAuthorizationFailedError):
        return AccessDenied("Kafka does not let this user write to the topic: allow WRITE on it")
    return None
