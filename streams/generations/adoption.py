"""The first start on a generation that was restored from a backup: it takes over the graph topic it was copied from.

A graph topic belongs to one generation, since its order is that of one worker. So a copy has its own, and begins it
with the contributions of the other. What they both index from then on, each contributes to its own.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog
from aiokafka import TopicPartition
from aiokafka.structs import RecordMetadata

from indexer.errors import IncompatibleGeneration
from indexer.generations import Generation, Origin, incompatible_advice
from indexer.graph.snapshots import GraphSnapshot, newest_intact_snapshot, read_graph
from indexer.graph.store import Change
from indexer.schema import StoredPosition
from kafka_client.async_clients import open_producer, open_reader
from schemas.ids import DocumentKey
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames
from streams.faust_app import group_name
from streams.kafka.partition_reader import PartitionReader
from streams.kafka.topics import topic_id
from streams.runtime.store_thread import StoreThread

SENT_TOGETHER = 500
REQUEST_OVERHEAD_BYTES = 64 * 1024


class Positions(Protocol):
    """The part of the text store that is needed."""

    def positions(self) -> dict[int, StoredPosition]: ...
    def store_positions(self, reached: Mapping[int, StoredPosition]) -> None: ...


class Graph(Protocol):
    """The part of the graph store that is needed."""

    def apply(self, changes: Sequence[Change], position: int) -> None: ...
    def snapshot(self) -> GraphSnapshot: ...


class Adoption:
    """Of the origin's graph topic by a restored generation. It may be interrupted anywhere, and is then done again:
    the later copy of a contribution counts."""

    def __init__(
        self,
        kafka: KafkaSettings,
        generation: Generation,
        origin: Origin,
        vectors: Positions,
        lance: StoreThread,
        graph: Graph,
        graph_thread: StoreThread,
    ) -> None:
        self._kafka = kafka
        self._names = TopicNames(kafka.topic_prefix)
        self._generation = generation
        self._origin = origin
        self._vectors = vectors
        self._lance = lance
        self._graph = graph
        self._graph_thread = graph_thread

    async def run(self) -> None:
        """1. copy the topic; 2. store where tables and graph stand on the copy; 3. let the consumer group begin there;
        4. forget the origin.

        Raises IncompatibleGeneration where the topic is gone, one of AWAY while the broker does not answer.
        """
        stored = await self._lance.run(self._vectors.positions)
        needed = max((position.graph_offset for position in stored.values()), default=-1)
        in_graph, in_text = await self._copy(self._origin.graph_position + 1 + needed)  # 1
        moved = {partition: position._replace(graph_offset=in_text) for partition, position in stored.items()}
        await self._lance.run(self._vectors.store_positions, moved)  # 2
        await self._graph_thread.run(self._graph.apply, [], in_graph)
        await self._graph_thread.run(self._graph.snapshot)
        begin = {
            TopicPartition(self._names.documents, partition): each.offset + 1 for partition, each in stored.items()
        }
        begin[TopicPartition(self._names.graph(self._generation.name), 0)] = in_graph + 1
        group = group_name(self._kafka.topic_prefix, self._generation.name)
        async with open_reader(self._kafka, group_id=group) as consumer:  # 3
            consumer.assign(list(begin))
            await consumer.commit(begin)
        self._generation.origin_path.unlink()  # 4

    async def _copy(self, text_offset: int) -> tuple[int, int]:
        """Copy all contributions in their order, and withdraw the documents that the graph snapshot holds and the topic
        no longer knows, since compaction has taken their tombstones.

        Returns the offsets in the copy of what the snapshot holds, and of what is up to `text_offset` in the origin;
        -1 for nothing.
        """
        source, target = self._names.graph(self._origin.generation), self._names.graph(self._generation.name)
        found = await topic_id(self._kafka, source)
        if not found or found != self._origin.graph_topic:
            raise IncompatibleGeneration(
                f"The topic {source}, from which the graph of this restored generation goes on, is "
                f"{'another one by now' if found else 'gone'}. {incompatible_advice()}"
            )
        places = [_Place(self._origin.graph_position), _Place(text_offset)]
        forgotten = await asyncio.to_thread(self._documents_of_snapshot)
        copied = 0
        largest = self._kafka.max_graph_record_bytes + REQUEST_OVERHEAD_BYTES
        producer = await open_producer(self._kafka, max_request_size=largest)
        try:
            sent: list[tuple[int, Awaitable[RecordMetadata]]] = []
            async for record in PartitionReader(self._kafka, source, 0).records():
                forgotten.discard(record.key or b"")
                sent.append((record.offset, await producer.send(target, record.value, record.key, 0)))
                copied += 1
                if len(sent) == SENT_TOGETHER:
                    await _confirm(sent, places)
            await _confirm(sent, places)
            for key in sorted(forgotten):
                await producer.send_and_wait(target, None, key, 0)
        finally:
            await producer.stop()
        structlog.get_logger("thalweg.worker").info(
            "took over the graph topic of the generation that was backed up",
            topic=source,
            contributions=copied,
            withdrawn=len(forgotten),
        )
        return places[0].copied, places[1].copied

    def _documents_of_snapshot(self) -> set[bytes]:
        """Their record keys."""
        snapshots = self._generation.snapshots_dir
        newest = newest_intact_snapshot(snapshots)
        if newest is None:
            return set()
        rows = read_graph(snapshots, newest).documents.select(["collection", "document_id"]).to_pylist()
        keys = (DocumentKey(row["collection"], row["document_id"]) for row in rows)
        return {str(key).encode("utf-8", "surrogatepass") for key in keys}


@dataclass
class _Place:
    """An offset of the origin's topic, and that of the last record up to there in the copy."""

    offset: int
    copied: int = -1


async def _confirm(sent: list[tuple[int, Awaitable[RecordMetadata]]], places: Sequence[_Place]) -> None:
    """Wait for the broker's confirmation of each record, and note where it is."""
    for offset, confirmation in sent:
        confirmed = await confirmation
        for place in places:
            if offset <= place.offset:
                place.copied = confirmed.offset
    sent.clear()
