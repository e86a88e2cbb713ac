"""What Faust reads the log through: committed records only; a partition that meets an unreadable batch stops alone; and
where nothing that counts is between two offsets, the agents get a gap, so that stored positions pass it.
"""

import time
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, cast

import faust
from aiokafka.structs import ConsumerRecord
from faust.auth import Credentials, OAuthCredentials, SASLCredentials, SSLCredentials
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

from kafka_client.client_internals import GuardedFetcher, consumer_of, positions, read_committed, take_acknowledged
from kafka_client.security import aiokafka_options
from kafka_client.topic_offsets import TopicPartition
from kafka_client.unreadable_batches import Skip, UnreadableBatch
from schemas.settings import KafkaConnection
from streams.kafka.records import GAP_HEADERS
from streams.worker_log import log

RETRY_SECONDS = 2.0


class LogTransport(Transport):
    """`skip` says which unreadable batches to skip."""

    Consumer: ClassVar[Any]

    def __init__(self, app: faust.App, skip: Skip) -> None:
        super().__init__(app.conf.broker_consumer, app)
        self.skip = skip


class _ConsumerThread(AIOKafkaConsumerThread):
    """Runs in a thread of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._skip = cast("LogTransport", self.transport).skip
        self._delivered: dict[TopicPartition, int] = {}  # the offset after what the agents got, gaps included
        self._standing: dict[TopicPartition, tuple[UnreadableBatch, float]] = {}  # and when to try again

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        read_committed(consumer)
        return consumer

    async def on_start(self) -> None:
        await super().on_start()
        GuardedFetcher.guard(consumer_of(self), self._skip)

    async def _fetch_records(
        self, consumer: Any, active_partitions: Any, timeout: float | None = None, max_records: int | None = None
    ) -> Any:
        if not self.consumer.flow_active:
            return {}
        before = positions(consumer)
        self._retry(consumer, before)
        try:
            records = await super()._fetch_records(consumer, active_partitions, timeout, max_records)
        except UnreadableBatch as found:
            self._stop_at(consumer, found)
            return {}
        return self._with_gaps(before, positions(consumer), records)

    def _with_gaps(
        self, before: Mapping[Any, int], after: Mapping[Any, int], records: Mapping[Any, Collection[Any]]
    ) -> Mapping[Any, Collection[Any]]:
        """The records, and after those of a partition a gap, where its position went further than they reach."""
        whole = dict(records)
        for partition, position in after.items():
            reached = self._delivered.get(partition, before.get(partition, position))
            if before.get(partition, position) < reached:  # set back meanwhile
                reached = before[partition]
            for record in records.get(partition, ()):
                reached = record.offset + 1
            if reached < position:
                whole[partition] = [*records.get(partition, ()), _gap(partition, position - 1)]
            self._delivered[partition] = position
        self._delivered = {partition: self._delivered[partition] for partition in after}
        return whole

    def _stop_at(self, consumer: Any, found: UnreadableBatch) -> None:
        partition = TopicPartition(found.topic, found.partition)
        consumer.pause(partition)
        if partition not in self._standing:
            log.error("a batch cannot be read; its partition waits", batch=str(found))
        self._standing[partition] = found, time.monotonic() + RETRY_SECONDS

    def _retry(self, consumer: Any, at: Mapping[Any, int]) -> None:
        """Retry stopped partitions; forget those that got past, or were assigned to another worker."""
        now = time.monotonic()
        for partition, (found, retry_at) in list(self._standing.items()):
            if partition in at and at[partition] <= found.last:
                if now > retry_at:
                    consumer.resume(partition)
            else:
                del self._standing[partition]


class _Consumer(Consumer):
    def _new_consumer_thread(self) -> Any:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def _new_offset(self, tp: Any) -> int | None:
        """The agents acknowledge the records of a partition in their order, so the last one is its progress. (Faust
        looks for offsets that are missing, and waits without end for those that the log does not have:
        https://github.com/faust-streaming/faust/issues/378.)"""
        acknowledged = take_acknowledged(self, tp)
        return max(acknowledged) + 1 if acknowledged else None

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Nothing to keep: see `_new_offset`."""


LogTransport.Consumer = _Consumer


def credentials(connection: KafkaConnection) -> Credentials | None:
    """What Faust makes its clients with beside addresses. Raises WrongCertificate."""
    options = aiokafka_options(connection)
    context = options["ssl_context"]
    if connection.sasl_mechanism == "OAUTHBEARER":
        return OAuthCredentials(oauth_cb=options["sasl_oauth_token_provider"], ssl_context=context)
    if connection.uses_sasl:
        return SASLCredentials(
            username=options["sasl_plain_username"],
            password=options["sasl_plain_password"],
            mechanism=connection.sasl_mechanism,
            ssl_context=context,
        )
    return None if context is None else SSLCredentials(context)


def _gap(partition: Any, last: int) -> ConsumerRecord:
    """Stands for the offsets up to `last`, which hold no record that counts."""
    return ConsumerRecord(
        partition.topic,
        partition.partition,
        last,
        time.time_ns() // 1_000_000,
        0,
        None,
        None,
        None,
        -1,
        -1,
        GAP_HEADERS,
    )
