"""What the worker sends, each with the broker's confirmation, for as long as it takes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError
from faust.exceptions import NotReady, ProducerSendError

from indexer.changes import Reached, encode_mark
from schemas.receipts import Receipt, encode_receipt
from schemas.topics import TopicNames
from streams.errors import BrokerRefused
from streams.kafka.records import DeadLetter, letter_headers, omitted_headers
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import Retrier
from streams.worker_metrics import WorkerMetrics

_FIRST_WAIT_SECONDS = 0.2
_AWAY = (KafkaError, ProducerSendError, NotReady, OSError)
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


IsNew = Callable[[DeadLetter], Awaitable[bool]]


class RecordTooLarge(Exception):
    """The broker, or the client, does not take a record of this size: no retry helps."""


@dataclass(frozen=True)
class Outgoing:
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None
    headers: list[tuple[str, bytes]] | None = None


@dataclass(eq=False)
class ConfirmedProducer:
    """Every method returns when the broker has confirmed all of it, and repeats what it did not confirm.

    A record may so be sent twice, never not at all. Only cancelling ends the waiting for a broker that is away. Dead
    letters are sent where `is_new` says so; all without it.
    """

    producer: Any  # Faust's: `send` queues, and its result is the broker's confirmation
    names: TopicNames
    generation: str
    metrics: WorkerMetrics
    progress: Progress
    _: KW_ONLY
    first_wait_seconds: float = _FIRST_WAIT_SECONDS
    is_new: IsNew | None = None

    def __post_init__(self) -> None:
        self._contributions = self.names.contributions(self.generation)
        self._retrier = Retrier("kafka", _AWAY, self.metrics, self.progress, first_wait_seconds=self.first_wait_seconds)

    async def send_commit(self, changes: Sequence[tuple[bytes, bytes]], reached: Reached) -> int:
        """Send (key, value) of what changes to the contributions topic, and the mark once all of it is confirmed; the
        offset of the mark. Raises BrokerRefused."""
        topic = self._contributions
        await self._send([Outgoing(topic, key, value, 0) for key, value in changes])
        [mark] = await self._send([Outgoing(topic, None, encode_mark(reached), 0)])
        return mark

    async def send_curation(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Send (key, value) to the curation topic. Raises BrokerRefused."""
        await self._send([Outgoing(self.names.curation, key, value, 0) for key, value in records])

    async def send_documents(self, records: Sequence[tuple[bytes, bytes | None, int]]) -> None:
        """Send (key, envelope or None, partition) to the documents topic. Raises BrokerRefused."""
        await self._send([Outgoing(self.names.documents, *record) for record in records])

    async def send_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Send receipts, each to the partition of its source. Raises BrokerRefused."""
        await self._send(
            [
                Outgoing(
                    self.names.indexed,
                    receipt.key.encode("utf-8", "replace"),
                    encode_receipt(receipt),
                    receipt.partition,
                )
                for receipt in receipts
            ]
        )

    async def send_to_dlq(self, letters: Sequence[DeadLetter]) -> None:
        """Send dead letters: key and bytes as they came, of our topics the partition too; empty where the topic does
        not take the size."""
        if self.is_new is not None:
            letters = [letter for letter in letters if await self.is_new(letter)]
        topic = self.names.dead_letters
        partitions = [each.partition if self.names.is_read(each.topic) else None for each in letters]
        whole = [
            Outgoing(topic, each.key, each.value, partition, letter_headers(each))
            for each, partition in zip(letters, partitions, strict=True)
        ]
        confirmed: dict[int, int] = {}
        try:
            await self._deliver(whole, confirmed)  # together: one by one, each waits for the broker
        except RecordTooLarge:
            for index in [index for index in range(len(whole)) if index not in confirmed]:
                letter = letters[index]
                try:
                    await self._deliver([whole[index]])
                except RecordTooLarge:
                    omitted = Outgoing(topic, letter.key, b"", partitions[index], omitted_headers(letter))
                    await self._deliver([omitted])
        for letter in letters:
            self.metrics.dead_letters.labels(letter.reason).inc()

    async def _send(self, outgoing: Sequence[Outgoing]) -> list[int]:
        try:
            return await self._deliver(outgoing)
        except RecordTooLarge as error:
            raise BrokerRefused(
                f"The topic {outgoing[0].topic} does not take a record of the size the settings allow; raise its "
                f"max.message.bytes. ({error})"
            ) from error

    async def _deliver(self, outgoing: Sequence[Outgoing], confirmed: dict[int, int] | None = None) -> list[int]:
        """The offset of each; `confirmed` gets them by index as they come, also when this ends in an error."""
        offsets = {} if confirmed is None else confirmed
        await self._retrier.retry_forever(lambda: self._send_missing(outgoing, offsets))
        return [offsets[index] for index in range(len(outgoing))]

    async def _send_missing(self, outgoing: Sequence[Outgoing], offsets: dict[int, int]) -> None:
        missing = [index for index in range(len(outgoing)) if index not in offsets]
        sent: list[tuple[int, Awaitable[Any]]] = []
        failure: BaseException | None = None
        for index in missing:
            record = outgoing[index]
            try:
                confirmation = await self.producer.send(
                    record.topic, record.key, record.value, record.partition, None, record.headers
                )
            except (KafkaError, ProducerSendError) as error:
                failure = error
                break
            sent.append((index, confirmation))
        confirmed = await asyncio.gather(*(confirmation for _, confirmation in sent), return_exceptions=True)
        for (index, _), result in zip(sent, confirmed, strict=True):
            if isinstance(result, BaseException):
                failure = result
            else:
                offsets[index] = result.offset
        if failure is not None:
            if isinstance(failure, _TOO_LARGE) or isinstance(failure.__cause__, _TOO_LARGE):
                raise RecordTooLarge(str(failure)) from failure
            raise failure
