"""The order to skip a batch that no client can read."""

from kafka_client.async_clients import LocateBroker, connected, unreadable_at
from kafka_client.skipped_batches import SkippedBatches
from kafka_client.topic_offsets import LogUnavailable, TopicPartition, spans_of
from query_api.ingest.producer import LogWriter, OutgoingRecord
from schemas.dead_letters import Extent, SkippedBatch, encode_skip, skip_key, skipped_batch_headers
from schemas.topics import TopicNames

SKIP_SECONDS = 10.0
SPAN_BYTES = 1024 * 1024


class NothingToSkip(Exception):
    """There is no unreadable batch at that offset; the message says what is."""


async def skip_batch(
    topics: TopicNames, place: TopicPartition, offset: int, locate_broker: LocateBroker, writer: LogWriter
) -> SkippedBatch:
    """Order all readers to go on behind the unreadable batch that holds the offset. May be repeated: one letter, one
    order.

    Raises NothingToSkip; LogUnavailable, KafkaError, OSError or TimeoutError where the log cannot be read, and
    BrokerUnavailable where it did not confirm.
    """
    servers = locate_broker()
    if servers is None:
        raise LogUnavailable("no Kafka is known")
    async with connected(servers, SPAN_BYTES) as consumer:
        partitions = len(await spans_of(consumer, place.topic))
    if place.partition >= partitions:
        raise NothingToSkip(f"{place.topic} has the partitions 0 to {partitions - 1}.")
    found = await unreadable_at(servers, place, offset, seconds=SKIP_SECONDS)
    if found is None or not found.first <= offset <= found.last:
        raise NothingToSkip(f"{place.topic} partition {place.partition} holds no unreadable batch at offset {offset}.")
    ordered = SkippedBatches(locate_broker, topics.curation)
    await ordered.refresh()
    if not ordered.includes(found):
        # without key and bytes: nobody can read them (aiokafka sends no record that has neither key nor value)
        headers = skipped_batch_headers(found.topic, found.partition, found.first, found.last, found.fault)
        await writer.publish(topics.dead_letters, [OutgoingRecord(None, b"", headers)])
        extent = Extent(found.topic, found.partition, found.first, found.last)
        await writer.publish(topics.curation, [OutgoingRecord(skip_key(extent), encode_skip(extent, found.fault))])
    return SkippedBatch(
        topic=found.topic, partition=found.partition, first=found.first, last=found.last, fault=found.fault
    )
