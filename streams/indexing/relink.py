"""Orders to link a collection again, carried out between the commits of the documents agent."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
import structlog
from numpy.typing import NDArray

from indexer.linking import LinkingRules, chunk_edges
from indexer.schema import DocumentRow
from schemas.contributions import Contribution, decode_contribution, encode_contribution
from schemas.curation import RelinkEvent, Relinking, encode_choice, relink_key
from schemas.ids import DocumentKey
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.source_record import SourceRecord
from streams.runtime.retry import Retrier
from streams.runtime.store_thread import StoreThread

BATCH_DOCUMENTS = 64
POLL_SECONDS = 1.0

ChunkVectors = tuple[tuple[str, ...], NDArray[np.float32]]  # ids, and (n_chunks, dimension)


class Orders(Protocol):
    """The curation topic, folded. `current` is called by one at a time."""

    @property
    def orders(self) -> Sequence[RelinkEvent]: ...
    def linking_of(self, collection: str) -> LinkingRules: ...
    async def current(self) -> object: ...


class Contributed(Protocol):
    """The contributions on the graph topic."""

    async def newest(self, collection: str) -> Mapping[bytes, int]: ...
    def read(self, offsets: Mapping[bytes, int]) -> AsyncIterator[SourceRecord]: ...


class StoredChunks(Protocol):
    """The part of the vector store that is read."""

    def held(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]: ...
    def stored_vectors(self, revisions: Mapping[DocumentKey, str]) -> dict[DocumentKey, ChunkVectors]: ...


class Relinker:
    """Replaces the edges in contributions by what the rules of now make of the stored vectors.

    `turn` is the documents agent's: a batch is read, linked and sent while no commit is under way, and only documents
    are touched whose stored revision is the one contributed. What a commit sends later it links by the same rules.
    """

    def __init__(
        self,
        *,
        orders: Orders,
        contributed: Contributed,
        writer: StoredChunks,
        thread: StoreThread,
        producer: ConfirmedProducer,
        retrier: Retrier,
        turn: asyncio.Lock,
        max_contribution_bytes: int,
    ) -> None:
        self._orders = orders
        self._contributed = contributed
        self._writer = writer
        self._thread = thread
        self._producer = producer
        self._retrier = retrier
        self._turn = turn
        self._max_contribution_bytes = max_contribution_bytes
        self._log = structlog.get_logger("thalweg.worker")

    async def keep(self) -> None:
        """Carry out orders for ever."""
        while True:
            await self.work_off()
            await asyncio.sleep(POLL_SECONDS)

    async def work_off(self) -> None:
        """Carry out every order that is not done. One that is cut off is carried out again, from its start: what was
        linked already is found unchanged."""
        async with self._turn:
            await self._orders.current()
        for order in self._orders.orders:
            await self._retrier.retry_forever(lambda order=order: self._carry_out(order))  # type: ignore[misc]

    async def _carry_out(self, order: RelinkEvent) -> None:
        """1. find the newest contribution of each document; 2. link batch after batch, telling how far it is;
        3. say that it is done: then, and only then, the order is no more."""
        offsets = await self._contributed.newest(order.collection)  # 1
        progress = Relinking(state="running", of=len(offsets))
        await self._tell(order, progress)
        batch: list[SourceRecord] = []
        async for record in self._contributed.read(offsets):  # 2
            batch.append(record)
            if len(batch) == BATCH_DOCUMENTS:
                progress = await self._link(order, progress, batch)
                batch = []
        progress = await self._link(order, progress, batch)
        gone = progress.of - progress.documents  # taken by compaction, for a newer one had come
        done = progress.model_copy(
            update={"state": "done", "documents": progress.of, "skipped": progress.skipped + gone}
        )
        await self._tell(order, done)  # 3
        self._log.info("linked again", order=order.id, **done.model_dump(exclude={"state"}))

    async def _link(self, order: RelinkEvent, progress: Relinking, batch: Sequence[SourceRecord]) -> Relinking:
        if not batch:
            return progress
        async with self._turn:
            await self._orders.current()
            rules = self._orders.linking_of(order.collection)
            held, stored = await self._thread.run(
                self._look_up, [decode_contribution(one.value or b"") for one in batch]
            )
            changed, skipped = await asyncio.to_thread(self._relinked, held, stored, rules)
            await self._producer.send_contributions(changed)
        told = progress.model_copy(
            update={
                "documents": progress.documents + len(batch),
                "changed": progress.changed + len(changed),
                "skipped": progress.skipped + skipped + len(batch) - len(held),
            }
        )
        await self._tell(order, told)
        return told

    def _look_up(
        self, contributions: Sequence[Contribution]
    ) -> tuple[list[Contribution], dict[DocumentKey, ChunkVectors]]:
        """The contributions whose revision is the stored one, and the vectors of all."""
        keys = [DocumentKey(each.collection, each.document_id) for each in contributions]
        rows = self._writer.held(keys)
        held = [
            each
            for key, each in zip(keys, contributions, strict=True)
            if key in rows and rows[key].live and rows[key].revision == each.revision
        ]
        revisions = {DocumentKey(each.collection, each.document_id): each.revision for each in held}
        return held, self._writer.stored_vectors(revisions)

    def _relinked(
        self, held: Sequence[Contribution], stored: Mapping[DocumentKey, ChunkVectors], rules: LinkingRules
    ) -> tuple[list[tuple[bytes, bytes | None]], int]:
        """(key, contribution) of each document whose edges become others, and how many were left as they are."""
        changed: list[tuple[bytes, bytes | None]] = []
        skipped = 0
        for each in held:
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

    async def _tell(self, order: RelinkEvent, progress: Relinking) -> None:
        await self._producer.send_curation(relink_key(order.collection, order.id), encode_choice(progress))
