"""Writing to the log: records are published and confirmed by all replicas, or the caller gets an error."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import structlog
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from kafka_client.async_clients import LocateBroker, open_producer
from kafka_client.security import AccessDenied
from query_api.errors import AnotherLog
from schemas.ids import Position
from schemas.settings import KafkaConnection

log = structlog.get_logger(__name__)

RECORD_OVERHEAD_BYTES = 64 * 1024
STOP_SECONDS = 5.0
WRITE_SECONDS = 4.0  # that a write waits for Kafka before it is refused


class OutgoingRecord(NamedTuple):
    """`key` decides the partition by Kafka's own murmur2, unless one is given; a null `value` deletes.

    Only a dead letter may have no key.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None


class NotConfirmed(Exception):
    """Some of the records were not confirmed; those that were are in `confirmed` (index of the record → position)."""

    def __init__(self, message: str, confirmed: dict[int, Position] | None = None) -> None:
        super().__init__(message)
        self.confirmed = confirmed or {}


class BrokerUnavailable(NotConfirmed):
    """Kafka did not confirm in time. The rest may or may not be in the log, and may be sent again: applying a record
    twice changes nothing."""


class RecordRefused(NotConfirmed):
    """The broker will never take one of the records: it is larger than the topic allows."""


@dataclass(eq=False)
class LogWriter:
    """Publishes to Kafka with `acks=all`. Connects at the first use, and again wherever the broker has moved to.
    `compression` as Kafka names it: `gzip`. `other_log` is a sentence where the stores are of another log."""

    locate_broker: LocateBroker
    max_record_bytes: int
    timeout_seconds: float
    compression: str | None = None
    other_log: Callable[[], str | None] = lambda: None
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _producer: Any = None
    _connection: KafkaConnection | None = None

    async def publish(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Position]:
        """Append the records, in this order within each partition, and wait for the confirmation of all.

        Raises BrokerUnavailable after the time-out, RecordRefused for a record that the topic does not take, and
        AnotherLog before anything is sent.
        """
        if (problem := self.other_log()) is not None:
            raise AnotherLog(problem)
        deadline = asyncio.get_running_loop().time() + self.timeout_seconds
        sent: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.timeout_at(deadline):
                producer = await self._connected()
                for record in records:
                    sending = await producer.send(
                        topic, record.value, record.key, record.partition, headers=list(record.headers)
                    )
                    sent.append(sending)
        except (KafkaError, OSError) as error:
            raise _failure(error, sent) from error
        if sent:
            await asyncio.wait(sent, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
        failed = next((future for future in sent if not future.done() or future.exception() is not None), None)
        if failed is not None:
            raise _failure(failed.exception() if failed.done() else TimeoutError(), sent)
        return [_position(future) for future in sent]

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await _stop(producer)

    async def _connected(self) -> Any:
        async with self._connecting:
            connection = self.locate_broker()
            if connection is None:
                raise BrokerUnavailable("no Kafka is known on this data directory")
            if self._producer is not None and connection != self._connection:
                await self.close()
            if self._producer is None:
                self._producer = await open_producer(
                    connection,
                    client_id="thalweg-query",
                    max_request_size=self.max_record_bytes + RECORD_OVERHEAD_BYTES,
                    request_timeout_ms=int(self.timeout_seconds * 1000),
                    compression_type=self.compression,
                )
                self._connection = connection
            return self._producer


def _failure(error: BaseException | None, sent: Sequence["asyncio.Future[Any]"]) -> Exception:
    confirmed = {}
    for index, future in enumerate(sent):
        if not future.done():
            future.add_done_callback(_log_late_failure)
        elif future.exception() is None:
            confirmed[index] = _position(future)
    if isinstance(error, MessageSizeTooLargeError):
        return RecordRefused("The topic does not take a record of this size; raise its max.message.bytes.", confirmed)
    if isinstance(error, TimeoutError):
        reason = "it did not answer in time"
    else:
        reason = str(error) if isinstance(error, AccessDenied) else f"{type(error).__name__}: {error}"
    return BrokerUnavailable(f"Kafka did not confirm the write ({reason})", confirmed)


def _log_late_failure(future: "asyncio.Future[Any]") -> None:
    """The caller has its error already; a failure that comes later is only logged."""
    if not future.cancelled() and future.exception() is not None:
        log.debug("late failure of a write", error=str(future.exception()))


def _position(future: "asyncio.Future[Any]") -> Position:
    metadata = future.result()
    return Position(metadata.partition, metadata.offset)


async def _stop(producer: Any) -> None:
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await producer.stop()
    except (TimeoutError, KafkaError, OSError) as error:
        log.warning("producer did not stop cleanly", error=str(error) or type(error).__name__)
