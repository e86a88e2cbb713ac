"""Orders to link a collection again, carried out between commits."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
import structlog
from numpy.typing import NDArray

from indexer.linking import LinkingRules, chunk_edges
from indexer.schema import DocumentRow
from schemas.curation import RelinkEvent, Relinking, encode_choice, relink_key
from schemas.graph_delta import Contribution, decode_contribution, encode_contribution
from schemas.ids import DocumentKey
from streams.indexing.collection_settings import CollectionSettings
from streams.kafka.partition_reader import PartitionReader
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import SourceRecord
from streams.runtime.retry import Retrier
from streams.runtime.store_thread import StoreThread

BATCH_DOCUMENTS = 64
POLL_SECONDS = 1.0

ChunkVectors = tuple[tuple[str, ...], NDArray[np.float32]]  # ids, and (n_chunks, dimension)


class StoredChunks(Protocol):
    """The part of the vector store that is read."""

    def stored_documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]: ...
    def stored_vectors(self, revisions: Mapping[DocumentKey, str]) -> dict[DocumentKey, ChunkVectors]: ...


class GraphTopic:
    """Contributions on the graph topic, read from its start each time. Raises what PartitionReader does."""

    def __init__(self, topic: PartitionReader) -> None:
        self._topic = topic

    async def newest(self, collection: str) -> Mapping[bytes, int]:
        """{key: offset} of the live contributions of a collection, in the order of the topic."""
        prefix = f"{collection}/".encode("utf-8", "surrogatepass")
        found: dict[bytes, int] = {}
        async for record in self._topic.records():
            if record.key is not None and record.key.startswith(prefix):
                found.pop(record.key, None)
                if record.value is not None:
                    found[record.key] = record.offset
        return found

    async def read(self, offsets: Mapping[bytes, int]) -> AsyncIterator[SourceRecord]:
        """The records that `newest` returned, without those that compaction has taken meanwhile."""
        async for record in self._topic.records():
            if record.key is not None and offsets.get(record.key) == record.offset:
                yield record


class Relinker:
    """Replaces the edges in contributions by those that the current rules give for the stored vectors.

    `commit_lock` is the documents agent's: a batch is read, linked and sent while no commit runs, and only documents
    whose stored revision is the one contributed are changed. Later commits link by the same rules.
    """

    def __init__(
        self,
        *,
        collection_settings: CollectionSettings,
        graph_topic: GraphTopic,
        writer: StoredChunks,
        thread: StoreThread,
        producer: ConfirmedProducer,
        retrier: Retrier,
        commit_lock: asyncio.Lock,
        max_contribution_bytes: int,
    ) -> None:
        self._collection_settings = collection_settings
        self._graph_topic = graph_topic
        self._writer = writer
        self._thread = thread
        self._producer = producer
        self._retrier = retrier
        self._commit_lock = commit_lock
        self._max_contribution_bytes = max_contribution_bytes
        self._log = structlog.get_logger("thalweg.worker")

    async def run(self) -> None:
        """Carry out orders until cancelled."""
        while True:
            await self.process_orders()
            await asyncio.sleep(POLL_SECONDS)

    async def process_orders(self) -> None:
        """Carry out every order that is not done. One that is interrupted is repeated from its start, and finds what
        was linked already unchanged."""
        async with self._commit_lock:
            await self._collection_settings.current()
        for order in self._collection_settings.orders:
            await self._retrier.retry_forever(lambda order=order: self._carry_out(order))  # type: ignore[misc]

    async def _carry_out(self, order: RelinkEvent) -> None:
        """1. find the newest contribution of each document; 2. link batch by batch, publishing the progress;
        3. publish that it is done: then, and only then, the order is removed."""
        offsets = await self._graph_topic.newest(order.collection)  # 1
        progress = Relinking(state="running", of=len(offsets))
        await self._publish(order, progress)
        batch: list[SourceRecord] = []
        async for record in self._graph_topic.read(offsets):  # 2
            batch.append(record)
            if len(batch) == BATCH_DOCUMENTS:
                progress = await self._link(order, progress, batch)
                batch = []
        progress = await self._link(order, progress, batch)
        compacted = progress.of - progress.documents  # a newer contribution replaced them
        done = progress.model_copy(
            update={"state": "done", "documents": progress.of, "skipped": progress.skipped + compacted}
        )
        await self._publish(order, done)  # 3
        self._log.info("linked again", order=order.id, **done.model_dump(exclude={"state"}))

    async def _link(self, order: RelinkEvent, progress: Relinking, batch: Sequence[SourceRecord]) -> Relinking:
        if not batch:
            return progress
        async with self._commit_lock:
            await self._collection_settings.current()
            rules = self._collection_settings.linking_of(order.collection)
            current, vectors = await self._thread.run(
                self._look_up, [decode_contribution(one.value or b"") for one in batch]
            )
            changed, skipped = await asyncio.to_thread(self._relinked, current, vectors, rules)
            await self._producer.send_contributions(changed)
        updated = progress.model_copy(
            update={
                "documents": progress.documents + len(batch),
                "changed": progress.changed + len(changed),
                "skipped": progress.skipped + skipped + len(batch) - len(current),
            }
        )
        await self._publish(order, updated)
        return updated

    def _look_up(
        self, contributions: Sequence[Contribution]
    ) -> tuple[list[Contribution], dict[DocumentKey, ChunkVectors]]:
        """The contributions whose revision is the stored one, and the vectors of all."""
        keys = [DocumentKey(each.collection, each.document_id) for each in contributions]
        rows = self._writer.stored_documents(keys)
        current = [
            each
            for key, each in zip(keys, contributions, strict=True)
            if key in rows and rows[key].live and rows[key].revision == each.revision
        ]
        revisions = {DocumentKey(each.collection, each.document_id): each.revision for each in current}
        return current, self._writer.stored_vectors(revisions)

    def _relinked(
        self, current: Sequence[Contribution], stored: Mapping[DocumentKey, ChunkVectors], rules: LinkingRules
    ) -> tuple[list[tuple[bytes, bytes | None]], int]:
        """(key, contribution) of each document whose edges become others, and how many were left as they are."""
        changed: list[tuple[bytes, bytes | None]] = []
        skipped = 0
        for each in current:
            key = DocumentKey(each.collection, each.document_id)
            ids, vectors = stored.get(key, ((), np.empty((0, 0), np.float32)))
            if ids != tuple(chunk.id for chunk in each.chunks):
                skipped += 1
                continue
            edges = chunk_edges(each.chunks, vectors, rules)
            if edges == each.edges:
                continue
            value = encode_contribution(msgspec.structs.replace(each, edges=edges))
            if len(value) > self._max_contribution_bytes:
                self._log.warning("a document is too large for the graph with new edges", bytes=len(value))
                skipped += 1
                continue
            changed.append((str(key).encode("utf-8", "surrogatepass"), value))
        return changed, skipped

    async def _publish(self, order: RelinkEvent, progress: Relinking) -> None:
        await self._producer.send_curation([(relink_key(order.collection, order.id), encode_choice(progress))])
